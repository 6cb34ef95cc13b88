// Runs any kernel on a one-node graph, cut and laid out in any way, and compares it with the reference.
//
//     Problem p = conv_problem({...});                       a node, its weights packed, seeded values
//     check_bits(p, kernel, {.rows = 3, .pixel_gap = 5});    the same bits as the reference, uncut, on dense views
//
// `run` pads every view: gaps and margins of inputs hold NaN, so that a value read from there shows; those of the output hold a pattern
// that must be there afterwards (K1). With `rings`, inputs and output keep no more rows than a step needs, and all others are NaN.
#pragma once

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sluice/core/threads.h"
#include "sluice/kernels/packing.h"
#include "sluice/kernels/reference.h"

namespace sluice::kernels::test {

/// Can this CPU run code for `isa`, under the current SLUICE_ISA?
inline bool available(Isa isa) {
#if defined(__aarch64__)
  return isa <= Isa::kNeon && isa <= active_isa();
#else
  return isa != Isa::kNeon && isa <= active_isa();
#endif
}

/// Bytes on a 64-byte boundary, with the read tail behind them.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t size)
      : size_(size), data_(static_cast<std::byte*>(std::aligned_alloc(64, align_up(size + kReadTail.count(), 64))), std::free) {
    std::memset(data_.get(), 0xff, align_up(size + kReadTail.count(), 64));  // all ones is a NaN
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  void fill(std::uint32_t word) const {
    for (std::size_t i = 0; i + sizeof(word) <= size_; i += sizeof(word)) std::memcpy(data_.get() + i, &word, sizeof(word));
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte, void (*)(void*)> data_;
};

/// A graph of one node, and the bytes of all it reads: inputs dense, weights packed.
struct Problem {
  model::Graph graph;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> weights;
  std::vector<float> unpacked;  // the first weight as [outputs][depth][taps], before it was packed

  const model::Node& node() const { return graph.nodes[0]; }
  model::Node& node() { return graph.nodes[0]; }
  const Shape& shape(std::size_t input) const { return graph.tensor(node().inputs[input]).shape; }
  const model::Tensor& output() const { return graph.tensor(node().outputs[0]); }
};

/// How to cut the node into steps and how its tensors lie. Gaps count elements.
struct Cut {
  std::int64_t rows = 0;    // of a step; 0: all
  std::int64_t panels = 0;  // of a step; 0: all
  int threads = 1;
  std::int64_t pixel_gap = 0;
  std::int64_t row_gap = 0;
  bool rings = false;
  int in_place = -1;                             // the input that the output replaces
  bool derived = false;                          // transformed weights in place of the raw ones
  WeightReader* reader = nullptr;                // brings the first weight: the step is not given it
  std::uint32_t left_in_workspace = 0xffffffff;  // every word of it; this one is a NaN
};

// ---- making problems

inline std::vector<std::byte> random_bytes(const Shape& shape, DType dtype, std::mt19937& random) {
  const auto count = static_cast<std::size_t>(shape.element_count());
  std::vector<std::byte> bytes(count * size_of(dtype));
  std::uniform_real_distribution<float> real(-1.0f, 1.0f);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = real(random);
    const auto integer = static_cast<std::int64_t>(random() % 17) - 8;
    const void* from = dtype == DType::kF32 ? static_cast<const void*>(&value) : &integer;
    std::memcpy(bytes.data() + i * size_of(dtype), from, size_of(dtype));
  }
  return bytes;
}

inline void add_input(Problem& p, Shape shape, DType dtype, std::mt19937& random) {
  p.graph.tensors.push_back({.name = "in" + std::to_string(p.inputs.size()), .dtype = dtype, .shape = shape, .weight = {}});
  p.node().inputs.push_back(TensorId(p.graph.tensors.size() - 1));
  p.inputs.push_back(random_bytes(shape, dtype, random));
}

/// Any node without weights.
inline Problem plain_problem(model::OpKind op, const model::Attributes& attributes, const std::vector<Shape>& inputs, const Shape& out,
                             const model::Activation& activation = {}, DType dtype = DType::kF32) {
  std::mt19937 random(static_cast<unsigned>(out.element_count()));
  Problem p;
  p.graph.nodes.resize(1);
  p.node().name = "node";
  p.node().op = op;
  p.node().attributes = attributes;
  p.node().epilogue.activation = activation;
  for (const Shape& shape : inputs) add_input(p, shape, dtype, random);
  p.graph.tensors.push_back({.name = "out", .dtype = dtype, .shape = out, .weight = {}});
  p.node().outputs.push_back(TensorId(p.graph.tensors.size() - 1));
  return p;
}

inline void add_plain_weight(Problem& p, std::int64_t count, std::mt19937& random) {
  const Shape shape{count};
  std::vector<std::byte> bytes = random_bytes(shape, DType::kF32, random);
  bytes.resize(align_up(bytes.size(), 64));
  model::Weight weight;
  weight.name = "plain" + std::to_string(p.weights.size());
  weight.shape = shape;
  weight.bytes = weight.panel_bytes = Bytes(bytes.size());
  p.graph.weights.push_back(weight);
  p.node().weights.push_back(WeightId(p.graph.weights.size() - 1));
  p.weights.push_back(std::move(bytes));
}

inline void add_packed_weight(Problem& p, PackSource source, bool depthwise, std::mt19937& random) {
  const Shape shape{source.outputs, source.taps, source.depth};
  const std::vector<std::byte> values = random_bytes(shape, DType::kF32, random);
  source.data = values.data();
  source.output_stride = source.taps * source.depth;
  source.group_stride = source.outputs_per_group * source.output_stride;
  source.tap_stride = 1;
  source.k_outer_stride = source.taps;
  model::Weight weight;
  weight.name = "packed";
  (depthwise ? describe_depthwise : describe_panels)(source, shape.dims(), weight);
  std::vector<std::byte> packed(weight.bytes.count());
  (depthwise ? pack_depthwise : pack_panels)(source, {0, weight.panels}, packed);
  p.graph.weights.push_back(weight);
  p.node().weights.push_back(WeightId(p.graph.weights.size() - 1));
  p.weights.push_back(std::move(packed));
  p.unpacked.resize(values.size() / sizeof(float));
  std::memcpy(p.unpacked.data(), values.data(), values.size());
}

/// out_h and out_w of a convolution or pool, the rest of the window given.
inline model::Window with_output(model::Window w) {
  w.out_h = (w.in_h + w.pad_top + w.pad_bottom - (w.kernel_h - 1) * w.dilation_h - 1) / w.stride_h + 1;
  w.out_w = (w.in_w + w.pad_left + w.pad_right - (w.kernel_w - 1) * w.dilation_w - 1) / w.stride_w + 1;
  return w;
}

/// out_h and out_w of a transposed convolution.
inline model::Window with_transposed_output(model::Window w) {
  w.out_h = (w.in_h - 1) * w.stride_h + (w.kernel_h - 1) * w.dilation_h + 1 - w.pad_top - w.pad_bottom;
  w.out_w = (w.in_w - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1 - w.pad_left - w.pad_right;
  return w;
}

inline void add_epilogue(Problem& p, const model::Epilogue& epilogue, std::mt19937& random) {
  p.node().epilogue = epilogue;
  if (epilogue.has_bias) add_plain_weight(p, align_up(static_cast<std::uint64_t>(p.output().shape.back()), 16), random);
  if (epilogue.has_residual) add_input(p, p.output().shape, DType::kF32, random);
}

/// kConv or kConvTranspose, the window's output already computed.
inline Problem conv_problem(const model::ConvAttributes& a, std::int64_t images = 1, const model::Epilogue& epilogue = {},
                            model::OpKind op = model::OpKind::kConv) {
  const model::Window& w = a.window;
  Problem p = plain_problem(op, a, {Shape{images, w.in_h, w.in_w, a.in_channels}}, Shape{images, w.out_h, w.out_w, a.out_channels});
  std::mt19937 random(5);
  const std::vector<std::int32_t> order = op == model::OpKind::kConvTranspose ? transposed_tap_order(w) : std::vector<std::int32_t>{};
  add_packed_weight(p,
                    {.outputs = a.out_channels,
                     .taps = w.taps(),
                     .depth = a.in_channels / a.groups,
                     .outputs_per_group = a.out_channels / a.groups,
                     .tap_order = order},
                    a.depthwise(), random);
  add_epilogue(p, epilogue, random);
  return p;
}

/// Replaces the first weight by drawn values of so many bits, in quantised panels (`first`), and by the floats that they stand for, in
/// panels of floats (`second`). Scales are one for each `block` inputs of an output; 0: one for all.
inline std::pair<Problem, Problem> with_quantised_weight(const Problem& p, int bits, std::int64_t block = 0) {
  const auto* conv = std::get_if<model::ConvAttributes>(&p.node().attributes);
  const Shape shape = p.graph.weights[0].shape;  // [outputs, taps, depth], or [outputs, depth]
  PackSource source{.outputs = shape[0], .taps = conv == nullptr ? 1 : shape[1], .depth = shape.back()};
  source.outputs_per_group = conv == nullptr ? shape[0] : shape[0] / conv->groups;
  source.output_stride = source.taps * source.depth;
  source.group_stride = source.outputs_per_group * source.output_stride;
  source.tap_stride = 1;
  source.k_outer_stride = source.taps;
  std::vector<std::int32_t> order;
  if (p.node().op == model::OpKind::kConvTranspose) order = transposed_tap_order(conv->window);
  source.tap_order = order;

  std::mt19937 random(9);
  QuantisedSource quantised{.where = source, .bits = bits};
  quantised.order = {.inner = source.output_stride, .extent = source.outputs};
  if (block != 0) quantised.order = {.inner = source.taps, .extent = source.depth, .block = block};
  const std::int64_t count = source.outputs * source.output_stride;
  const auto draw = [&] { return static_cast<int>(random() % (1u << bits)) - (bits == 8 ? 128 : 0); };
  std::vector<std::int8_t> values;
  std::vector<float> scales, zeros, floats;
  for (std::int64_t i = 0; i <= quantised.order.of(count - 1); ++i) {
    scales.push_back(static_cast<float>(1 + random() % 50) / 500.0f);
    zeros.push_back(static_cast<float>(draw()));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto s = static_cast<std::size_t>(quantised.order.of(i));
    values.push_back(static_cast<std::int8_t>(draw()));
    floats.push_back((static_cast<float>(values.back()) - zeros[s]) * scales[s]);
  }
  quantised.values = values.data();
  quantised.scales = scales;
  quantised.zeros = zeros;
  source.data = reinterpret_cast<const std::byte*>(floats.data());
  std::pair<Problem, Problem> twins{p, p};
  REQUIRE(fit_groups(quantised));
  model::Weight& weight = twins.first.graph.weights[0];
  describe_quantised(quantised, shape.dims(), weight);
  twins.first.weights[0].resize(weight.bytes.count());
  pack_quantised(quantised, {0, weight.panels}, twins.first.weights[0]);
  pack_panels(source, {0, weight.panels}, twins.second.weights[0]);
  return twins;
}

/// `leading` axes, then K; N outputs.
inline Problem dense_problem(const Shape& in, std::int64_t outputs, const model::Epilogue& epilogue = {}) {
  Shape out = in;
  out[in.rank() - 1] = outputs;
  Problem p = plain_problem(model::OpKind::kDense, model::DenseAttributes{in.back(), outputs}, {in}, out);
  std::mt19937 random(6);
  add_packed_weight(p, {.outputs = outputs, .depth = in.back(), .outputs_per_group = outputs}, false, random);
  add_epilogue(p, epilogue, random);
  return p;
}

// ---- running them

/// A tensor's memory: `slots` rows with gaps, margins around them.
class PaddedTensor {
 public:
  PaddedTensor(const Shape& shape, DType dtype, const Cut& cut, std::int64_t ring_rows)
      : extents_(row_extents(shape)), size_(size_of(dtype)), buffer_(bytes(cut, ring_rows)) {
    view_ = {.data = buffer_.data() + kMargin,
             .rows = extents_.rows,
             .pixels = extents_.pixels,
             .channels = extents_.channels,
             .row_pitch = row_pitch(cut),
             .pixel_pitch = pixel_pitch(cut),
             .ring_rows = ring_rows,
             .dtype = dtype};
    written_.assign(buffer_.size(), false);
  }

  const RowView& view() const { return view_; }
  /// Every row NaN again.
  void clear() { std::memset(buffer_.data(), 0xff, buffer_.size()); }
  void put_rows(const std::vector<std::byte>& dense, RowRange rows) {
    each_pixel(rows, [&](std::byte* pixel, std::size_t at, std::size_t size) { std::memcpy(pixel, dense.data() + at, size); });
  }
  void get_rows(std::vector<std::byte>& dense, RowRange rows) {
    each_pixel(rows, [&](std::byte* pixel, std::size_t at, std::size_t size) {
      std::memcpy(dense.data() + at, pixel, size);
      std::fill_n(written_.begin() + (pixel - buffer_.data()), size, true);
    });
  }
  /// Is every byte that `get_rows` never visited still what it was?
  bool gaps_untouched() const {
    for (std::size_t i = 0; i < buffer_.size(); ++i)
      if (!written_[i] && buffer_.data()[i] != std::byte{0xff}) return false;
    return true;
  }

 private:
  static constexpr std::int64_t kMargin = 64;

  std::int64_t pixel_pitch(const Cut& cut) const { return (extents_.channels + cut.pixel_gap) * size_; }
  std::int64_t row_pitch(const Cut& cut) const { return extents_.pixels * pixel_pitch(cut) + cut.row_gap * size_; }
  std::size_t bytes(const Cut& cut, std::int64_t ring_rows) const {
    return static_cast<std::size_t>((ring_rows > 0 ? ring_rows : extents_.rows) * row_pitch(cut) + 2 * kMargin);
  }
  template <class Body>
  void each_pixel(RowRange rows, const Body& body) {
    const auto size = static_cast<std::size_t>(extents_.channels * size_);
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t pixel = 0; pixel < extents_.pixels; ++pixel)
        body(view_.at<std::byte>(row, pixel), static_cast<std::size_t>(row * extents_.pixels + pixel) * size, size);
  }

  RowExtents extents_;
  std::int64_t size_;
  AlignedBuffer buffer_;
  RowView view_;
  std::vector<bool> written_;
};

/// The rows of input `input` that output rows `rows` need.
inline RowRange needed_rows(const Problem& p, std::size_t input, RowRange rows) {
  const RowRange all{0, row_extents(p.shape(input)).rows};
  if (p.node().op == model::OpKind::kAttention) return input == 0 ? rows : all;
  const auto* conv = std::get_if<model::ConvAttributes>(&p.node().attributes);
  const auto* pool = std::get_if<model::PoolAttributes>(&p.node().attributes);
  if (input > 0 || (conv == nullptr && pool == nullptr)) return p.shape(input) == p.output().shape ? rows : all;
  if (p.node().op == model::OpKind::kConvTranspose) return all;
  const model::Window& w = conv != nullptr ? conv->window : pool->window;
  const auto first = [&](std::int64_t row) { return row % w.out_h * w.stride_h - w.pad_top; };
  const std::int64_t begin_image = rows.begin / w.out_h * w.in_h, end_image = (rows.end - 1) / w.out_h * w.in_h;
  const std::int64_t end = first(rows.end - 1) + (w.kernel_h - 1) * w.dilation_h + 1;
  return {begin_image + std::clamp<std::int64_t>(first(rows.begin), 0, w.in_h - 1), end_image + std::clamp<std::int64_t>(end, 1, w.in_h)};
}

class Runner {
 public:
  Runner(const Problem& p, const KernelDescriptor& kernel, const Cut& cut) : p_(p), kernel_(kernel), cut_(cut) {
    pool_ = std::move(make_thread_pool(cut.threads).value());
    result_.resize(p.output().bytes().count());
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      std::int64_t ring = 0;
      if (cut.rings) each_row_range([&](RowRange rows) { ring = std::max(ring, needed_rows(p, i, widened(rows)).size()); });
      inputs_.emplace_back(p.shape(i), p.graph.tensor(p.node().inputs[i]).dtype, cut, ring);
    }
    const std::int64_t all_rows = row_extents(p.output().shape).rows;
    const std::int64_t ring = cut.rings ? (cut.rows == 0 ? all_rows : std::min(all_rows, cut.rows)) : 0;
    if (cut.in_place < 0) inputs_.emplace_back(p.output().shape, p.output().dtype, cut, ring);
  }

