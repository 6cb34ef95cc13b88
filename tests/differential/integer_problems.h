// One-node graphs of the class int8 with drawn values: what runs them is kernel_harness.h.
#pragma once

#include <array>

#include "tests/differential/kernel_harness.h"

namespace sluice::kernels::test {

/// Which values are drawn: all of a type, or only the ends of its range, which make the largest sums.
enum class Drawn { kAll, kExtremes };

inline std::uint32_t add_quantisation(Problem& p, float scale, std::int32_t zero) {
  model::Quantisation q;
  q.scales = {scale};
  q.zero_points = {zero};
  p.graph.quantisations.push_back(q);
  return static_cast<std::uint32_t>(p.graph.quantisations.size() - 1);
}

struct Quantised {
  float scale = 1.0f;
  std::int32_t zero = 0;
};

inline void add_integer_input(Problem& p, const Shape& shape, const Quantised& q, Drawn drawn, std::mt19937& random) {
  p.graph.tensors.push_back({.name = "in" + std::to_string(p.inputs.size()), .dtype = DType::kU8, .shape = shape, .weight = {}});
  p.graph.tensors.back().quantisation = add_quantisation(p, q.scale, q.zero);
  p.node().inputs.push_back(TensorId(p.graph.tensors.size() - 1));
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.element_count()));
  for (std::byte& b : bytes) b = std::byte(drawn == Drawn::kAll ? random() % 256 : random() % 2 * 255);
  p.inputs.push_back(std::move(bytes));
}

inline void set_output(Problem& p, const Shape& shape, DType dtype, const Quantised& q = {}) {
  p.graph.tensors.push_back({.name = "out", .dtype = dtype, .shape = shape, .weight = {}});
  if (dtype == DType::kU8) p.graph.tensors.back().quantisation = add_quantisation(p, q.scale, q.zero);
  p.node().outputs.push_back(TensorId(p.graph.tensors.size() - 1));
}

inline Problem integer_node(model::OpKind op, const model::Attributes& attributes) {
  Problem p;
  p.graph.nodes.resize(1);
  p.node().name = "node";
  p.node().op = op;
  p.node().numeric = model::NumericClass::kInt8;
  p.node().attributes = attributes;
  return p;
}

inline void add_weight_bytes(Problem& p, model::Weight weight, std::vector<std::byte> bytes) {
  bytes.resize(align_up(bytes.size(), 64));
  weight.bytes = Bytes(bytes.size());
  if (weight.panel_layout.layout == WeightLayout::kPlain) weight.panel_bytes = weight.bytes;
  p.graph.weights.push_back(std::move(weight));
  p.node().weights.push_back(WeightId(p.graph.weights.size() - 1));
  p.weights.push_back(std::move(bytes));
}

template <class T>
void add_plain_values(Problem& p, DType dtype, const std::vector<T>& values) {
  model::Weight weight;
  weight.name = "plain";
  weight.panel_layout.dtype = dtype;
  weight.shape = Shape{static_cast<std::int64_t>(values.size())};
  add_weight_bytes(p, weight, bytes_of(values));
}

/// Weight (output n, tap, k) at values[(n * taps + tap) * depth + k].
struct IntegerWeight {
  std::int64_t outputs = 1, taps = 1, depth = 1, outputs_per_group = 1;
  bool depthwise = false;
  std::vector<std::int8_t> values;
};

inline void add_integer_panels(Problem& p, const IntegerWeight& w) {
  model::Weight weight;
  weight.name = "packed";
  const std::int64_t interleave = w.depthwise ? 1 : 4, depth = (w.depth + interleave - 1) / interleave * interleave;
  weight.panel_layout = {.layout = w.depthwise ? WeightLayout::kDepthwise : WeightLayout::kPanels,
                         .dtype = DType::kI8,
                         .k_interleave = static_cast<std::uint8_t>(interleave)};
  weight.shape = Shape{w.outputs, w.taps, w.depth};
  weight.panels = panel_count(w.outputs, w.outputs_per_group);
  const auto panel_bytes = align_up(static_cast<std::uint64_t>(w.taps * depth * kPanelLanes), 64);
  weight.panel_bytes = Bytes(panel_bytes);
  std::vector<std::byte> bytes(panel_bytes * static_cast<std::uint64_t>(weight.panels));
  for (std::int64_t n = 0; n < w.outputs; ++n) {
    const std::int64_t lane = (w.outputs_per_group < kPanelLanes ? n : n % w.outputs_per_group) % kPanelLanes;
    const std::int64_t panel = panels_of_channels({n - lane, n + 1}, w.outputs_per_group).begin;
    for (std::int64_t i = 0; i < w.taps * w.depth; ++i) {
      const std::int64_t at = i / w.depth * depth + i % w.depth;
      const std::int64_t byte = (at / interleave * kPanelLanes + lane) * interleave + at % interleave;
      bytes[static_cast<std::size_t>(panel * static_cast<std::int64_t>(panel_bytes) + byte)] =
          static_cast<std::byte>(w.values[static_cast<std::size_t>(n * w.taps * w.depth + i)]);
    }
  }
  add_weight_bytes(p, weight, std::move(bytes));
}

/// How a product's values are drawn and what becomes of its sums.
struct ProductOf {
  DType out = DType::kU8;
  std::int32_t zero_in = 119;
  std::int32_t zero_out = 3;
  Drawn drawn = Drawn::kAll;
  bool residual = false;
  model::Activation activation;
  float larger = 1.0f;  // multipliers
  bool residual_first = false;
  bool of_i8 = false;  // as the residual is added
  int run_time = 0;    // 1: the input's zero point comes at run time; 2: a scale too; 3: one for each channel
};

