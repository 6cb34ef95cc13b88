// Times steps in rounds (step_timer.h).
//
// Step i reads what step i - 1 has written where that is of the right size; else a writer writes it, right before the step, and is not
// timed. Kernels may branch on values, so what it writes never repeats. A step without weights mostly follows one with weights, which have
// come by since its input was written: so some are read then. (With a repeated pattern and nothing read, pools took a fifth to a half of
// their time in nets.) After each anchor, which has used the caches, all that the run touches is read once, in the ring's order, so that
// what a step finds in a cache is what it would find after another inference of so many bytes.
//
// What stops the processor for some microseconds is in the median of a long step or net, but not in that of a short one: samples are stored
// without it (interruption_meter.h, sampler.cc).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "sluice/profiler/latency.h"
#include "src/profiler/middle.h"
#include "src/profiler/quiet_processor.h"
#include "src/profiler/step_call.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {
namespace {

constexpr double kAnchorsApart = 0.05;  // seconds
constexpr std::size_t kLeastPasses = 3;
constexpr std::size_t kMostPasses = 81;
constexpr double kShort = 50e-6;  // of these the clock on the wall: a step that was interrupted is no middle value

}  // namespace

class StepTimer::TurnRun {
 public:
  explicit TurnRun(StepTimer& timer) : timer_(timer) {}

