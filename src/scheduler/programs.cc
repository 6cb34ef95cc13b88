#include "src/scheduler/programs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/core/out_of_memory.h"

namespace sluice::scheduler {
namespace {

class CpuProgram final : public backends::Program {
 public:
  explicit CpuProgram(std::unique_ptr<Session> session) noexcept : session_(std::move(session)) {}

  Status place_input(std::size_t port, std::span<std::byte> memory) noexcept override { return session_->place_input(port, memory); }
  Status place_output(std::size_t port, std::span<std::byte> memory) noexcept override { return session_->place_output(port, memory); }
  Status set_input(std::size_t port, std::span<const std::byte> data) noexcept override {
    const model::Graph& graph = session_->model().graph();
    return session_->set_input(port, graph.dtype_of(graph.inputs[port]), data);
  }
  Status run() noexcept override { return session_->run(); }
  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override { return session_->get_output(port, data); }
  void cancel() noexcept override { session_->cancel(); }

 private:
  std::unique_ptr<Session> session_;
};

class TimedProgram final : public backends::Program {
 public:
  TimedProgram(std::shared_ptr<const TimedAnswers> answers, std::shared_ptr<const Time> time, std::shared_ptr<TimedClock> clock,
               executor::StepHook boundary)
      : answers_(std::move(answers)), time_(std::move(time)), clock_(std::move(clock)), boundary_(boundary) {}

  Status set_input(std::size_t port, std::span<const std::byte> data) noexcept override {
    const std::vector<std::byte>& known = answers_->inputs[port];
    if (data.size() != known.size() || std::memcmp(data.data(), known.data(), known.size()) != 0)
      return fail(ErrorCode::kUnsupported, "timed processor", "answers the reference inputs only: its outputs were computed beforehand");
    return {};
  }

  Status run() noexcept override {
    lost_ = false;
    switch (clock_->work(*time_, cancelled_, boundary_)) {
      case TimedClock::Wake::kOver:
        return {};
      case TimedClock::Wake::kCancelled:
        cancelled_ = false;
        return fail(ErrorCode::kCancelled, "run", "the caller asked to stop");
      case TimedClock::Wake::kDead:
        lost_ = true;
        break;
    }
    return fail(ErrorCode::kIo, "timed processor", "the processor is gone");
  }

  Status get_output(std::size_t port, std::span<std::byte> data) noexcept override {
    const std::vector<std::byte>& known = answers_->outputs[port];
    std::copy_n(known.begin(), std::min(known.size(), data.size()), data.begin());
    return {};
  }
  void cancel() noexcept override {
    cancelled_ = true;
    clock_->wake();
  }
  bool lost() const noexcept override { return lost_; }

 private:
  std::shared_ptr<const TimedAnswers> answers_;
  std::shared_ptr<const Time> time_;
  std::shared_ptr<TimedClock> clock_;
  executor::StepHook boundary_;
  std::atomic<bool> cancelled_{false};
  bool lost_ = false;
};

}  // namespace

Bytes TimedAnswers::bytes() const noexcept {
  Bytes sum;
  for (const auto* list : {&inputs, &outputs})
    for (const std::vector<std::byte>& tensor : *list) sum += Bytes(tensor.size());
  return sum;
}

void TimedClock::emulate(const Fault& fault) noexcept {
  {
    const std::lock_guard lock(mutex_);
    switch (fault.kind) {
      case Fault::Kind::kSlow:
        slowed_ = fault.factor;
        break;
      case Fault::Kind::kHang:
        hangs_ = true;
        break;
      case Fault::Kind::kDie:
        dead_ = true;
        break;
      case Fault::Kind::kWell:
        slowed_ = 1;
        hangs_ = dead_ = false;
        break;
    }
  }
  changed_.notify_all();
}

bool TimedClock::dead() noexcept {
  const std::lock_guard lock(mutex_);
  return dead_;
}

void TimedClock::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

TimedClock::Wake TimedClock::work(Time work, const std::atomic<bool>& cancelled, executor::StepHook boundary) noexcept {
  using Clock = std::chrono::steady_clock;
  double left = static_cast<double>(work);
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const Clock::time_point from = Clock::now();
      const double slice = std::min(left * slowed_, static_cast<double>(kMillisecond));
      const auto until = from + std::chrono::nanoseconds(static_cast<Time>(slice));
      const auto stopped = [&] { return closed_ || dead_ || cancelled.load(); };
      if (hangs_) {  // a hanging program sees no cancellation
        changed_.wait(lock, [&] { return closed_ || dead_ || !hangs_; });
        left = static_cast<double>(work);  // what was done before is not trusted
      } else {
        changed_.wait_until(lock, until, [&] { return stopped() || hangs_; });
        left -= static_cast<double>((Clock::now() - from).count()) / slowed_;
      }
      if (dead_) return Wake::kDead;
      if (closed_ || cancelled.load()) return Wake::kCancelled;
      if (left <= 0 && !hangs_) return Wake::kOver;
    }
    boundary({});
  }
}

Result<std::unique_ptr<backends::Program>> make_cpu_program(std::shared_ptr<const sluice::Model> model, const SessionOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::create(std::move(model), options));
  return std::unique_ptr<backends::Program>(std::make_unique<CpuProgram>(std::move(session)));
}

std::unique_ptr<backends::Program> make_timed_program(std::shared_ptr<const TimedAnswers> answers, std::shared_ptr<const Time> time,
                                                      std::shared_ptr<TimedClock> clock, executor::StepHook boundary) {
  return std::make_unique<TimedProgram>(std::move(answers), std::move(time), std::move(clock), boundary);
}

}  // namespace sluice::scheduler
