// One direction of an RNN, GRU or LSTM behind its input matrix: time step after time step, channel after channel, as RecurrentAttributes
// lays the gates out. Nothing runs beside anything else here: each value may follow from the one before.
#include "src/kernels/generic/recurrent.h"

#include "src/kernels/generic/chains.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

class Recurrence {
 public:
  explicit Recurrence(const KernelCall& call) noexcept
      : call_(call),
        a_(call.parameters<operators::RecurrentParameters>()),
        batches_(a_.batches),
        weights_(call.weights[0], a_.gates() * a_.hidden, 1, a_.hidden),
        bias_(a_.weighted.epilogue.has_bias ? reinterpret_cast<const float*>(call.weights[1].data) : nullptr),
        form_{a_.cell, a_.hidden, a_.linear_before_reset, a_.input_forget,
              a_.peepholes ? reinterpret_cast<const float*>(call.weights.back().data) : nullptr} {}

  /// What CellStep asks.
  float sum(std::int64_t gate, std::int64_t unit, const float* state) const noexcept {
    const std::int64_t n = gate * a_.hidden + unit;
    const float sum = generic::chain(0.0f, {state}, {weights_.channel(n), kPanelLanes}, state == nullptr ? 0 : a_.hidden);
    return bias_ == nullptr ? sum : sum + bias_[n];
  }
  float function(std::size_t i, float x) const noexcept { return apply(a_.functions[i], x); }

  void run() noexcept {
    const std::int64_t first = call_.rows.begin / batches_, end = call_.rows.end / batches_;
    for (std::int64_t i = 0; i < end - first; ++i) {
      const std::int64_t time = a_.reverse ? end - 1 - i : first + i;
      for (std::int64_t batch = 0; batch < batches_; ++batch) {
        generic::CellState state;
        state.now = call_.outputs[0].view.at<float>(time * batches_ + batch, 0);
        const float* in = call_.inputs[0].view.at<const float>(time * batches_ + batch, 0);
        state.hidden_before = before(time, batch, gate_count() - 1, a_.first_hidden ? 1 : 0);
        state.cell_before = before(time, batch, gate_count() - 2, a_.first_cell ? static_cast<int>(call_.inputs.size()) - 1 : 0);
        const generic::CellStep cell(form_, *this, state);
        for (std::int64_t n = call_.channels.begin; n < call_.channels.end; ++n)
          state.now[n] = cell.value(n / a_.hidden, n % a_.hidden, in[n]);
      }
    }
  }

 private:
  int gate_count() const noexcept { return static_cast<int>(a_.gates()); }

  /// What gate `gate` held a time step ago; at the first one input `first`, or nothing: zero.
  const float* before(std::int64_t time, std::int64_t batch, int gate, int first) const noexcept {
    if (gate < 0) return nullptr;
    const std::int64_t earlier = a_.reverse ? time + 1 : time - 1;
    if (earlier >= 0 && earlier < call_.outputs[0].shape[0])
      return call_.outputs[0].view.at<const float>(earlier * batches_ + batch, 0) + gate * a_.hidden;
    return first == 0 ? nullptr : call_.inputs[static_cast<std::size_t>(first)].view.at<const float>(batch, 0);
  }

  const KernelCall& call_;
  const operators::RecurrentParameters& a_;
  std::int64_t batches_;
  PanelReader weights_;
  const float* bias_;
  generic::CellForm form_;
};

}  // namespace

void recurrent(const KernelCall& call) noexcept { Recurrence(call).run(); }

}  // namespace sluice::kernels::reference