  Status prepare(const Turn& turn) {
    Call::Rooms most;
    std::uint64_t most_weights = 0;
    for (const Request& request : turn.steps) {
      Call call{request, timer_.extent_of(request), {}, {}, {}, {}};
      fits_.push_back(call.ring_bytes() <= timer_.most_run_bytes());
      if (!fits_.back()) continue;
      const Call::Rooms rooms = call.rooms();
      most.inputs = std::max({most.inputs, rooms.inputs, rooms.outputs});
      most.workspace = std::max(most.workspace, rooms.workspace);
      most.derived = std::max(most.derived, rooms.derived);
      most_weights = std::max(most_weights, call.ring_bytes());
      const bool from_ring = !request.node.inputs.empty() && call.comes_from_ring(request.node.inputs[0]);
      steps_.push_back({std::move(call), nullptr, input_bytes_of(request, rooms, from_ring), false, {}, {}, {}});
    }
    const std::uint64_t arena = 2 * most.inputs + most.workspace + most.derived;
    SLUICE_RETURN_IF_ERROR(timer_.make_room(timer_.arena_, arena));
    std::byte* const sides[] = {timer_.arena_.data(), timer_.arena_.data() + most.inputs};
    std::byte* const workspace = sides[1] + most.inputs;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      steps_[i].inputs = sides[i % 2];
      steps_[i].call.lie_at({sides[i % 2], sides[(i + 1) % 2], workspace, workspace + most.workspace});
      steps_[i].written = i > 0 && writes_for(steps_[i - 1].call, steps_[i].call);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) states_[i] = static_cast<std::uint32_t>(i * 0x9e3779b9u + 1);
    Touched all;
    for (std::size_t i = 0; i < steps_.size(); ++i) all.add(i, steps_[i].call.rooms());
    weights_.end = std::clamp(turn.run_bytes - std::min(all.bytes(), turn.run_bytes), most_weights, timer_.most_run_bytes());
    between_bytes_ = std::min<std::uint64_t>((all.bytes() + weights_.end) / kStepsOfNet, kMostBetween);
    return {};
  }

  void run(double seconds) {
    const QuietProcessor processor(timer_.pool_->thread_count() == 1, [&] { return timer_.time_anchor(); });
    const Clock::time_point start = Clock::now();
    std::size_t passes = 0;
    const auto more = [&](std::size_t done) { return done < kLeastPasses || (done < kMostPasses && seconds_since(start) < seconds); };
    double before = timer_.time_anchor();
    while (!steps_.empty() && more(passes)) {
      warm_up();
      const Clock::time_point chunk = Clock::now();
      std::size_t in_chunk = 0;
      do {
        for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].chunk.push_back(run(i));
        ++in_chunk;
      } while (seconds_since(chunk) < kAnchorsApart && more(passes + in_chunk));
      passes += in_chunk;
      pass_seconds_ = seconds_since(chunk) / static_cast<double>(in_chunk);
      const double after = timer_.time_anchor(), unit = 0.5 * (before + after);
      for (Step& step : steps_) step.add_chunk(unit);
      before = after;
    }
  }

  TimedTurn times() const {
    TimedTurn timed;
    std::size_t next = 0;
    for (const bool fits : fits_) {
      timed.emplace_back();
      if (!fits) continue;
      const Step& step = steps_[next];
      const std::uint64_t touched = touched_between_uses(next++);
      const auto others = static_cast<std::uint64_t>(ring_seconds() * timer_.others_bytes_per_second_);
      timed.back() = {step.call.extent, step.middle(), std::max(middle_of(step.anchors), 1e-9), touched, touched + others};
    }
    return timed;
  }

 private:
  static constexpr std::size_t kLanes = 16;  // floats of a cache line
  static constexpr std::uint64_t kLine = 64;
  static constexpr auto kBytesOfLine = static_cast<std::int64_t>(kLine);
  static constexpr std::uint64_t kStepsOfNet = 64;  // some
  static constexpr std::uint64_t kMostBetween = 1 << 20;
  static constexpr std::uint64_t kWorthFetching = 32 << 10;

  struct Step {
    Call call;
    std::byte* inputs;
    std::int64_t input_bytes;  // bytes that a net would have written before
    bool written;              // by the step before
    std::vector<double> chunk, seconds, anchors;

    void add_chunk(double anchor) {
      for (const double each : chunk) anchors.push_back(each / anchor);
      seconds.insert(seconds.end(), chunk.begin(), chunk.end());
      chunk.clear();
    }
    double middle() const { return std::max(middle_of(seconds), 1e-9); }
  };

  /// The bytes of the arena that some of several steps read or write.
  class Touched {
   public:
    void add(std::size_t i, const Call::Rooms& rooms) {
      sides_[i % 2] = std::max(sides_[i % 2], rooms.inputs);
      sides_[(i + 1) % 2] = std::max(sides_[(i + 1) % 2], rooms.outputs);
      workspace_ = std::max(workspace_, rooms.workspace);
      derived_ = std::max(derived_, rooms.derived);
    }
    std::uint64_t bytes() const noexcept { return sides_[0] + sides_[1] + workspace_ + derived_; }

   private:
    std::array<std::uint64_t, 2> sides_{};
    std::uint64_t workspace_ = 0, derived_ = 0;
  };

  /// What is touched between two uses of the weights of step `i`: the whole ring, and what the steps of one turn of the ring have in the arena.
  /// In a net everything that it has comes by. (Counted as if all steps came by, a round with one large map stood for runs that no cache
  /// holds, where weights of 1 MiB were read at 97 GB/s: nets of 6 to 16 MiB were predicted at four fifths of their time.)
  std::uint64_t touched_between_uses(std::size_t i) const {
    Touched touched;
    std::uint64_t read = 0;
    for (std::size_t back = 0; back < steps_.size() && (back == 0 || read < weights_.end); ++back) {
      const std::size_t at = (i + steps_.size() - back) % steps_.size();
      touched.add(at, steps_[at].call.rooms());
      read += read_for(steps_[at]);
    }
    return touched.bytes() + weights_.end;
  }

  /// What a pass reads of the ring for a step.
  std::uint64_t read_for(const Step& step) const {
    const std::uint64_t runs = step.middle() < kShort && comes_back(step) ? 2 : 1;
    return runs * step.call.ring_bytes() + (reads_between(step) ? between_bytes_ : 0);
  }

  /// The time in which all of the ring is read once.
  double ring_seconds() const {
    std::uint64_t read = 0;
    for (const Step& step : steps_) read += read_for(step);
    return read == 0 ? pass_seconds_ : pass_seconds_ * static_cast<double>(weights_.end) / static_cast<double>(read);
  }

  /// Where so many bytes of weights lie that come at `at`: at the ring's beginning, where they do not fit before its end.
  std::uint64_t place_from(std::uint64_t at, std::uint64_t bytes) const { return at + bytes > weights_.end ? 0 : at; }

  /// Where the weights will lie that come behind those at `weights_.at`, which step `i` is to read: what a plan tells its step (bind.cc).
  /// A kernel fetches the first of them while it ends. (Without it, layers of a few rows took up to half as long again as in nets.)
  std::span<const std::byte> next_weights(std::size_t i) const {
    if (weights_.end == 0) return {};  // no step has any
    std::uint64_t at = weights_.at;
    const auto pass = [&](std::uint64_t bytes) { at = place_from(at, bytes) + bytes; };
    for (std::size_t j = i; j <= i + steps_.size(); ++j) {
      const Step& step = steps_[j % steps_.size()];
      const Call& call = step.call;
      if (j > i && reads_between(step)) at = (at + between_bytes_) % weights_.end / kLine * kLine;
      if (j == i || call.weights.empty() || call.request.use != KernelUse::kRun || call.bytes_of_weight(0).count() < kWorthFetching) {
        pass(call.ring_bytes());
        if (j > i && call.request.use != KernelUse::kRun) return {};
        continue;
      }
      return {timer_.ring_.data() + place_from(at, call.ring_bytes()), call.bytes_of_weight(0).count()};
    }
    return {};
  }

  /// The same of the run of `step` behind its next one: its weights are announced as those of a net's steps are. (Without it, layers of 16
  /// rows took a fifth longer than in nets.)
  std::span<const std::byte> weights_of_run_after_next(const Step& step) const {
    const Call& call = step.call;
    if (call.weights.empty() || call.request.use != KernelUse::kRun || call.bytes_of_weight(0).count() < kWorthFetching) return {};
    const std::uint64_t bytes = call.ring_bytes(), at = place_from(place_from(weights_.at, bytes) + bytes, bytes);
    return {timer_.ring_.data() + at, call.bytes_of_weight(0).count()};
  }

  /// A net comes back to a kernel after a few steps, and to the memory that it wrote: short steps are run once on other weights first. Not
  /// pools, whose branches depend on values, which must be new.
  static bool comes_back(const Step& step) { return step.call.request.node.op != model::OpKind::kPool; }

  /// Are weights read between the step before and it?
  static bool reads_between(const Step& step) { return !step.written && step.call.weights.empty() && step.input_bytes > 0; }

  /// Inputs that a step of a net would find written: all of them, of a band its share; transforms read weights alone.
  static std::int64_t input_bytes_of(const Request& request, const Call::Rooms& rooms, bool from_ring) {
    if (request.use == KernelUse::kPrepare || from_ring) return 0;
    return static_cast<std::int64_t>(static_cast<double>(rooms.inputs) * request.share_of_rows);
  }

  /// Is what `before` writes about as large as what `step` reads, and of its type?
  static bool writes_for(const Call& before, const Call& step) {
    const bool whole = before.request.share >= 1 && before.request.share_of_rows >= 1 && before.request.use != KernelUse::kPrepare;
    const std::uint64_t written = before.rooms().outputs, read = step.rooms().inputs;
    return whole && step.inputs.size() == 1 && written >= read && written <= 2 * read &&
           before.outputs[0].view.dtype == step.inputs[0].view.dtype;
  }

  void write_inputs(const Step& step) {
    write(step.inputs, step.input_bytes);
    if (step.call.weights.empty() && step.input_bytes > 0) read_ring(between_bytes_);
  }

  /// Calls body(part) for as many parts as there are threads, each on a thread of its own: they wait for one another, but not for one that sleeps.
  /// (Without it, the caller had done the second part of a few lines before the worker came, and 16 rows of a dense layer, half of which the other
  /// thread writes in nets, were all in one core's cache: two to three microseconds more.)
  template <class Body>
  void for_each_thread(const Body& body) {
    constexpr int kMostPolls = 4096;
    const int threads = timer_.pool_->thread_count();
    std::atomic<int> begun{0};
    parallel_for(*timer_.pool_, threads, [&](std::int64_t part, int) noexcept {
      begun.fetch_add(1, std::memory_order_relaxed);
      for (int i = 0; i < kMostPolls && begun.load(std::memory_order_relaxed) < threads; ++i) {
      }
      body(part);
    });
  }

  /// New values, each thread's part one run of lines, as kernels share pixels.
  void write(std::byte* at, std::int64_t bytes) {
    const std::int64_t threads = timer_.pool_->thread_count();
    write_in_pieces(at, bytes, ceil_div(std::max<std::int64_t>(bytes / kBytesOfLine, 1), threads));
  }

  /// New values, of which the threads take a piece of so many lines in turn.
  void write_in_pieces(std::byte* at, std::int64_t bytes, std::int64_t piece) {
    for (std::uint32_t& state : states_) state = state * 1664525u + 1013904223u;
    const std::int64_t lines = bytes / kBytesOfLine, threads = timer_.pool_->thread_count();
    for_each_thread([&](std::int64_t part) noexcept {
      auto* const to = reinterpret_cast<float*>(at);
      std::array<std::uint32_t, kLanes> states = states_;
      for (std::uint32_t& state : states) state += static_cast<std::uint32_t>(part);
      for (std::int64_t first = part * piece; first < lines; first += threads * piece)
        for (std::int64_t line = first; line < std::min(first + piece, lines); ++line)
          for (std::size_t i = 0; i < kLanes; ++i) {
            states[i] = states[i] * 1664525u + 1013904223u;
            to[line * static_cast<std::int64_t>(kLanes) + static_cast<std::int64_t>(i)] =
                static_cast<float>(static_cast<std::int32_t>(states[i])) * 0x1p-31f;
          }
    });
  }

  double run(std::size_t i) {
    Step& step = steps_[i];
    const bool is_short = !step.chunk.empty() ? step.chunk.back() < kShort : !step.seconds.empty() && step.seconds.back() < kShort;
    const bool again = is_short && comes_back(step);
    timer_.pool_->thread_count() == 1 ? settle_one(step, again) : settle_all(step, again);
    return timer_.run_once(step.call, weights_, is_short ? Clocks::kWall : Clocks::kBoth, next_weights(i));
  }

  /// What a net does before a step, on one thread: its inputs are written, and its kernel and the place of its outputs are in the caches.
  void settle_one(Step& step, bool again) {
    if (!step.written) write_inputs(step);
    if (again) run_on_other_weights(step);
  }

  /// The same on several threads. A run before would also bring all inputs to the cores that read them, and leave each with the outputs that
  /// it is about to write; in a net some come from another core's cache. So what it touched is written anew. (Without that, steps of 10 to
  /// 50 us took a fifth to a half longer in nets of two threads.)
  void settle_all(Step& step, bool again) {
    if (again) run_on_other_weights(step);
    if (step.written && !again) return;
    // Of what lies there from before, half is in another core's cache, however the steps shared that wrote it.
    constexpr std::int64_t kPiece = 64;
    write_in_pieces(step.call.outputs[0].view.data, static_cast<std::int64_t>(step.call.rooms().outputs), kPiece);
    // The step before has announced the weights that follow its own: none are read in between.
    step.written ? write(step.inputs, step.input_bytes) : write_inputs(step);
  }

  void run_on_other_weights(Step& step) { timer_.run_once(step.call, weights_, Clocks::kWall, weights_of_run_after_next(step)); }

  /// Reads the weights that come next, `bytes` of them, each thread its part: a worker that waited meanwhile would sleep.
  void read_ring(std::uint64_t bytes) {
    const auto threads = static_cast<std::uint64_t>(timer_.pool_->thread_count());
    const std::uint64_t lines = bytes / kLine, first = weights_.at / kLine, in_ring = std::max<std::uint64_t>(weights_.end / kLine, 1);
    for_each_thread([&](std::int64_t of) noexcept {
      const auto part = static_cast<std::uint64_t>(of);
      const std::uint64_t begin = lines * part / threads, end = lines * (part + 1) / threads;
      std::uint64_t sum = 0, at = (first + begin) % in_ring;
      for (std::uint64_t line = begin; line < end; ++line, at = at + 1 < in_ring ? at + 1 : 0) {
        std::uint64_t word;
        std::memcpy(&word, timer_.ring_.data() + at * kLine, sizeof word);
        sum += word;
      }
      [[maybe_unused]] const volatile std::uint64_t read = sum;  // so that what is read is read
    });
    weights_.at = (first + lines) % in_ring * kLine;
  }

  /// All weights of the run, then a step: its values do not count.
  void warm_up() {
    weights_.at = 0;
    read_ring(weights_.end);
    write_inputs(steps_.back());
    timer_.run_once(steps_.back().call, weights_);
  }

  StepTimer& timer_;
  std::vector<bool> fits_;  // by step of the turn
  std::vector<Step> steps_;
  RingPlace weights_;
  std::uint64_t between_bytes_ = 0;
  double pass_seconds_ = 0;                     // of the last passes
  std::array<std::uint32_t, kLanes> states_{};  // of the values that are written
};

Result<StepTimer::TimedTurn> StepTimer::time_in_turn(const Turn& turn, double seconds) {
  TurnRun run(*this);
  SLUICE_RETURN_IF_ERROR(run.prepare(turn));
  run.run(seconds);
  return run.times();
}

}  // namespace sluice::profiler