  /// The output, dense.
  std::vector<std::byte> run() {
    each_row_range([&](RowRange rows) {
      if (cut_.rings || rows.begin == 0) fill_inputs(rows);
      for (const PanelRange panels : panel_ranges()) run_step(rows, panels);
      if (cut_.rings) output().get_rows(result_, rows);
    });
    if (!cut_.rings) output().get_rows(result_, {0, row_extents(p_.output().shape).rows});
    INFO("bytes outside of the output's elements were overwritten");
    CHECK(output().gaps_untouched());
    return result_;
  }

 private:
  PaddedTensor& output() { return cut_.in_place < 0 ? inputs_.back() : inputs_[static_cast<std::size_t>(cut_.in_place)]; }

  template <class Body>
  void each_row_range(const Body& body) const {
    const std::int64_t all = row_extents(p_.output().shape).rows;
    const std::int64_t step = cut_.rows == 0 ? std::max<std::int64_t>(all, 1) : cut_.rows;
    for (std::int64_t row = 0; row < all; row += step) body(RowRange{row, std::min(all, row + step)});
  }

  /// To whole granules of an image.
  RowRange widened(RowRange rows) const {
    const auto* conv = std::get_if<model::ConvAttributes>(&p_.node().attributes);
    if (conv == nullptr) return rows;
    const std::int64_t height = conv->window.out_h, granule = kernel_.row_granule;
    const std::int64_t last = rows.end - 1, end = last - last % height % granule + granule;
    return {rows.begin - rows.begin % height % granule, std::min(end, last - last % height + height)};
  }

