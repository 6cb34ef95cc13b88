// Calls of both interfaces in random order, from several threads at once, under signals and forks. Whatever comes: each call gives a value
// or an error that its contract names, right outputs are right to the bit, and at the end nothing is left.
//
// SLUICE_API_CALLS says how many calls each thread makes; the default is for the gate.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>

#include "sluice/engine/engine.h"
#include "sluice/engine/shared_arena.h"
#include "sluice/sluice_c.h"
#include "tests/engine/open_descriptors.h"
#include "tests/executor/toy_file.h"

namespace sluice {
namespace {

using namespace literals;

std::size_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// What all threads call on. A session's place is locked against its end alone: calls on it race as they like.
class Machine {
 public:
  Machine() : toy_(toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 512, 10}})) {
    REQUIRE(toy::write_toy_file(toy_, path_.str()));
    auto opened = Model::open(path_.str());
    REQUIRE(opened);
    model_ = *opened;
    least_ = *minimum_budget(*model_, {.threads = 2});
    REQUIRE(sluice_model_open(path_.str().c_str(), &c_model_) == SLUICE_OK);
  }
  ~Machine() { sluice_model_close(c_model_); }

  void call(std::mt19937_64& random, bool forks) {
    Place& place = places_[random() % places_.size()];
    if (random() % 16 != 0) {
      const std::shared_lock lock(place.mutex);
      if (place.session) return use(*place.session, random, forks);
      if (place.c_session != nullptr) return use(place.c_session, random);
    }
    change(place, random);
  }

  /// When the others are done: each session still works. What went wrong first, or "".
  std::string settle() {
    for (Place& place : places_) {
      if (place.session) {
        for (int i = 0; i < 2 && !right(*place.session); ++i)  // a cancellation that no run has taken is of the first
          if (i == 1) note("a session that is alone does not work");
        const MemoryReport memory = place.session->memory();
        if (memory.overhead + memory.arena > memory.budget) note("arena and overhead exceed the budget");
      }
      place.session.reset();
      sluice_session_close(place.c_session);
      place.c_session = nullptr;
    }
    const std::lock_guard lock(note_mutex_);
    return first_;
  }

  std::uint64_t runs() const noexcept { return runs_; }

 private:
  struct Place {
    std::shared_mutex mutex;
    std::unique_ptr<Session> session;
    sluice_session* c_session = nullptr;
  };

  /// Also that it was no idle play.
  void count(const Status& run) noexcept { runs_ += run.has_value(); }

  void note(const std::string& what) {
    const std::lock_guard lock(note_mutex_);
    if (first_.empty()) first_ = what;
  }

  /// Errors that any call may give here.
  void check(const Status& status, const char* call) {
    if (status) return;
    const ErrorCode code = status.error().code;
    if (code != ErrorCode::kInvalidArgument && code != ErrorCode::kBudgetTooSmall && code != ErrorCode::kCancelled)
      note(std::string(call) + ": " + status.error().to_string());
  }

  Bytes some_budget(std::mt19937_64& random) const {
    const Bytes budgets[] = {Bytes(), least_ - Bytes(1), least_, least_ + 64_KiB, least_ + 300_KiB, 8_MiB, kUnlimitedBytes};
    return budgets[random() % std::size(budgets)];
  }

  /// Ends what is there, or makes something.
  void change(Place& place, std::mt19937_64& random) {
    {
      const std::shared_lock lock(place.mutex);
      if (place.session && random() % 2 == 0) place.session->cancel();
    }
    const std::unique_lock lock(place.mutex);
    if (place.session || place.c_session != nullptr) {
      place.session.reset();
      sluice_session_close(place.c_session);
      place.c_session = nullptr;
      return;
    }
    if (random() % 3 == 0) {
      sluice_session_options options = sluice_default_options();
      options.budget_bytes = some_budget(random).count();
      options.threads = static_cast<std::int32_t>(random() % 3);
      static_cast<void>(sluice_session_create(c_model_, &options, &place.c_session));
      return;
    }
    SessionOptions options{.budget = some_budget(random), .threads = static_cast<int>(random() % 3), .repeat = random() % 2 == 0};
    options.keep_inputs = random() % 2 == 0;
    if (random() % 3 == 0) {
      auto arena = SharedArena::create({.budget = some_budget(random), .threads = 2});
      if (arena) options.arena = *arena;
    }
    auto made = Session::create(model_, options);
    if (made)
      place.session = *std::move(made);
    else
      check(fail(made.error()), "create");
  }

  bool right(Session& session) {
    std::vector<float> output(toy_.expected.size());
    return session.set_input(0, DType::kF32, std::as_bytes(std::span(toy_.input))) && session.run() &&
           session.get_output(0, std::as_writable_bytes(std::span(output))) && is_expected(output);
  }

  bool is_expected(const std::vector<float>& output) const {
    return std::memcmp(output.data(), toy_.expected.data(), output.size() * sizeof(float)) == 0;
  }

  void use(Session& session, std::mt19937_64& random, bool forks) {
    const auto input = std::as_bytes(std::span(toy_.input));
    std::vector<float> output(toy_.expected.size());
    switch (random() % 12) {
      case 0:
      case 1:
        return check(session.set_input(0, DType::kF32, input), "set_input");
      case 2:
        return check(
            session.set_input(random() % 3, random() % 2 == 0 ? DType::kF32 : DType::kI64, input.first(input.size() - random() % 2)),
            "set_input");
      case 3:
      case 4:
      case 5: {
        check(session.set_input(0, DType::kF32, input), "set_input");
        const Status run = session.run();
        count(run);
        return check(run, "run");
      }
      case 6: {
        const Status got = session.get_output(0, std::as_writable_bytes(std::span(output)));
        if (got && !is_expected(output)) note("an output has other bits");
        return check(got, "get_output");
      }
      case 7:
        return check(session.get_output_part(random() % 2, random() % 30, std::as_writable_bytes(std::span(output)).first(random() % 40)),
                     "get_output_part");
      case 8:
        return session.cancel();
      case 9:
        return check(session.set_budget(some_budget(random)), "set_budget");
      case 10:
        if (session.memory().peak_resident == Bytes()) note("no memory is resident");
        return;
      default:
        if (forks) fork_and_end(session);
    }
  }

  void use(sluice_session* session, std::mt19937_64& random) {
    std::vector<float> output(toy_.expected.size());
    sluice_port_info info;
    switch (random() % 8) {
      case 0:
      case 1:
        static_cast<void>(sluice_session_set_input(session, 0, toy_.input.data(), toy_.input.size() * sizeof(float)));
        return;
      case 2:
      case 3:
        static_cast<void>(sluice_session_run(session));
        return;
      case 4:
        if (sluice_session_get_output(session, 0, output.data(), output.size() * sizeof(float)) == SLUICE_OK && !is_expected(output))
          note("an output has other bits in C");
        return;
      case 5:
        static_cast<void>(sluice_session_set_budget(session, some_budget(random).count()));
        return;
      case 6:
        static_cast<void>(sluice_session_cancel(session));
        return;
      default:
        if (sluice_session_run(nullptr) == SLUICE_OK || sluice_session_set_input(session, 0, nullptr, 4) == SLUICE_OK ||
            sluice_session_output_info(session, 7, &info) == SLUICE_OK)
          note("a null or a port that is none was taken");
    }
  }

  void fork_and_end(Session& session) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      const bool refused = !session.run();
      delete &session;
      ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) note("a child got on badly with its parent's session");
  }

  toy::ToyModel toy_;
  toy::TemporaryPath path_{"api_machine_test.sluice"};
  std::shared_ptr<const Model> model_;
  sluice_model* c_model_ = nullptr;
  Bytes least_;
  std::array<Place, 6> places_;
  std::atomic<std::uint64_t> runs_{0};
  std::mutex note_mutex_;
  std::string first_;
};

