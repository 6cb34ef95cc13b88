// RNN, GRU, LSTM: X [T, B, I] (layout 1: [B, T, I]), W [D, gates * H, I], R [D, gates * H, H], B [D, 2 * gates * H], lengths, initial
// state.
//
// One direction after the other, one time step after the other; a state of each batch entry lies in the scratch.
#include "sluice/operators/generic/recurrent.h"

#include <utility>

#include "src/kernels/generic/chains.h"
#include "src/kernels/generic/recurrent.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/reference/functions.h"

namespace sluice::kernels::plain {
using namespace operators::generic::recurrent;
namespace {

/// Of one batch entry: the gates of this time step and of the one before, the products with the input, and those of a gate with the state.
std::uint64_t scratch(const PlainNode& node) noexcept {
  Sizes s;
  return sizes_of(node, s) != nullptr ? 0 : static_cast<std::uint64_t>((3 * s.gates + 1) * s.hidden) * sizeof(float);
}

/// Numbers as the importer stores them (lower_recurrent.cc). Those that kRecurrent has too are its own.
float activate(std::int64_t function, float x, float a, float b) noexcept {
  switch (function) {
    case 0:
      return reference::apply({Function::kSigmoid}, x);
    case 1:
      return reference::apply({Function::kTanh}, x);
    case 2:
      return reference::apply({Function::kRelu}, x);
    case 3:
      return a * x + b;  // Affine
    case 4:
      return reference::apply({Function::kLeakyRelu, a}, x);
    case 5:
      return x >= a ? x : 0.0f;  // ThresholdedRelu
    case 6:
      return a * std::tanh(b * x);  // ScaledTanh
    case 7:
      return reference::apply({Function::kHardSigmoid, a, b}, x);
    case 8:
      return reference::apply({Function::kElu, a}, x);
    case 9:
      return x / (1 + std::fabs(x));  // Softsign
    case 10:
      return reference::apply({Function::kSoftplus}, x);
    default:
      return x;
  }
}

class Direction {
 public:
  Direction(const PlainNode& node, const Sizes& s, std::int64_t d, std::byte* scratch_bytes) noexcept : node_(node), s_(s), d_(d) {
    const std::int64_t rows = s.gates * s.hidden;
    now_ = reinterpret_cast<float*>(scratch_bytes);
    before_ = now_ + rows;
    in_ = before_ + rows;
    sums_ = in_ + rows;
    form_ = {cell_of(node), s.hidden, node.integer(recurrent::kLinear) != 0, node.integer(kForget) != 0,
             node.has(7) ? node.in(7).as<const float>() + d * 3 * s.hidden : nullptr};
  }

  void begin(std::int64_t batch) noexcept {
    hidden_ = node_.has(5) ? node_.in(5).as<const float>() + state_at(batch) : nullptr;
    cell_ = node_.has(6) ? node_.in(6).as<const float>() + state_at(batch) : nullptr;
  }

  void step(const float* x) noexcept {
    std::swap(now_, before_);
    const generic::CellState state{now_, hidden_, cell_};
    const generic::CellStep cell(form_, *this, state);
    const float* w = node_.in(1).as<const float>() + d_ * s_.gates * s_.hidden * s_.inputs;
    for (std::int64_t gate = 0; gate < s_.gates; ++gate) {
      float* in = in_ + gate * s_.hidden;
      std::fill_n(in, s_.hidden, 0.0f);
      generic::run(
          {.x = {x}, .w = {w + row_of(gate) * s_.inputs}, .depth = s_.inputs, .count = s_.hidden, .row_step = s_.inputs, .sums = in});
      for (std::int64_t unit = 0; unit < s_.hidden; ++unit) {
        if (node_.has(3)) in[unit] += input_bias(gate, unit);
        now_[gate * s_.hidden + unit] = cell.value(gate, unit, in[unit]);
      }
    }
    hidden_ = now_ + (s_.gates - 1) * s_.hidden;
    cell_ = s_.gates == 4 ? now_ + 2 * s_.hidden : nullptr;
  }

  /// Null: zeros.
  const float* hidden() const noexcept { return hidden_; }
  const float* cell() const noexcept { return cell_; }
  std::int64_t state_at(std::int64_t batch) const noexcept {
    return (s_.batch_first ? batch * s_.directions + d_ : d_ * s_.batches + batch) * s_.hidden;
  }