  std::vector<PanelRange> panel_ranges() const {
    if (p_.weights.empty() || cut_.panels == 0) return {PanelRange{-1, -1}};
    std::vector<PanelRange> ranges;
    const std::int64_t all = p_.graph.weights[0].panels;
    for (std::int64_t panel = 0; panel < all; panel += cut_.panels) ranges.push_back({panel, std::min(all, panel + cut_.panels)});
    return ranges;
  }

  void fill_inputs(RowRange rows) {
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) {
      const RowRange all{0, row_extents(p_.shape(i)).rows};
      if (cut_.rings) inputs_[i].clear();
      inputs_[i].put_rows(p_.inputs[i], cut_.rings ? needed_rows(p_, i, widened(rows)) : all);
    }
  }

  /// panels.begin < 0: all of them.
  void run_step(RowRange rows, PanelRange panels) {
    const std::int64_t outputs = model::step_channels(p_.graph, p_.node());
    const bool sliced = panels.begin >= 0;
    const ChannelRange channels =
        sliced ? model::channels_of_panels(panels, model::outputs_per_group(p_.node()), outputs) : ChannelRange{0, outputs};
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) operands.push_back({inputs_[i].view(), p_.shape(i)});
    const Operand out{output().view(), p_.output().shape};
    std::vector<AlignedBuffer> bytes;
    std::vector<WeightOperand> weights;
    for (std::size_t i = 0; i < p_.weights.size(); ++i) {
      const model::Weight& weight = p_.graph.weights[i];
      const PanelRange part = sliced && i == 0 ? panels : PanelRange{0, weight.panels};
      bytes.emplace_back(static_cast<std::size_t>(part.size()) * weight.panel_bytes.count());
      std::memcpy(bytes.back().data(), p_.weights[i].data() + static_cast<std::size_t>(part.begin) * weight.panel_bytes.count(),
                  bytes.back().size());
      weights.push_back({bytes.back().data(), part, weight.panel_bytes});
    }
    const ResolvedCall resolved = kernel_.resolve(p_.graph, p_.node(), active_isa());
    const StepExtent extent{rows, channels, cut_.threads, cut_.derived};
    const AlignedBuffer workspace(kernel_.workspace == nullptr ? 0 : kernel_.workspace(resolved.parameters, extent).count());
    workspace.fill(cut_.left_in_workspace);
    KernelCall call{.parameter_data = resolved.parameters.data(),
                    .inputs = operands,
                    .outputs = {&out, 1},
                    .weights = weights,
                    .rows = rows,
                    .channels = channels,
                    .workspace = workspace.data(),
                    .pool = pool_.get()};
    call.reader = cut_.reader;
    if (cut_.reader != nullptr) weights[0].data = nullptr;
    if (!cut_.derived) return resolved.run(call);
    const std::size_t panel_bytes = kernel_.derived_panel_bytes(resolved.parameters).count();
    const AlignedBuffer derived(static_cast<std::size_t>(weights[0].panels.size()) * panel_bytes);
    call.derived = {derived.data(), weights[0].panels};
    resolved.prepare(call);
    weights[0].data = nullptr;
    resolved.run(call);
  }

  const Problem& p_;
  const KernelDescriptor& kernel_;
  const Cut cut_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<PaddedTensor> inputs_;  // and the output last, unless it replaces an input
  std::vector<std::byte> result_;
};

