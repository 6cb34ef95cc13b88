// RNN, GRU, LSTM: X [T, B, I] (layout 1: [B, T, I]), W [D, gates * H, I], R [D, gates * H, H], B [D, 2 * gates * H], lengths, initial
// state.
//
// One direction after the other, one time step after the other; a state of each batch entry lies in the scratch.
#include "sluice/operators/generic/recurrent.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::recurrent;
namespace {

/// Of one batch entry: hidden state, cell, gates, and the reset hidden state of a GRU.
std::uint64_t scratch(const PlainNode& node) noexcept {
  Sizes s;
  return sizes_of(node, s) != nullptr ? 0 : static_cast<std::uint64_t>((3 + 2 * s.gates) * s.hidden) * sizeof(float);
}

/// Numbers as the importer stores them (lower_recurrent.cc).
float activate(std::int64_t function, float x, float a, float b) noexcept {
  switch (function) {
    case 0:
      return 1.0f / (1.0f + std::exp(-x));  // Sigmoid
    case 1:
      return std::tanh(x);
    case 2:
      return x > 0 ? x : 0.0f;  // Relu
    case 3:
      return a * x + b;  // Affine
    case 4:
      return x < 0 ? a * x : x;  // LeakyRelu
    case 5:
      return x >= a ? x : 0.0f;  // ThresholdedRelu
    case 6:
      return a * std::tanh(b * x);  // ScaledTanh
    case 7:
      return std::clamp(a * x + b, 0.0f, 1.0f);  // HardSigmoid
    case 8:
      return x < 0 ? a * std::expm1(x) : x;  // Elu
    case 9:
      return x / (1 + std::fabs(x));  // Softsign
    case 10:
      return std::log1p(std::exp(x));  // Softplus
    default:
      return x;
  }
}

class Direction {
 public:
  Direction(const PlainNode& node, const Sizes& s, std::int64_t d, std::byte* scratch_bytes) noexcept : node_(node), s_(s), d_(d) {
    auto* at = reinterpret_cast<float*>(scratch_bytes);
    h_ = at;
    c_ = at + s.hidden;
    reset_ = at + 2 * s.hidden;
    gates_ = at + 3 * s.hidden;
    recurrent_ = gates_ + s.gates * s.hidden;
  }

  void begin(std::int64_t batch) noexcept {
    for (std::int64_t i = 0; i < s_.hidden; ++i) {
      h_[i] = node_.has(5) ? node_.in(5).as<const float>()[state_at(batch) + i] : 0.0f;
      c_[i] = node_.has(6) ? node_.in(6).as<const float>()[state_at(batch) + i] : 0.0f;
    }
  }

  void step(const float* x) noexcept {
    const std::int64_t rows = s_.gates * s_.hidden;
    const float* w = node_.in(1).as<const float>() + d_ * rows * s_.inputs;
    for (std::int64_t r = 0; r < rows; ++r) {
      gates_[r] = dot(w + r * s_.inputs, x, s_.inputs) + bias(r);
      recurrent_[r] = dot(weights_of_state(r), h_, s_.hidden) + bias(rows + r);
    }
    switch (cell_of(node_)) {
      case Cell::kRnn:
        for (std::int64_t i = 0; i < s_.hidden; ++i) h_[i] = f(0, gates_[i] + recurrent_[i]);
        return;
      case Cell::kGru:
        return step_gru();
      case Cell::kLstm:
        return step_lstm();
    }
  }

  const float* hidden() const noexcept { return h_; }
  const float* cell() const noexcept { return c_; }
  std::int64_t state_at(std::int64_t batch) const noexcept {
    return (s_.batch_first ? batch * s_.directions + d_ : d_ * s_.batches + batch) * s_.hidden;
  }

