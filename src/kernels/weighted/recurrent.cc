#include "src/kernels/weighted/recurrent.h"

#include <limits>

#include "src/kernels/weighted/narrow.h"

namespace sluice::kernels::weighted {
namespace {

using elementwise::RunTable;
using operators::RecurrentParameters;

/// Sums of fewer bytes of weights are formed by one thread, in whose own cache they stay: the others would take as long to come, and to
/// bring what each time step of theirs made (with 256 KiB, two threads took a fifth longer than one).
constexpr std::int64_t kWorthThreads = 512 * 1024;
constexpr std::int64_t kGranule = 4;  // panels that a tile of few rows takes at once

/// Floats of the workspace that a batch entry has: its sums, and two runs of intermediate values.
std::int64_t floats_of_batch(const RecurrentParameters& a, ChannelRange channels) noexcept {
  return ceil_div(channels.size() + 2 * a.hidden, kPanelLanes) * kPanelLanes;
}

/// Sums of all batches, and whatever lies behind them in the workspace.
std::int64_t floats_of_sums(const RecurrentParameters& a, ChannelRange channels) noexcept {
  return a.batches * floats_of_batch(a, channels);
}

/// Narrow panels are widened, or multiplied as they lie, for the batches of one time step at a time. A thread's panels are any number.
NarrowStep narrow_turn(const RecurrentParameters& a, int threads) noexcept {
  return {a.weighted.panels, a.batches, std::numeric_limits<std::int64_t>::max(), threads};
}

/// Units [begin, end) of one gate of one batch entry: elementwise arithmetic on runs.
class GateRun {
 public:
  GateRun(const RunTable& runs, const RecurrentParameters& a, std::int64_t count) noexcept : runs_(runs), a_(a), count_(count) {}

  void add(const float* a, const float* b, float* out) const noexcept { binary(BinaryFunction::kAdd, {a, 1}, b, out); }
  void multiply(const float* a, const float* b, float* out) const noexcept { binary(BinaryFunction::kMul, {a, 1}, b, out); }
  void one_less(const float* b, float* out) const noexcept {
    static constexpr float kOne = 1.0f;
    binary(BinaryFunction::kSub, {&kOne, 0}, b, out);
  }
  void apply(std::size_t function, const float* in, float* out) const noexcept { runs_.unary(a_.functions[function], in, out, count_); }

 private:
  void binary(BinaryFunction op, elementwise::Stream a, const float* b, float* out) const noexcept {
    runs_.binary(op, a, {b, 1}, {}, out, count_);
  }

  const RunTable& runs_;
  const RecurrentParameters& a_;
  std::int64_t count_;
};

/// A step's time steps, one after the other.
class Recurrence {
 public:
  Recurrence(const KernelCall& call, const RecurrentTable& table) noexcept
      : call_(call),
        tiles_(table.tiles),
        runs_(table.runs),
        a_(call.parameters<RecurrentParameters>()),
        batches_(a_.batches),
        outputs_(a_.gates() * a_.hidden),
        workspace_(reinterpret_cast<float*>(call.workspace)),
        pitch_(floats_of_batch(a_, call.channels)),
        rooms_(tiles_, narrow_turn(a_, thread_count(call)),
               call.workspace + floats_of_sums(a_, call.channels) * static_cast<std::int64_t>(sizeof(float))),
        peepholes_(a_.peepholes ? reinterpret_cast<const float*>(call.weights.back().data) : nullptr) {}

  void run() noexcept {
    const std::int64_t first = call_.rows.begin / batches_, end = call_.rows.end / batches_;
    const bool two_rounds = a_.cell == Cell::kGru && !a_.linear_before_reset;
    const std::int64_t turn = two_rounds ? 2 * a_.hidden : outputs_;  // where the second round begins
    for (std::int64_t i = 0; i < end - first; ++i) {
      time_ = a_.reverse ? end - 1 - i : first + i;
      round({call_.channels.begin, std::min(call_.channels.end, turn)}, a_.gates() - 1, false);
      round({std::max(call_.channels.begin, turn), call_.channels.end}, 1, true);
    }
  }

 private:
  float* now(std::int64_t batch) const noexcept { return call_.outputs[0].view.at<float>(time_ * batches_ + batch, 0); }
  float* sums(std::int64_t batch) const noexcept { return workspace_ + batch * pitch_ - call_.channels.begin; }
  float* values(std::int64_t batch, int which) const noexcept {
    return workspace_ + batch * pitch_ + call_.channels.size() + which * a_.hidden;
  }