inline std::vector<std::byte> run(const Problem& p, const KernelDescriptor& kernel, const Cut& cut = {}) {
  return Runner(p, kernel, cut).run();
}

inline std::vector<std::byte> run_reference(const Problem& p) { return run(p, reference_kernel(p.node().op, p.node().numeric)); }

/// The values of a dense tensor.
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// ---- comparing

inline std::string describe(const Problem& p, const KernelDescriptor& kernel, const Cut& cut) {
  std::string text(kernel.name);
  for (std::size_t i = 0; i < p.inputs.size(); ++i) text += " " + p.shape(i).to_string();
  return text + " -> " + p.output().shape.to_string() + ", rows " + std::to_string(cut.rows) + ", panels " + std::to_string(cut.panels) +
         ", threads " + std::to_string(cut.threads) + ", gaps " + std::to_string(cut.pixel_gap) + " and " + std::to_string(cut.row_gap) +
         (cut.rings ? ", rings" : "") + (cut.derived ? ", derived" : "") + (cut.in_place >= 0 ? ", in place" : "");
}

/// Runs `kernel` cut as `cut` says and compares with `want`, bit by bit.
inline void check_bits(const Problem& p, const KernelDescriptor& kernel, const Cut& cut, const std::vector<std::byte>& want) {
  INFO(describe(p, kernel, cut));
  REQUIRE(kernel.supports(p.graph, p.node()));
  const std::vector<std::byte> got = run(p, kernel, cut);
  const bool same = got == want;
  CHECK(same);
}

