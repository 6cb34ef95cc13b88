// One weighted node with seeded values: packs its weights, runs it as steps cut in any way on views of any form, and computes what it
// should give with a plain loop of std::fma.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "sluice/core/check.h"
#include "sluice/core/half.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "sluice/kernels/packing.h"
#include "sluice/kernels/registry.h"
#include "sluice/kernels/sparse_packing.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/resolve.h"
#include "src/kernels/weighted/tile.h"

namespace sluice::kernels::test {

/// The node. Dense layers are 1x1 convolutions of `in_h` rows of one pixel.
struct Problem {
  model::OpKind op = model::OpKind::kConv;
  std::int64_t images = 1;
  model::ConvAttributes conv;
  bool bias = false;
  bool residual = false;
  model::Activation activation;
  int bits = 32;             // of a weight; 8, 4 or 2: quantised panels
  DType half = DType::kF32;  // bf16 or f16: panels of these
  std::int64_t group = 0;    // values of an output that share a scale; 0: all
  double zeros = 0;          // above 0: sparse panels, of whose blocks so many are zero
};

/// Sets out_h and out_w from the rest.
inline Problem convolution(std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t n, std::int64_t kernel, std::int64_t stride,
                           std::int64_t pad, std::int64_t groups = 1, std::int64_t dilation = 1) {
  Problem p;
  p.conv.in_channels = c;
  p.conv.out_channels = n;
  p.conv.groups = groups;
  model::Window& win = p.conv.window;
  win = {.in_h = h,
         .in_w = w,
         .kernel_h = kernel,
         .kernel_w = kernel,
         .stride_h = stride,
         .stride_w = stride,
         .dilation_h = dilation,
         .dilation_w = dilation,
         .pad_top = pad,
         .pad_left = pad,
         .pad_bottom = pad,
         .pad_right = pad};
  win.out_h = (h + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  win.out_w = (w + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  return p;
}

inline Problem dense(std::int64_t rows, std::int64_t k, std::int64_t n) {
  Problem p = convolution(rows, 1, k, n, 1, 1, 0);
  p.op = model::OpKind::kDense;
  return p;
}

/// How tensors lie: extra floats after each pixel and row, and rings of so many rows (0: none).
struct Form {
  std::int64_t pixel_gap = 0;
  std::int64_t row_gap = 0;
  std::int64_t in_ring = 0;
  std::int64_t out_ring = 0;
};

using Run = void (*)(const KernelCall&, const weighted::TileTable&) noexcept;
using Workspace = Bytes (*)(const operators::Parameters&, const StepExtent&) noexcept;  // null: none

/// The parameters of a convolution or dense layer.
inline operators::Parameters parameters_of(const model::Graph& graph, const model::Node& node) {
  if (graph.weight(node.weights[0]).panel_layout.layout == WeightLayout::kSparse)
    return kernels_for(graph, node).front()->resolve(graph, node, active_isa()).parameters;
  if (node.op == model::OpKind::kDense) return operators::Parameters(dense_parameters(graph, node));
  return operators::Parameters(convolution_parameters(graph, node));
}

/// A 64-byte aligned buffer of floats, all of one value at first.
class Buffer {
 public:
  Buffer(std::size_t floats, float value)
      : data_(static_cast<float*>(std::aligned_alloc(64, (floats * sizeof(float) + 127) / 64 * 64))), size_(floats) {
    for (std::size_t i = 0; i < floats; ++i) data_[i] = value;
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::byte* bytes() const { return reinterpret_cast<std::byte*>(data_); }

 private:
  float* data_;
  std::size_t size_;
};

/// A tensor's rows in the form asked for. Everything that is not a value is `gap`.
struct Placed {
  Placed(const Shape& tensor_shape, const Form& form, std::int64_t ring, float gap)
      : shape(tensor_shape),
        extents(row_extents(tensor_shape)),
        pixel(extents.channels + form.pixel_gap),
        row(extents.pixels * pixel + form.row_gap),
        slots(ring == 0 ? extents.rows : ring),
        buffer(std::make_unique<Buffer>(static_cast<std::size_t>(slots * row + 16), gap)) {
    view = {buffer->bytes(), extents.rows, extents.pixels, extents.channels, row * 4, pixel * 4, ring, DType::kF32};
  }
  void put(const std::vector<float>& values, RowRange rows) {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t x = 0; x < extents.pixels; ++x)
        std::memcpy(view.at<float>(r, x), &values[static_cast<std::size_t>((r * extents.pixels + x) * extents.channels)],
                    static_cast<std::size_t>(extents.channels) * 4);
  }
  void get(std::vector<float>& values, RowRange rows, ChannelRange c) const {
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t x = 0; x < extents.pixels; ++x)
        for (std::int64_t i = c.begin; i < c.end; ++i)
          values[static_cast<std::size_t>((r * extents.pixels + x) * extents.channels + i)] = view.at<float>(r, x)[i];
  }
  Operand operand() const { return {view, shape}; }

  Shape shape;
  RowExtents extents;
  std::int64_t pixel, row, slots;
  std::unique_ptr<Buffer> buffer;
  RowView view;
};

class Case;

/// The weights of a slice, copied so that a read outside it is found by the sanitizer.
class PreparedWeights {
 public:
  PreparedWeights(const Case& c, ChannelRange channels);
  std::span<const WeightOperand> operands() const { return std::span(operands_).first(count_); }

 private:
  std::unique_ptr<Buffer> slice_;
  WeightOperand operands_[2];
  std::size_t count_;
};

/// The node as a graph, its values, and its expected output.
class Case {
 public:
  explicit Case(const Problem& problem, unsigned seed = 1) : problem_(problem) {
    const auto& conv = problem.conv;
    const model::Window& w = conv.window;
    std::mt19937 random(seed);
    const auto values = [&](std::int64_t count) {
      std::vector<float> v(static_cast<std::size_t>(count));
      for (float& x : v) x = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f;
      return v;
    };
    const bool is_dense = problem.op == model::OpKind::kDense;
    in_shape_ = is_dense ? Shape{w.in_h, conv.in_channels} : Shape{problem.images, w.in_h, w.in_w, conv.in_channels};
    out_shape_ = is_dense ? Shape{w.out_h, conv.out_channels} : Shape{problem.images, w.out_h, w.out_w, conv.out_channels};
    input_ = values(in_shape_.element_count());
    weights_ = values(conv.out_channels * depth() * w.taps());
    if (problem.bits != 32) quantise(random);
    for (float& weight : weights_) weight = rounded(weight);
    if (problem.zeros > 0) leave_out(random);
    bias_ = values((conv.out_channels + 15) / 16 * 16);
    residual_ = values(out_shape_.element_count());
    make_graph();
  }

  const model::Graph& graph() const { return graph_; }
  const model::Node& node() const { return graph_.nodes[0]; }
  const Problem& problem() const { return problem_; }
  std::int64_t out_rows() const { return row_extents(out_shape_).rows; }
  std::int64_t per_group() const { return problem_.conv.out_channels / problem_.conv.groups; }
  std::int64_t depth() const { return problem_.conv.in_channels / problem_.conv.groups; }

  std::vector<float> expected() const {
    const auto& conv = problem_.conv;
    const model::Window& w = conv.window;
    std::vector<float> out;
    for (std::int64_t r = 0; r < problem_.images * w.out_h; ++r)
      for (std::int64_t x = 0; x < w.out_w; ++x)
        for (std::int64_t n = 0; n < conv.out_channels; ++n) {
          float y = sum(r / w.out_h, r % w.out_h, x, n);
          if (problem_.bias) y += bias_[static_cast<std::size_t>(n)];
          if (problem_.residual) y += residual_[out.size()];
          out.push_back(reference::apply(problem_.activation, y));
        }
    return out;
  }

  /// Runs every band x slice, each with the input rows it may read in place and garbage elsewhere, in parts of its sums that begin at
  /// `cuts`. `in_place`: the residual's tensor is the output's. Sets `clean` to false if anything but the output changed, or that before
  /// the last part.
  std::vector<float> run(Run kernel, Workspace workspace, const weighted::TileTable& tiles, const std::vector<RowRange>& bands,
                         const std::vector<ChannelRange>& slices, const Form& form, ThreadPool* pool, bool in_place, bool& clean,
                         const std::vector<std::int64_t>& cuts = {}) const {
    const float kGarbage = std::nanf("");
    const float kCanary = 12345.0f;
    std::vector<float> out(static_cast<std::size_t>(out_shape_.element_count()), kCanary);
    clean = true;
    for (const RowRange& band : bands) {
      Placed in(in_shape_, form, form.in_ring, kGarbage);
      Placed to(out_shape_, form, form.out_ring, kCanary);
      Placed residual(out_shape_, {}, 0, kGarbage);
      in.put(input_, input_rows(band));
      residual.put(residual_, band);
      if (problem_.residual && in_place) to.put(residual_, band);
      for (const ChannelRange& slice : slices) {
        std::vector<Operand> inputs{in.operand()};
        if (problem_.residual) inputs.push_back(in_place ? to.operand() : residual.operand());
        const Buffer sums(sums_of(band, slice) + 16, kCanary);
        for (std::size_t i = 0; i <= cuts.size(); ++i) {
          const SumsPart part{{i == 0 ? 0 : cuts[i - 1], i == cuts.size() ? depth() : cuts[i]}, sums.data()};
          const std::vector<float> before(to.buffer->data(), to.buffer->data() + to.buffer->size());
          step(kernel, workspace, tiles, inputs, to.operand(), band, slice, pool, cuts.empty() ? nullptr : &part);
          if (i < cuts.size()) clean = clean && std::memcmp(before.data(), to.buffer->data(), before.size() * sizeof(float)) == 0;
        }
        for (std::size_t i = sums_of(band, slice); i < sums.size(); ++i) clean = clean && sums.data()[i] == kCanary;
      }
      to.get(out, band, {0, problem_.conv.out_channels});
      to.put(std::vector<float>(out.size(), kCanary), band);
      for (std::size_t i = 0; i < to.buffer->size(); ++i) clean = clean && to.buffer->data()[i] == kCanary;
    }
    return out;
  }

  void step(Run kernel, Workspace workspace, const weighted::TileTable& tiles, std::span<const Operand> inputs, const Operand& output,
            RowRange rows, ChannelRange channels, ThreadPool* pool, const SumsPart* part = nullptr) const {
    const int threads = pool == nullptr ? 1 : pool->thread_count();
    const PreparedWeights weights(*this, channels);
    const operators::Parameters parameters = parameters_of(graph_, node());
    const Bytes bytes = workspace == nullptr ? Bytes() : workspace(parameters, {rows, channels, threads});
    constexpr std::size_t kBehind = 64;  // floats that no kernel may write
    Buffer scratch((bytes.count() + 3) / 4 + kBehind, std::nanf(""));
    kernel({.parameter_data = parameters.data(),
            .inputs = inputs,
            .outputs = std::span(&output, 1),
            .weights = weights.operands(),
            .rows = rows,
            .channels = channels,
            .part = part,
            .workspace = scratch.bytes(),
            .pool = pool},
           tiles);
    const auto* const end = reinterpret_cast<const float*>(scratch.bytes() + (bytes.count() + 3) / 4 * 4);
    SLUICE_CHECK(std::all_of(end, end + kBehind, [](float value) { return std::isnan(value); }), "nothing is written behind a workspace");
  }

  /// Floats of the unfinished sums of a step.
  std::size_t sums_of(RowRange rows, ChannelRange channels) const {
    return static_cast<std::size_t>(rows.size() * row_extents(out_shape_).pixels * ((channels.size() + 15) / 16 * 16));
  }

  /// Input rows that output rows `band` read.
  RowRange input_rows(RowRange band) const {
    const model::Window& w = problem_.conv.window;
    const auto first = [&](std::int64_t r) {
      return r / w.out_h * w.in_h + std::clamp<std::int64_t>(r % w.out_h * w.stride_h - w.pad_top, 0, w.in_h);
    };
    const auto last = [&](std::int64_t r) {
      return r / w.out_h * w.in_h +
             std::clamp<std::int64_t>(r % w.out_h * w.stride_h - w.pad_top + (w.kernel_h - 1) * w.dilation_h + 1, 0, w.in_h);
    };
    return {first(band.begin), std::max(first(band.begin), last(band.end - 1))};
  }

  const std::vector<float>& packed() const { return packed_; }
  const std::vector<float>& bias() const { return bias_; }
  const Shape& in_shape() const { return in_shape_; }
  const Shape& out_shape() const { return out_shape_; }

 private:
  /// Depthwise panels are of f32; narrow ones lie as those of groups of one output do.
  bool in_planes() const { return problem_.conv.depthwise() && problem_.half == DType::kF32; }
  PanelStorage storage() const {
    if (problem_.half == DType::kBF16) return PanelStorage::kBf16;
    return problem_.half == DType::kF16 ? PanelStorage::kF16 : PanelStorage::kF32;
  }
  /// What a panel of 16-bit floats holds of a weight.
  float rounded(float w) const {
    if (problem_.half == DType::kBF16) return float_of_bf16(bf16_of_float(w));
    return problem_.half == DType::kF16 ? float_of_f16(f16_of_float(w)) : w;
  }

  /// Draws quantised values; the floats that they stand for are the weights.
  void quantise(std::mt19937& random) {
    const auto outputs = static_cast<std::size_t>(problem_.conv.out_channels);
    const std::size_t each = weights_.size() / outputs, group = problem_.group == 0 ? each : static_cast<std::size_t>(problem_.group);
    const std::size_t groups = (each + group - 1) / group;
    const unsigned levels = 1u << problem_.bits;
    const int least = problem_.bits == 8 ? -128 : 0;
    const auto draw = [&] { return static_cast<int>(random() % levels) + least; };
    for (std::size_t s = 0; s < outputs * groups; ++s) {
      scales_.push_back(static_cast<float>(1 + random() % 100) / 1000.0f);
      zeros_.push_back(static_cast<float>(draw()));
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const std::size_t s = i / each * groups + i % each / group;
      quantised_.push_back(static_cast<std::int8_t>(draw()));
      weights_[i] = (static_cast<float>(quantised_.back()) - zeros_[s]) * scales_[s];
    }
  }

  /// Blocks of 16 outputs and one value become zeros.
  void leave_out(std::mt19937& random) {
    const std::int64_t outputs = problem_.conv.out_channels, each = depth() * problem_.conv.window.taps();
    for (std::int64_t first = 0; first < outputs; first += 16)
      for (std::int64_t i = 0; i < each; ++i) {
        if (static_cast<double>(random()) >= problem_.zeros * 0x1p32) continue;
        for (std::int64_t n = first; n < std::min(first + 16, outputs); ++n) weights_[static_cast<std::size_t>(n * each + i)] = 0.0f;
      }
  }

  float sum(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t n) const {
    const auto& conv = problem_.conv;
    const model::Window& w = conv.window;
    float acc = 0.0f;
    for (std::int64_t ky = 0; ky < w.kernel_h; ++ky)
      for (std::int64_t kx = 0; kx < w.kernel_w; ++kx) {
        const std::int64_t iy = y * w.stride_h - w.pad_top + ky * w.dilation_h;
        const std::int64_t ix = x * w.stride_w - w.pad_left + kx * w.dilation_w;
        if (iy < 0 || iy >= w.in_h || ix < 0 || ix >= w.in_w) continue;
        for (std::int64_t k = 0; k < depth(); ++k) {
          const std::int64_t c = n / per_group() * depth() + k;
          acc = std::fma(input_[static_cast<std::size_t>(((image * w.in_h + iy) * w.in_w + ix) * conv.in_channels + c)],
                         weights_[static_cast<std::size_t>((n * depth() + k) * w.taps() + ky * w.kernel_w + kx)], acc);
        }
      }
    return acc;
  }

  void make_graph() {
    const auto& conv = problem_.conv;
    const std::int64_t taps = conv.window.taps();
    const std::int64_t n = conv.out_channels;
    PackSource source{.data = reinterpret_cast<const std::byte*>(weights_.data()),
                      .outputs = n,
                      .taps = taps,
                      .depth = depth(),
                      .outputs_per_group = per_group(),
                      .group_stride = per_group() * depth() * taps,
                      .output_stride = depth() * taps,
                      .tap_stride = 1,
                      .k_outer_stride = taps,
                      .storage = storage()};
    graph_.weights.resize(2);
    model::Weight& weight = graph_.weights[0];
    const std::int64_t shape[] = {n, conv.window.kernel_h, conv.window.kernel_w, depth()};
    // Groups are runs of an output's values as the source has them, [depth][taps].
    QuantisedSource quantised{.where = source, .values = quantised_.data(), .bits = problem_.bits, .scales = scales_, .zeros = zeros_};
    quantised.order = {.inner = depth() * taps, .extent = n};
    if (problem_.group != 0) quantised.order = {.inner = 1, .extent = depth() * taps, .block = problem_.group};
    if (problem_.bits != 32) fit_groups(quantised);
    if (problem_.bits != 32)
      describe_quantised(quantised, shape, weight);
    else
      in_planes() ? describe_depthwise(source, shape, weight) : describe_panels(source, shape, weight);
    if (problem_.zeros > 0) describe_sparse(source, weight);
    packed_.resize(weight.bytes.count() / 4);
    const auto bytes = std::as_writable_bytes(std::span(packed_));
    if (problem_.bits != 32)
      pack_quantised(quantised, {0, weight.panels}, bytes);
    else if (problem_.zeros > 0)
      pack_sparse(source, {0, weight.panels}, bytes);
    else
      in_planes() ? pack_depthwise(source, {0, weight.panels}, bytes) : pack_panels(source, {0, weight.panels}, bytes);

    graph_.tensors.resize(3);
    graph_.tensors[0].shape = in_shape_;
    graph_.tensors[1].shape = out_shape_;
    graph_.tensors[2].shape = out_shape_;
    model::Node node;
    node.op = problem_.op;
    if (problem_.op == model::OpKind::kDense) {
      node.attributes = model::DenseAttributes{conv.in_channels, n};
    } else {
      node.attributes = conv;
    }
    node.epilogue = {.has_bias = problem_.bias, .has_residual = problem_.residual, .activation = problem_.activation};
    node.inputs = {TensorId(0)};
    if (problem_.residual) node.inputs.push_back(TensorId(2));
    node.outputs = {TensorId(1)};
    node.weights = {WeightId(0)};
    if (problem_.bias) node.weights.push_back(WeightId(1));
    graph_.nodes.push_back(node);
  }

  Problem problem_;
  Shape in_shape_, out_shape_;
  std::vector<float> input_, weights_, bias_, residual_, packed_, scales_, zeros_;
  std::vector<std::int8_t> quantised_;
  model::Graph graph_;
};

inline PreparedWeights::PreparedWeights(const Case& c, ChannelRange channels) : count_(c.problem().bias ? 2 : 1) {
  const model::Weight& weight = c.graph().weights[0];
  PanelRange panels = model::panels_of_channels(channels, c.per_group());
  const model::FileRange range = model::panel_range(weight, panels);
  slice_ = std::make_unique<Buffer>(static_cast<std::size_t>(range.size.count() / 4), 0.0f);
  std::memcpy(slice_->data(), c.packed().data() + range.offset.count() / 4, slice_->size() * 4);
  operands_[0] = {slice_->bytes(), panels, weight.panel_bytes};
  operands_[1] = {reinterpret_cast<const std::byte*>(c.bias().data()), {0, 1}, c.graph().weights[1].panel_bytes};
}

/// The instruction sets this machine runs.
inline std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets{Isa::kScalar};
  for (Isa isa : {Isa::kNeon, Isa::kAvx2, Isa::kAvx512})
    if (isa <= active_isa() && (isa == Isa::kNeon) == (active_isa() == Isa::kNeon)) sets.push_back(isa);
  return sets;
}

}  // namespace sluice::kernels::test
