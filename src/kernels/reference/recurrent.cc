// One direction of an RNN, GRU or LSTM behind its input matrix: time step after time step, channel after channel, as RecurrentAttributes
// lays the gates out. Nothing runs beside anything else here: each value may follow from the one before.
#include <cmath>

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
        peepholes_(a_.peepholes ? reinterpret_cast<const float*>(call.weights.back().data) : nullptr) {}

  void run() noexcept {
    const std::int64_t first = call_.rows.begin / batches_, end = call_.rows.end / batches_;
    for (std::int64_t i = 0; i < end - first; ++i) {
      const std::int64_t time = a_.reverse ? end - 1 - i : first + i;
      for (std::int64_t batch = 0; batch < batches_; ++batch) {
        now_ = call_.outputs[0].view.at<float>(time * batches_ + batch, 0);
        const float* in = call_.inputs[0].view.at<const float>(time * batches_ + batch, 0);
        h_before_ = before(time, batch, gate_count() - 1, a_.first_hidden ? 1 : 0);
        c_before_ = before(time, batch, gate_count() - 2, a_.first_cell ? static_cast<int>(call_.inputs.size()) - 1 : 0);
        for (std::int64_t n = call_.channels.begin; n < call_.channels.end; ++n) now_[n] = value(n / a_.hidden, n % a_.hidden, in[n]);
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

  float sum(std::int64_t n, const float* state) const noexcept {
    float sum = 0.0f;
    const float* column = weights_.channel(n);
    for (std::int64_t k = 0; state != nullptr && k < a_.hidden; ++k) sum = std::fma(state[k], column[k * kPanelLanes], sum);
    return bias_ == nullptr ? sum : sum + bias_[n];
  }

  float function(std::size_t i, float x) const noexcept { return apply(a_.functions[i], x); }

  float value(std::int64_t gate, std::int64_t unit, float in) const noexcept {
    const std::int64_t n = gate * a_.hidden + unit;
    if (a_.cell == Cell::kRnn) return function(0, in + sum(n, h_before_));
    return a_.cell == Cell::kGru ? gru(gate, unit, in) : lstm(gate, unit, in + sum(n, h_before_));
  }

  /// Gates z, r, h.
  float gru(std::int64_t gate, std::int64_t unit, float in) const noexcept {
    const std::int64_t n = gate * a_.hidden + unit;
    const float h = h_before_ == nullptr ? 0.0f : h_before_[unit];
    if (gate == 0) return function(0, in + sum(n, h_before_));
    if (gate == 1) return a_.linear_before_reset ? function(0, in + sum(n, h_before_)) : function(0, in + sum(n, h_before_)) * h;
    const float* r = now_ + a_.hidden;
    const float x = a_.linear_before_reset ? in + r[unit] * sum(n, h_before_) : in + sum(n, h_before_ == nullptr ? nullptr : r);
    const float z = now_[unit];
    return (1.0f - z) * function(1, x) + z * h;
  }

  /// Gates i, f, c, o; `x` is the sum of a gate's two products.
  float lstm(std::int64_t gate, std::int64_t unit, float x) const noexcept {
    const float* i = now_;
    const float* f = now_ + a_.hidden;
    const float* c = now_ + 2 * a_.hidden;
    const float* peeped = gate == 3 ? c : gate == 2 ? nullptr : c_before_;
    constexpr std::int64_t kPeephole[] = {0, 2, 0, 1};  // ONNX has those of i, o, f
    if (peepholes_ != nullptr && peeped != nullptr) x = x + peepholes_[kPeephole[gate] * a_.hidden + unit] * peeped[unit];
    if (gate == 1 && a_.input_forget) return 1.0f - i[unit];
    if (gate < 2) return function(0, x);
    if (gate == 3) return function(0, x) * function(2, c[unit]);
    const float fresh = i[unit] * function(1, x);
    return c_before_ == nullptr ? fresh : fresh + f[unit] * c_before_[unit];
  }

  const KernelCall& call_;
  const operators::RecurrentParameters& a_;
  std::int64_t batches_;
  PanelReader weights_;
  const float* bias_;
  const float* peepholes_;
  float* now_ = nullptr;
  const float* h_before_ = nullptr;
  const float* c_before_ = nullptr;
};

}  // namespace

void recurrent(const KernelCall& call) noexcept { Recurrence(call).run(); }

}  // namespace sluice::kernels::reference