  /// What CellStep asks, unit after unit: the chains of a gate are formed together.
  float sum(std::int64_t gate, std::int64_t unit, const float* state) const noexcept {
    if (unit == 0) {
      std::fill_n(sums_, s_.hidden, 0.0f);
      const float* r = node_.in(2).as<const float>() + (d_ * s_.gates * s_.hidden + row_of(gate)) * s_.hidden;
      if (state != nullptr)
        generic::run({.x = {state}, .w = {r}, .depth = s_.hidden, .count = s_.hidden, .row_step = s_.hidden, .sums = sums_});
    }
    if (!form_.linear_before_reset || form_.cell != Cell::kGru || !node_.has(3)) return sums_[unit];
    return sums_[unit] + (gate == 2 ? bias(s_.gates + 2, unit) : 0.0f);
  }

  /// Function `which` of this direction.
  float function(std::size_t which, float x) const noexcept {
    const auto clip = static_cast<float>(node_.real(kClip));
    if (clip > 0) x = std::clamp(x, -clip, clip);
    const std::size_t per_direction = node_.list(kActivations).size() / static_cast<std::size_t>(s_.directions);
    const std::size_t at = static_cast<std::size_t>(d_) * per_direction + which;
    return activate(node_.list(kActivations)[at], x, static_cast<float>(node_.real(kAlpha, at)), static_cast<float>(node_.real(kBeta, at)));
  }

 private:
  /// ONNX's place of a gate: of an LSTM it has i, o, f, c.
  std::int64_t place_of(std::int64_t gate) const noexcept {
    constexpr std::int64_t kLstmGates[] = {0, 2, 3, 1};
    return form_.cell == Cell::kLstm ? kLstmGates[gate] : gate;
  }
  std::int64_t row_of(std::int64_t gate) const noexcept { return place_of(gate) * s_.hidden; }
  float bias(std::int64_t place, std::int64_t unit) const noexcept {
    return node_.in(3).as<const float>()[(d_ * 2 * s_.gates + place) * s_.hidden + unit];
  }
  /// Both biases, but for the last gate of a GRU that multiplies its sum by r.
  float input_bias(std::int64_t gate, std::int64_t unit) const noexcept {
    const float of_input = bias(place_of(gate), unit);
    if (form_.linear_before_reset && form_.cell == Cell::kGru && gate == 2) return of_input;
    return of_input + bias(s_.gates + place_of(gate), unit);
  }

  const PlainNode& node_;
  const Sizes& s_;
  const std::int64_t d_;
  generic::CellForm form_;
  float *now_, *before_, *in_, *sums_;
  const float *hidden_ = nullptr, *cell_ = nullptr;
};

void copy_state(const float* state, std::int64_t count, float* to) noexcept {
  if (state == nullptr)
    std::fill_n(to, count, 0.0f);
  else
    std::copy_n(state, count, to);
}

PlainRefusal run_recurrent(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  Sizes s;
  sizes_of(node, s);
  if (node.result() == 0) std::fill_n(out.as<float>(), out.count(), 0.0f);
  PlainRefusal fault = nullptr;
  const std::int64_t operations = s.gates * s.hidden * (8 + (s.inputs + s.hidden) / 4);
  Glances glances;
  for (std::int64_t d = 0; d < s.directions; ++d) {
    Direction direction(node, s, d, scratch_bytes);
    const bool backwards = node.integer(kDirection) == 1 || d == 1;
    for (std::int64_t b = 0; b < s.batches; ++b) {
      std::int64_t length = node.has(4) ? integer_at(node.in(4), b) : s.times;
      if (length < 0 || length > s.times) {
        fault = "a length is longer than the sequence";
        length = s.times;
      }
      direction.begin(b);
      for (std::int64_t k = 0; k < length; ++k) {
        const std::int64_t t = backwards ? length - 1 - k : k;
        if (glances.over(operations)) return kRunEnded;
        direction.step(node.in(0).as<const float>() + (s.batch_first ? b * s.times + t : t * s.batches + b) * s.inputs);
        if (node.result() != 0) continue;
        const std::int64_t at = s.batch_first ? (b * s.times + t) * s.directions + d : (t * s.directions + d) * s.batches + b;
        std::copy_n(direction.hidden(), s.hidden, out.as<float>() + at * s.hidden);
      }
      if (node.result() != 0)
        copy_state(node.result() == 1 ? direction.hidden() : direction.cell(), s.hidden, out.as<float>() + direction.state_at(b));
    }
  }
  return fault;
}

constexpr GenericKernel kRecurrentKernels[] = {
    {"RNN", run_recurrent, scratch},
    {"GRU", run_recurrent, scratch},
    {"LSTM", run_recurrent, scratch},
};

}  // namespace

std::span<const GenericKernel> recurrent_kernels() noexcept { return kRecurrentKernels; }

}  // namespace sluice::kernels::plain