inline void check_bits(const Problem& p, const KernelDescriptor& kernel, const Cut& cut = {}) {
  check_bits(p, kernel, cut, run_reference(p));
}

/// The same, for results that are rounded elsewhere: |got - want| <= tolerance * the largest |want|.
inline void check_close(const Problem& p, const KernelDescriptor& kernel, const Cut& cut, double tolerance) {
  INFO(describe(p, kernel, cut));
  const std::vector<std::byte> got = run(p, kernel, cut), want = run_reference(p);
  double norm = 0.0, worst = 0.0;
  for (std::size_t i = 0; i + sizeof(float) <= want.size(); i += sizeof(float)) {
    float a = 0.0f, b = 0.0f;
    std::memcpy(&a, got.data() + i, sizeof a);
    std::memcpy(&b, want.data() + i, sizeof b);
    norm = std::max(norm, std::fabs(static_cast<double>(b)));
    const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
    worst = difference <= worst ? worst : difference;  // NaN counts as worse
  }
  CHECK(worst <= tolerance * norm);
}

/// The cuts every banded kernel must survive.
inline std::vector<Cut> usual_cuts() {
  return {{},
          {.rows = 1},
          {.rows = 3, .threads = 2, .pixel_gap = 5},
          {.threads = 3, .pixel_gap = 16, .row_gap = 7},
          {.rows = 2, .row_gap = 1, .rings = true}};
}

}  // namespace sluice::kernels::test