  /// What gate `gate` held a time step ago; at the first one input `first`, or nothing: zero.
  const float* before(std::int64_t batch, std::int64_t gate, std::size_t first) const noexcept {
    const std::int64_t earlier = a_.reverse ? time_ + 1 : time_ - 1;
    if (earlier >= 0 && earlier < call_.outputs[0].shape[0])
      return call_.outputs[0].view.at<const float>(earlier * batches_ + batch, 0) + gate * a_.hidden;
    return first == 0 ? nullptr : call_.inputs[first].view.at<const float>(batch, 0);
  }
  const float* h_before(std::int64_t batch) const noexcept { return before(batch, a_.gates() - 1, a_.first_hidden ? 1 : 0); }
  const float* c_before(std::int64_t batch) const noexcept { return before(batch, 2, a_.first_cell ? call_.inputs.size() - 1 : 0); }

  /// Channels of one time step whose sums are of one state: h before, or, `reset`, gate `gate` of this time step.
  void round(ChannelRange channels, std::int64_t gate, bool reset) const noexcept {
    if (channels.empty()) return;
    if (h_before(0) == nullptr) {
      for (std::int64_t b = 0; b < batches_; ++b) fill_bias(channels, sums(b));
    } else {
      form_sums({channels.begin / kPanelLanes, ceil_div(channels.end, kPanelLanes)}, gate, reset);
    }
    const auto cells = [&](std::int64_t batch, int) noexcept {
      for (std::int64_t g = channels.begin / a_.hidden; g * a_.hidden < channels.end; ++g)
        finish_gate(batch, g,
                    {std::max(channels.begin - g * a_.hidden, std::int64_t{0}), std::min(channels.end - g * a_.hidden, a_.hidden)});
    };
    for_each_unit(call_, batches_, cells);
  }

  void fill_bias(ChannelRange channels, float* sums) const noexcept {
    const float* bias = a_.weighted.epilogue.has_bias ? reinterpret_cast<const float*>(call_.weights[1].data) : nullptr;
    for (std::int64_t n = channels.begin; n < channels.end; ++n) sums[n] = bias == nullptr ? 0.0f : 0.0f + bias[n];
  }

  void form_sums(PanelRange panels, std::int64_t gate, bool reset) const noexcept {
    const std::int64_t granules = ceil_div(panels.size(), kGranule);
    const auto part = [&](std::int64_t unit, std::int64_t units, int thread) noexcept {
      const auto g = even_part({0, granules}, unit, units);
      const PanelRange p{panels.begin + g.begin * kGranule, std::min(panels.end, panels.begin + g.end * kGranule)};
      const std::int64_t end = std::min(p.end * kPanelLanes, outputs_);
      const Block block{p.begin, p.size(), 0, p.begin * kPanelLanes, static_cast<int>(end - (p.end - 1) * kPanelLanes)};
      form_block(block, gate, reset, thread);
    };
    const std::int64_t bytes = panels.size() * static_cast<std::int64_t>(a_.weighted.panels.panel_bytes.count());
    const std::int64_t units = bytes < kWorthThreads ? 1 : std::min<std::int64_t>(granules, 2 * thread_count(call_));
    if (units <= 1) return part(0, 1, 0);
    for_each_unit(call_, units, [&](std::int64_t unit, int thread) noexcept { part(unit, units, thread); });
  }

  void form_block(const Block& block, std::int64_t gate, bool reset, int thread) const noexcept {
    static constexpr std::int64_t kNoOffset = 0;
    TileJob job = make_job(call_, block);
    job.segment_offsets = &kNoOffset;
    job.depth = a_.hidden;
    TileRunner runner(tiles_, rooms_, thread);
    runner.begin(job, block.first_panel);
    for (std::int64_t b = 0; b < batches_; b += tiles_.rows) {
      TileRows rows;
      rows.count = static_cast<int>(std::min<std::int64_t>(tiles_.rows, batches_ - b));
      for (int m = 0; m < rows.count; ++m) {
        rows.a[m] = reset ? now(b + m) + gate * a_.hidden : h_before(b + m);
        rows.out[m] = sums(b + m) + block.channel;
        rows.residual[m] = nullptr;
      }
      runner.run(rows, job);
    }
    runner.finish(job);
  }