/// Bytes or floats that come at run time behind the other inputs.
template <class T>
void add_run_time_input(Problem& p, DType dtype, const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  p.graph.tensors.push_back({.name = "in" + std::to_string(p.inputs.size()), .dtype = dtype, .shape = shape, .weight = {}});
  p.node().inputs.push_back(TensorId(p.graph.tensors.size() - 1));
  p.inputs.push_back(bytes_of(values));
}

/// Weights, bias and multipliers that spread the sums over somewhat more than the range of u8.
inline void add_products(Problem& p, IntegerWeight w, const Shape& out, const ProductOf& how, std::mt19937& random) {
  w.values.resize(static_cast<std::size_t>(w.outputs * w.taps * w.depth));
  for (std::int8_t& value : w.values)
    value = static_cast<std::int8_t>(how.drawn == Drawn::kAll ? static_cast<int>(random() % 256) - 128 : random() % 2 == 0 ? -128 : 127);
  add_integer_panels(p, w);
  const auto lanes = static_cast<std::size_t>(panel_count(w.outputs, w.outputs_per_group) * kPanelLanes);
  std::vector<std::int32_t> bias(lanes);
  std::vector<float> multipliers(lanes);
  const float spread = 128.0f * 74.0f * std::sqrt(static_cast<float>(w.taps * w.depth));
  for (std::size_t n = 0; n < static_cast<std::size_t>(w.outputs); ++n) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(w.taps * w.depth); ++i)
      sum += w.values[n * static_cast<std::size_t>(w.taps * w.depth) + i];
    bias[n] = static_cast<std::int32_t>(random() % 2001) - 1000 - static_cast<std::int32_t>(sum) * how.zero_in;
    if (how.run_time > 0) bias[n] = static_cast<std::int32_t>(sum);
    multipliers[n] = static_cast<float>(60 + random() % 80) / spread * how.larger;
  }
  add_plain_values(p, DType::kI32, bias);
  if (how.out != DType::kI32) add_plain_values(p, DType::kF32, multipliers);
  p.node().epilogue = {true, how.residual, how.residual_first, how.of_i8, how.activation};
  if (how.run_time > 0) {
    p.graph.tensors[p.node().inputs[0].index()].quantisation = model::kNoQuantisation;
    add_run_time_input(p, DType::kU8, std::vector<std::uint8_t>{static_cast<std::uint8_t>(how.zero_in)});
    const std::size_t scales = how.run_time == 3 ? static_cast<std::size_t>(out.back()) : 1;
    if (how.run_time > 1) add_run_time_input(p, DType::kF32, std::vector<float>(multipliers.begin(), multipliers.begin() + scales));
  }
  if (how.residual) {
    add_integer_input(p, out, {0.031f, 77}, how.drawn, random);
    p.node().quantisation = add_quantisation(p, 0.027f, 130);
  }
  set_output(p, out, how.out, {0.041f, how.zero_out});
}

inline Problem integer_conv(const model::ConvAttributes& a, std::int64_t images = 1, const ProductOf& how = {}) {
  const model::Window& w = a.window;
  std::mt19937 random(static_cast<unsigned>(w.in_h * 31 + w.in_w + a.in_channels * 7 + a.out_channels));
  Problem p = integer_node(model::OpKind::kConv, a);
  add_integer_input(p, Shape{images, w.in_h, w.in_w, a.in_channels}, {0.02f, how.zero_in}, how.drawn, random);
  add_products(p,
               {.outputs = a.out_channels,
                .taps = w.taps(),
                .depth = a.in_channels / a.groups,
                .outputs_per_group = a.out_channels / a.groups,
                .depthwise = a.depthwise()},
               Shape{images, w.out_h, w.out_w, a.out_channels}, how, random);
  return p;
}

inline Problem integer_dense(const Shape& in, std::int64_t outputs, const ProductOf& how = {}) {
  std::mt19937 random(static_cast<unsigned>(in.element_count() + outputs));
  Problem p = integer_node(model::OpKind::kDense, model::DenseAttributes{in.back(), outputs});
  add_integer_input(p, in, {0.02f, how.zero_in}, how.drawn, random);
  Shape out = in;
  out[in.rank() - 1] = outputs;
  add_products(p, {.outputs = outputs, .depth = in.back(), .outputs_per_group = outputs}, out, how, random);
  return p;
}

/// A product of two activations. `zero_b` is the right one's zero point; `how` says the left one's.
inline Problem integer_matmul(const Shape& a, const Shape& b, const Shape& out, std::int32_t zero_b, const ProductOf& how = {}) {
  std::mt19937 random(static_cast<unsigned>(a.element_count() + b.element_count() * 3));
  Problem p = integer_node(model::OpKind::kMatMul, std::monostate());
  const float spread = 70.0f * 70.0f * std::sqrt(static_cast<float>(a.back()));
  add_integer_input(p, a, {100.0f / spread, how.zero_in}, how.drawn, random);
  add_integer_input(p, b, {0.041f, zero_b}, how.drawn, random);
  if (how.run_time > 0) {
    for (const std::int32_t zero : {how.zero_in, zero_b})
      add_run_time_input(p, DType::kU8, std::vector<std::uint8_t>{static_cast<std::uint8_t>(zero)});
    if (how.run_time > 1) add_run_time_input(p, DType::kF32, std::vector<float>(how.run_time == 3 ? out.back() : 1, 0.37f));
  }
  set_output(p, out, how.out, {0.041f, how.zero_out});
  return p;
}

}  // namespace sluice::kernels::test
