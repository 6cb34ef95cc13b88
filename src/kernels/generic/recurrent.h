// One time step of an RNN, GRU or LSTM, value by value: gates z, r, h of a GRU, i, f, c, o of an LSTM, each an array of `hidden` values;
// the last is the hidden state, the one before it the cell of an LSTM. Every value may follow from those before it in the same step.
//
// `Layer` says what only its owner knows: sum(gate, unit, state), the chain over the state with its bias, and function(i, x).
#pragma once

#include <cstdint>

#include "sluice/core/activation.h"

namespace sluice::kernels::generic {

struct CellForm {
  Cell cell = Cell::kLstm;
  std::int64_t hidden = 0;
  bool linear_before_reset = false;  // GRU: r multiplies the finished sum
  bool input_forget = false;         // LSTM: f = 1 - i
  const float* peepholes = nullptr;  // those of i, o, f

  std::int64_t gates() const noexcept { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }
};

/// The values of one time step, and what the one before left; null: nothing came before, which is zero.
struct CellState {
  float* now = nullptr;  // all gates
  const float* hidden_before = nullptr;
  const float* cell_before = nullptr;
};

template <class Layer>
class CellStep {
 public:
  CellStep(const CellForm& form, const Layer& layer, const CellState& state) noexcept : a_(form), layer_(layer), s_(state) {}

  /// Of one unit of a gate, whose product with the input is `in`.
  float value(std::int64_t gate, std::int64_t unit, float in) const noexcept {
    if (a_.cell == Cell::kRnn) return layer_.function(0, in + sum(gate, unit, s_.hidden_before));
    return a_.cell == Cell::kGru ? gru(gate, unit, in) : lstm(gate, unit, in + sum(gate, unit, s_.hidden_before));
  }

 private:
  float sum(std::int64_t gate, std::int64_t unit, const float* state) const noexcept { return layer_.sum(gate, unit, state); }
  float function(std::size_t i, float x) const noexcept { return layer_.function(i, x); }

  float gru(std::int64_t gate, std::int64_t unit, float in) const noexcept {
    const float h = s_.hidden_before == nullptr ? 0.0f : s_.hidden_before[unit];
    if (gate == 0) return function(0, in + sum(gate, unit, s_.hidden_before));
    if (gate == 1) {
      const float r = function(0, in + sum(gate, unit, s_.hidden_before));
      return a_.linear_before_reset ? r : r * h;
    }
    const float* r = s_.now + a_.hidden;
    const float x = a_.linear_before_reset ? in + r[unit] * sum(gate, unit, s_.hidden_before)
                                           : in + sum(gate, unit, s_.hidden_before == nullptr ? nullptr : r);
    const float z = s_.now[unit];
    return (1.0f - z) * function(1, x) + z * h;
  }

  /// `x` is the sum of a gate's two products.
  float lstm(std::int64_t gate, std::int64_t unit, float x) const noexcept {
    const float* i = s_.now;
    const float* f = s_.now + a_.hidden;
    const float* c = s_.now + 2 * a_.hidden;
    const float* peeped = gate == 3 ? c : gate == 2 ? nullptr : s_.cell_before;
    constexpr std::int64_t kPeephole[] = {0, 2, 0, 1};  // ONNX has those of i, o, f
    if (a_.peepholes != nullptr && peeped != nullptr) x = x + a_.peepholes[kPeephole[gate] * a_.hidden + unit] * peeped[unit];
    if (gate == 1 && a_.input_forget) return 1.0f - i[unit];
    if (gate < 2) return function(0, x);
    if (gate == 3) return function(0, x) * function(2, c[unit]);
    const float fresh = i[unit] * function(1, x);
    return s_.cell_before == nullptr ? fresh : fresh + f[unit] * s_.cell_before[unit];
  }

  const CellForm& a_;
  const Layer& layer_;
  const CellState& s_;
};

}  // namespace sluice::kernels::generic