  void finish_gate(std::int64_t batch, std::int64_t gate, Interval<std::int64_t> units) const noexcept {
    const std::int64_t n = gate * a_.hidden + units.begin;
    const float* in = call_.inputs[0].view.at<const float>(time_ * batches_ + batch, 0) + n;
    const GateRun run(runs_, a_, units.size());
    const Place place{batch, units.begin, in, sums(batch) + n, now(batch) + n, values(batch, 0), values(batch, 1)};
    if (a_.cell == Cell::kGru) return finish_gru(run, gate, place);
    run.add(in, place.sums, place.x);
    if (a_.cell == Cell::kRnn) return run.apply(0, place.x, place.out);
    finish_lstm(run, gate, place);
  }

  /// Where the units of a gate lie; `x` and `y` are for intermediate values.
  struct Place {
    std::int64_t batch, unit;
    const float* in;
    const float* sums;
    float* out;
    float* x;
    float* y;
  };

  /// Gates z, r, h.
  void finish_gru(const GateRun& run, std::int64_t gate, const Place& at) const noexcept {
    const float* h = h_before(at.batch);
    const float* r = now(at.batch) + a_.hidden + at.unit;
    if (gate == 2 && a_.linear_before_reset) {
      run.multiply(r, at.sums, at.x);
      run.add(at.in, at.x, at.x);
    } else {
      run.add(at.in, at.sums, at.x);
    }
    if (gate == 0 || (gate == 1 && a_.linear_before_reset)) return run.apply(0, at.x, at.out);
    const float* old = at.y;
    if (h == nullptr)
      std::fill_n(at.y, a_.hidden - at.unit, 0.0f);
    else
      old = h + at.unit;
    run.apply(static_cast<std::size_t>(gate - 1), at.x, at.x);
    if (gate == 1) return run.multiply(at.x, old, at.out);
    const float* z = now(at.batch) + at.unit;
    run.multiply(z, old, at.y);
    run.one_less(z, at.out);
    run.multiply(at.out, at.x, at.x);
    run.add(at.x, at.y, at.out);
  }

  /// Gates i, f, c, o; x holds the sum of a gate's two products.
  void finish_lstm(const GateRun& run, std::int64_t gate, const Place& at) const noexcept {
    const float* c_old = c_before(at.batch);
    const float* c_new = now(at.batch) + 2 * a_.hidden + at.unit;
    const float* i = now(at.batch) + at.unit;
    const float* peeped = gate == 3 ? c_new : c_old == nullptr || gate == 2 ? nullptr : c_old + at.unit;
    constexpr std::int64_t kPeephole[] = {0, 2, 0, 1};  // ONNX has those of i, o, f
    if (peepholes_ != nullptr && peeped != nullptr) {
      run.multiply(peepholes_ + kPeephole[gate] * a_.hidden + at.unit, peeped, at.y);
      run.add(at.x, at.y, at.x);
    }
    if (gate == 1 && a_.input_forget) return run.one_less(i, at.out);
    if (gate < 2) return run.apply(0, at.x, at.out);
    if (gate == 3) {
      run.apply(0, at.x, at.x);
      run.apply(2, c_new, at.y);
      return run.multiply(at.x, at.y, at.out);
    }
    run.apply(1, at.x, at.x);
    if (c_old == nullptr) return run.multiply(i, at.x, at.out);
    run.multiply(i, at.x, at.x);
    run.multiply(i + a_.hidden, c_old + at.unit, at.y);
    run.add(at.x, at.y, at.out);
  }

  const KernelCall& call_;
  const TileTable& tiles_;
  const RunTable& runs_;
  const RecurrentParameters& a_;
  std::int64_t batches_;
  std::int64_t outputs_;
  float* workspace_;
  std::int64_t pitch_;
  NarrowRooms rooms_;
  const float* peepholes_;
  std::int64_t time_ = 0;
};

}  // namespace

Bytes recurrent_workspace(const RecurrentParameters& parameters, const StepExtent& extent) noexcept {
  return Bytes(static_cast<std::uint64_t>(floats_of_sums(parameters, extent.channels)) * sizeof(float)) +
         NarrowRooms::bytes(narrow_turn(parameters, extent.threads));
}

CostFeatures recurrent_cost(const RecurrentParameters& parameters, const StepExtent& extent) noexcept {
  CostFeatures cost = weighted_cost(parameters.weighted, extent);
  // Each time step reads its panels again.
  cost.weight_bytes *= static_cast<std::uint64_t>(extent.rows.size() / parameters.batches);
  return cost;
}

void run_recurrent(const KernelCall& call, const RecurrentTable& table) noexcept { Recurrence(call, table).run(); }

}  // namespace sluice::kernels::weighted