 private:
  static float dot(const float* a, const float* b, std::int64_t count) noexcept {
    // Eight chains, so that the compiler may use its vectors; their number is fixed, so that the result is.
    std::array<float, 8> sums{};
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8)
      for (std::size_t l = 0; l < 8; ++l) sums[l] += a[i + static_cast<std::int64_t>(l)] * b[i + static_cast<std::int64_t>(l)];
    float sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    for (; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  const float* weights_of_state(std::int64_t row) const noexcept {
    return node_.in(2).as<const float>() + (d_ * s_.gates * s_.hidden + row) * s_.hidden;
  }
  float bias(std::int64_t row) const noexcept {
    return node_.has(3) ? node_.in(3).as<const float>()[d_ * 2 * s_.gates * s_.hidden + row] : 0.0f;
  }
  float peephole(std::int64_t gate, std::int64_t i) const noexcept {
    return node_.has(7) ? node_.in(7).as<const float>()[(d_ * 3 + gate) * s_.hidden + i] : 0.0f;
  }

  /// Function `which` of this direction.
  float f(std::size_t which, float x) const noexcept {
    const auto clip = static_cast<float>(node_.real(kClip));
    if (clip > 0) x = std::clamp(x, -clip, clip);
    const std::size_t per_direction = node_.list(kActivations).size() / static_cast<std::size_t>(s_.directions);
    const std::size_t at = static_cast<std::size_t>(d_) * per_direction + which;
    return activate(node_.list(kActivations)[at], x, static_cast<float>(node_.real(kAlpha, at)), static_cast<float>(node_.real(kBeta, at)));
  }

  /// Gates z, r, h.
  void step_gru() noexcept {
    const std::int64_t n = s_.hidden;
    for (std::int64_t i = 0; i < 2 * n; ++i) gates_[i] = f(0, gates_[i] + recurrent_[i]);
    if (node_.integer(kLinear) != 0) {
      for (std::int64_t i = 0; i < n; ++i) gates_[2 * n + i] = f(1, gates_[2 * n + i] + gates_[n + i] * recurrent_[2 * n + i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) reset_[i] = gates_[n + i] * h_[i];
      for (std::int64_t i = 0; i < n; ++i)
        gates_[2 * n + i] = f(1, gates_[2 * n + i] + dot(weights_of_state(2 * n + i), reset_, n) + bias(5 * n + i));
    }
    for (std::int64_t i = 0; i < n; ++i) h_[i] = (1 - gates_[i]) * gates_[2 * n + i] + gates_[i] * h_[i];
  }

  /// Gates i, o, f, c.
  void step_lstm() noexcept {
    const std::int64_t n = s_.hidden;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto gate = [&](std::int64_t g) { return gates_[g * n + j] + recurrent_[g * n + j]; };
      const float i = f(0, gate(0) + peephole(0, j) * c_[j]);
      const float forget = node_.integer(kForget) != 0 ? 1 - i : f(0, gate(2) + peephole(2, j) * c_[j]);
      c_[j] = forget * c_[j] + i * f(1, gate(3));
      h_[j] = f(0, gate(1) + peephole(1, j) * c_[j]) * f(2, c_[j]);
    }
  }

  const PlainNode& node_;
  const Sizes& s_;
  const std::int64_t d_;
  float *h_, *c_, *reset_, *gates_, *recurrent_;
};

PlainRefusal run(const PlainNode& node, const PlainTensor& out, std::byte* scratch_bytes) noexcept {
  Sizes s;
  sizes_of(node, s);
  if (node.result() == 0) std::fill_n(out.as<float>(), out.count(), 0.0f);
  PlainRefusal fault = nullptr;
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
        direction.step(node.in(0).as<const float>() + (s.batch_first ? b * s.times + t : t * s.batches + b) * s.inputs);
        if (node.result() != 0) continue;
        const std::int64_t at = s.batch_first ? (b * s.times + t) * s.directions + d : (t * s.directions + d) * s.batches + b;
        std::copy_n(direction.hidden(), s.hidden, out.as<float>() + at * s.hidden);
      }
      if (node.result() != 0)
        std::copy_n(node.result() == 1 ? direction.hidden() : direction.cell(), s.hidden, out.as<float>() + direction.state_at(b));
    }
  }
  return fault;
}

constexpr GenericKernel kKernels[] = {
    {"RNN", run, scratch},
    {"GRU", run, scratch},
    {"LSTM", run, scratch},
};

}  // namespace

std::span<const GenericKernel> recurrent_kernels() noexcept { return kKernels; }

}  // namespace sluice::kernels::plain