std::uint64_t calls_wanted() {
  const char* stated = std::getenv("SLUICE_API_CALLS");
  return stated == nullptr ? 1000 : std::strtoull(stated, nullptr, 10);
}

void ignore_signal(int) {}

// The thread sanitizer does not follow threads into a forked child.
#if defined(__SANITIZE_THREAD__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

}  // namespace

TEST_CASE("calls in any order, from several threads, under signals and forks, keep their contracts and leave nothing behind") {
  constexpr int kThreads = 4;
  [[maybe_unused]] const std::size_t descriptors = test::open_descriptors(), threads = threads_now();
  struct sigaction action {};
  action.sa_handler = ignore_signal;  // without SA_RESTART: what waits is interrupted
  REQUIRE(::sigaction(SIGUSR1, &action, nullptr) == 0);
  {
    Machine machine;
    std::atomic<int> left{kThreads};
    std::vector<std::thread> callers;
    for (int t = 0; t < kThreads; ++t)
      callers.emplace_back([&machine, &left, t] {
        std::mt19937_64 random(static_cast<std::uint64_t>(t) + 1);
        const std::uint64_t calls = calls_wanted();
        for (std::uint64_t i = 0; i < calls; ++i) machine.call(random, kForks && i % 100 == 7);
        --left;
      });
    while (left > 0) {
      for (std::thread& caller : callers) ::pthread_kill(caller.native_handle(), SIGUSR1);
      std::this_thread::yield();
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(machine.settle() == "");
    CHECK(machine.runs() >= calls_wanted() / 100);
  }
  CHECK(test::open_descriptors() == descriptors);
#if !defined(__SANITIZE_THREAD__)  // which has a thread of its own from the first one on
  CHECK(threads_now() == threads);
#endif
}

}  // namespace sluice
