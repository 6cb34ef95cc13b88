#include "sluice/operators/validate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "src/model/permutation.h"

namespace sluice::operators {
namespace {

using namespace model;

// No image is a hundredth of this; products of two stay inside 63 bits.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;
// Taps of a pool are not bounded by weights in the file; 8192 x 8192 is more than any image that fits a budget.
constexpr std::int64_t kMaxPoolTaps = std::int64_t{1} << 26;
constexpr std::int64_t kMaxLrnSize = 1 << 16;
// A transposed convolution runs once for each phase of its strides.
constexpr std::int64_t kMaxPhases = std::int64_t{1} << 16;
// Kernels copy parts of a convolution's padded input, 16 lanes of it at the most, and count its bytes in 64 bits.
constexpr std::uint64_t kMaxPaddedBytes = std::uint64_t{1} << 40;

bool within(std::int64_t value, std::int64_t least, std::int64_t most) { return value >= least && value <= most; }

/// One axis of a window.
struct WindowAxis {
  std::int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;

  bool bounded() const {
    return within(in, 1, kMaxExtent) && within(out, 1, kMaxExtent) && within(kernel, 1, kMaxExtent) && within(stride, 1, kMaxExtent) &&
           within(dilation, 1, kMaxExtent) && within(pad_begin, -kMaxExtent, kMaxExtent) && within(pad_end, -kMaxExtent, kMaxExtent);
  }
  /// Input positions that the taps span. Fits 63 bits when bounded.
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

WindowAxis rows_of(const Window& w) { return {w.in_h, w.out_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom}; }
WindowAxis columns_of(const Window& w) { return {w.in_w, w.out_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right}; }

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Status run() const {
    SLUICE_RETURN_IF_ERROR(check_epilogue());
    switch (node_.op) {
      case OpKind::kConv:
        return check_conv();
      case OpKind::kConvTranspose:
        return check_conv_transpose();
      case OpKind::kDense:
        return check_dense();
      case OpKind::kPool:
        return check_pool();
      case OpKind::kUnary:
        return check_same_shape<std::monostate>(0);
      case OpKind::kBinary:
        return check_binary();
      case OpKind::kAffine:
        return check_affine();
      case OpKind::kSoftmax:
        return check_same_shape<SoftmaxAttributes>(0);
      case OpKind::kLrn:
        return check_lrn();
      case OpKind::kConcat:
        return check_concat();
      case OpKind::kSlice:
        return check_slice();
      case OpKind::kPad:
        return check_pad();
      case OpKind::kResize:
        return check_resize();
      case OpKind::kTranspose:
        return check_transpose();
      case OpKind::kReshape:
        return check_reshape();
      case OpKind::kMatMul:
        return check_matmul();
      case OpKind::kLayerNorm:
        return check_layer_norm();
      case OpKind::kAttention:
        return check_attention();
      case OpKind::kEmbedding:
        return check_embedding();
      case OpKind::kPlain:
        return check_plain();
      case OpKind::kRecurrent:
        return check_recurrent();
    }
    return invalid("G2: an operator that this build does not know");
  }

 private:
  tl::unexpected<Error> invalid(const char* reason) const { return fail(ErrorCode::kInvalidModel, node_.name, reason); }
  tl::unexpected<Error> invalid(const char* reason, std::uint64_t needed, std::uint64_t found) const {
    return fail(make_error(ErrorCode::kInvalidModel, node_.name, reason, needed, found));
  }

  const Tensor& input(std::size_t i) const { return graph_.tensor(node_.inputs[i]); }
  const Tensor& output() const { return graph_.tensor(node_.outputs[0]); }

  /// The alternative that the operator demands, or null.
  template <class T>
  const T* attributes() const {
    return std::get_if<T>(&node_.attributes);
  }

  Status check_epilogue() const {
    const bool weighted = node_.op == OpKind::kConv || node_.op == OpKind::kConvTranspose || node_.op == OpKind::kDense;
    const bool activates =
        weighted || node_.op == OpKind::kPool || node_.op == OpKind::kBinary || node_.op == OpKind::kAffine || node_.op == OpKind::kUnary;
    const Epilogue& epilogue = node_.epilogue;
    const bool biased = weighted || node_.op == OpKind::kRecurrent;
    if ((epilogue.has_bias && !biased) || (epilogue.has_residual && !weighted)) return invalid("G2: this operator takes neither bias nor residual");
    if (epilogue.activation.function != Function::kNone && !activates) return invalid("G2: this operator takes no activation");
    if (std::isnan(epilogue.activation.a) || std::isnan(epilogue.activation.b))
      return invalid("G2: an activation's numbers are not numbers");
    if (node_.numeric == NumericClass::kWinograd4 && node_.op != OpKind::kConv) return invalid("G2: only convolutions are winograd4");
    return {};
  }

  /// Counts of inputs (without a residual) and weights, and the element types: what computes is f32, what moves keeps its type.
  Status check_operands(std::size_t inputs, std::size_t weights) const {
    const std::size_t residual = node_.epilogue.has_residual ? 1 : 0;
    if (node_.inputs.size() != inputs + residual)
      return invalid("G2: the number of inputs is not the operator's", inputs + residual, node_.inputs.size());
    if (node_.weights.size() != weights) return invalid("G4: the number of weights is not the operator's", weights, node_.weights.size());
    return {};
  }

  Status check_f32() const {
    const auto is_f32 = [&](TensorId id) { return graph_.tensor(id).dtype == DType::kF32; };
    if (is_f32(node_.outputs[0]) && std::all_of(node_.inputs.begin(), node_.inputs.end(), is_f32)) return {};
    return invalid("G2: an input or the output of an operator that computes is not f32");
  }

  Status check_one_dtype() const {
    const auto agrees = [&](TensorId id) { return graph_.tensor(id).dtype == output().dtype; };
    if (std::all_of(node_.inputs.begin(), node_.inputs.end(), agrees)) return {};
    return invalid("G2: inputs and output of an operator that moves values differ in type");
  }

  Status check_residual() const {
    if (!node_.epilogue.has_residual || graph_.tensor(node_.inputs.back()).shape == output().shape) return {};
    return invalid("G4: the residual's shape is not the output's");
  }

  /// (G4) weights[0] has these panels, weights[1], if there is a bias, their number of floats.
  Status check_panels(WeightLayout layout, std::int64_t outputs, std::int64_t per_group, std::int64_t taps, std::int64_t depth) const {
    const Weight& weight = graph_.weight(node_.weights[0]);
    if (weight.panel_layout.layout != layout) return invalid("G4: the weight's layout is not the operator's");
    const std::int64_t panels = panel_count(outputs, per_group);
    if (weight.panels != panels) return invalid("G4: the weight has not one lane for each output", panels, weight.panels);
    const auto values = checked_mul(static_cast<std::uint64_t>(taps), static_cast<std::uint64_t>(depth));
    const bool takes_quantised =
        node_.op == OpKind::kConv || node_.op == OpKind::kConvTranspose || node_.op == OpKind::kDense || node_.op == OpKind::kEmbedding;
    if (is_quantised(weight.panel_layout) && !takes_quantised) return invalid("G4: this operator takes no quantised panels");
    const auto bytes = values ? panel_bytes_of(weight.panel_layout, *values) : std::nullopt;
    if (!bytes || weight.panel_bytes != *bytes || (is_quantised(weight.panel_layout) && values_of_lane(weight) != *values)) {
      return invalid("G4: the weight's panels are not as large as taps and channels say", bytes.value_or(Bytes()).count(),
                     weight.panel_bytes.count());
    }
    if (!node_.epilogue.has_bias) return {};
    return check_plain_f32(node_.weights[1], panels * kPanelLanes);
  }

  /// Biases, scales, shifts: `floats` values in whole panels.
  Status check_plain_f32(WeightId id, std::int64_t floats) const {
    const Weight& weight = graph_.weight(id);
    if (weight.panel_layout.layout != WeightLayout::kPlain || weight.panel_layout.dtype != DType::kF32) {
      return invalid("G4: a bias, scale or shift is not stored as plain f32 values");
    }
    const auto needed = align_up(static_cast<std::uint64_t>(floats) * sizeof(float), kWeightAlignment);
    const std::uint64_t found = align_up(weight.panel_bytes.count(), kWeightAlignment);
    if (found != needed) return invalid("G4: a bias, scale or shift has not one value for each lane", needed, found);
    return {};
  }

  /// The window's extents are those of an NHWC input and output of these channels.
  Status check_window_shapes(const Window& w, std::int64_t in_channels, std::int64_t out_channels) const {
    const Shape& in = input(0).shape;
    if (in.rank() != 4 || output().shape.rank() != 4) return invalid("G3: an operator with a window works on NHWC tensors");
    if (!(in == Shape{in[0], w.in_h, w.in_w, in_channels})) return invalid("G2: the input is not as window and channels say");
    if (!(output().shape == Shape{in[0], w.out_h, w.out_w, out_channels}))
      return invalid("G2: the output is not as window and channels say");
    if (!rows_of(w).bounded() || !columns_of(w).bounded()) {
      return invalid("G2: a window's kernel, stride or dilation is not positive, or a number is out of range");
    }
    return {};
  }

  Status check_groups(const ConvAttributes& a) const {
    if (a.groups < 1 || a.in_channels < 1 || a.out_channels < 1) return invalid("G2: groups and channels are positive");
    if (a.in_channels % a.groups != 0 || a.out_channels % a.groups != 0) return invalid("G2: groups divide the channels");
    return {};
  }

  Status check_conv_weights(const ConvAttributes& a, bool may_be_plain_panels) const {
    WeightLayout layout = a.depthwise() ? WeightLayout::kDepthwise : WeightLayout::kPanels;
    if (may_be_plain_panels) layout = graph_.weight(node_.weights[0]).panel_layout.layout;
    if (layout == WeightLayout::kPlain || (layout == WeightLayout::kDepthwise && !a.depthwise())) {
      return invalid("G4: the weight's layout is not the operator's");
    }
    const auto taps = checked_mul(static_cast<std::uint64_t>(a.window.kernel_h), static_cast<std::uint64_t>(a.window.kernel_w));
    if (!taps || *taps > static_cast<std::uint64_t>(INT64_MAX)) return invalid("G2: a window's kernel is out of range");
    return check_panels(layout, a.out_channels, outputs_per_group(node_), static_cast<std::int64_t>(*taps), a.in_channels / a.groups);
  }

  Status check_conv() const {
    const auto* a = attributes<ConvAttributes>();
    if (a == nullptr) return invalid("G2: a convolution has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, node_.epilogue.has_bias ? 2 : 1));
    SLUICE_RETURN_IF_ERROR(check_f32());
    SLUICE_RETURN_IF_ERROR(check_groups(*a));
    SLUICE_RETURN_IF_ERROR(check_window_shapes(a->window, a->in_channels, a->out_channels));
    for (const WindowAxis& axis : {rows_of(a->window), columns_of(a->window)}) SLUICE_RETURN_IF_ERROR(check_conv_axis(axis));
    const Window& w = a->window;
    SLUICE_RETURN_IF_ERROR(check_padded(w.in_h + w.pad_top + w.pad_bottom, w.in_w + w.pad_left + w.pad_right, *a));
    if (node_.numeric == NumericClass::kWinograd4 && (w.kernel_h != 3 || w.kernel_w != 3 || w.stride_h != 1 || w.stride_w != 1 ||
                                                      w.dilation_h != 1 || w.dilation_w != 1 || a->groups != 1)) {
      return invalid("G2: winograd4 is for 3x3 windows of stride and dilation 1, in one group");
    }
    SLUICE_RETURN_IF_ERROR(check_residual());
    return check_conv_weights(*a, false);
  }

  /// The padded input of a convolution: no pad is negative, and its bytes stay countable.
  Status check_padded(std::int64_t rows, std::int64_t columns, const ConvAttributes& a) const {
    const Window& w = a.window;
    if (std::min({w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}) < 0) return invalid("G2: a convolution has a negative pad");
    const auto area = checked_mul(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
    const auto values = area ? checked_mul(*area, static_cast<std::uint64_t>(a.in_channels)) : std::nullopt;
    const auto bytes = values ? checked_mul(*values, kPanelLanes * sizeof(float)) : std::nullopt;
    if (!bytes || *bytes > kMaxPaddedBytes) return invalid("G2: a convolution's padded input is larger than any machine holds");
    return {};
  }

  Status check_conv_axis(const WindowAxis& axis) const {
    const std::int64_t padded = axis.in + axis.pad_begin + axis.pad_end;
    if (padded < axis.extent() || (padded - axis.extent()) / axis.stride + 1 != axis.out) {
      return invalid("G2: the output's extent does not follow from the window");
    }
    return {};
  }

  /// An output position that no input reaches is allowed (output padding): less than a stride or a dilation of them.
  Status check_conv_transpose() const {
    const auto* a = attributes<ConvAttributes>();
    if (a == nullptr) return invalid("G2: a convolution has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, node_.epilogue.has_bias ? 2 : 1));
    SLUICE_RETURN_IF_ERROR(check_f32());
    SLUICE_RETURN_IF_ERROR(check_groups(*a));
    SLUICE_RETURN_IF_ERROR(check_window_shapes(a->window, a->in_channels, a->out_channels));
    for (const WindowAxis& axis : {rows_of(a->window), columns_of(a->window)}) {
      const auto reached = checked_mul(static_cast<std::uint64_t>(axis.in - 1), static_cast<std::uint64_t>(axis.stride));
      if (!reached || *reached > static_cast<std::uint64_t>(kMaxExtent) || axis.extent() > kMaxExtent) {
        return invalid("G2: a window's kernel, stride or dilation is out of range");
      }
      const std::int64_t plain = static_cast<std::int64_t>(*reached) + axis.extent() - axis.pad_begin - axis.pad_end;
      if (!within(axis.out, plain, plain + std::max(axis.stride, axis.dilation) - 1)) {
        return invalid("G2: the output's extent does not follow from the window");
      }
    }
    const Window& w = a->window;
    if (w.stride_h * w.stride_w > kMaxPhases) return invalid("G2: a transposed convolution has more phases than any image has pixels");
    // Each phase is a convolution whose taps reach over the input's edges by as much as the kernel spans.
    SLUICE_RETURN_IF_ERROR(check_padded(w.in_h + 2 * rows_of(w).extent(), w.in_w + 2 * columns_of(w).extent(), *a));
    SLUICE_RETURN_IF_ERROR(check_residual());
    return check_conv_weights(*a, a->depthwise());
  }

  Status check_dense() const {
    const auto* a = attributes<DenseAttributes>();
    if (a == nullptr) return invalid("G2: a dense layer has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, node_.epilogue.has_bias ? 2 : 1));
    SLUICE_RETURN_IF_ERROR(check_f32());
    const Shape& in = input(0).shape;
    const Shape& out = output().shape;
    if (in.rank() == 0 || in.rank() != out.rank() || in.back() != a->in_features || out.back() != a->out_features) {
      return invalid("G2: the last axes are not the features in and out");
    }
    for (int axis = 0; axis + 1 < in.rank(); ++axis) {
      if (in[axis] != out[axis]) return invalid("G2: a dense layer changes the last axis only");
    }
    SLUICE_RETURN_IF_ERROR(check_residual());
    return check_panels(WeightLayout::kPanels, a->out_features, a->out_features, 1, a->in_features);
  }

  Status check_pool() const {
    const auto* a = attributes<PoolAttributes>();
    if (a == nullptr) return invalid("G2: a pool has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, 0));
    SLUICE_RETURN_IF_ERROR(check_f32());
    SLUICE_RETURN_IF_ERROR(check_window_shapes(a->window, input(0).shape.back(), input(0).shape.back()));
    const auto taps = checked_mul(static_cast<std::uint64_t>(a->window.kernel_h), static_cast<std::uint64_t>(a->window.kernel_w));
    if (!taps || *taps > static_cast<std::uint64_t>(kMaxPoolTaps)) return invalid("G2: a pool has more taps than any image has pixels");
    for (const WindowAxis& axis : {rows_of(a->window), columns_of(a->window)}) SLUICE_RETURN_IF_ERROR(check_pool_axis(axis));
    return {};
  }

  /// With ceil_mode the last window may stand over the end by less than a stride, but it begins inside the image: a window of padding only
  /// has no maximum and no mean.
  Status check_pool_axis(const WindowAxis& axis) const {
    if (axis.pad_begin < 0 || axis.pad_end < 0 || axis.pad_begin >= axis.extent() || axis.pad_end >= axis.extent()) {
      return invalid("G2: a pool's padding is negative or as wide as its window");
    }
    const std::int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.extent();
    const std::int64_t least = room < 0 ? 1 : room / axis.stride + 1;
    const std::int64_t most = room < 0 ? 1 : ceil_div(room, axis.stride) + 1;
    if (!within(axis.out, least, most)) return invalid("G2: the output's extent does not follow from the window");
    const auto last = checked_mul(static_cast<std::uint64_t>(axis.out - 1), static_cast<std::uint64_t>(axis.stride));
    if (!last || *last >= static_cast<std::uint64_t>(axis.in + axis.pad_begin))
      return invalid("G2: a pool's last window lies beyond the image");
    return {};
  }

  /// One input of the output's shape.
  template <class Alternative>
  Status check_same_shape(std::size_t weights) const {
    if (attributes<Alternative>() == nullptr) return invalid("G2: the attributes are not the operator's");
    SLUICE_RETURN_IF_ERROR(check_operands(1, weights));
    SLUICE_RETURN_IF_ERROR(check_f32());
    if (!(input(0).shape == output().shape)) return invalid("G2: input and output differ in shape");
    return {};
  }

  Status check_affine() const {
    SLUICE_RETURN_IF_ERROR(check_same_shape<std::monostate>(2));
    SLUICE_RETURN_IF_ERROR(check_plain_f32(node_.weights[0], output().shape.back()));
    return check_plain_f32(node_.weights[1], output().shape.back());
  }

  Status check_layer_norm() const {
    SLUICE_RETURN_IF_ERROR(check_same_shape<LayerNormAttributes>(2));
    const float epsilon = attributes<LayerNormAttributes>()->epsilon;
    if (!std::isfinite(epsilon) || epsilon < 0.0f) return invalid("G2: the epsilon of a norm is negative or not finite");
    if (output().shape.rank() == 0) return invalid("G2: a norm is over the last axis");
    SLUICE_RETURN_IF_ERROR(check_plain_f32(node_.weights[0], output().shape.back()));
    return check_plain_f32(node_.weights[1], output().shape.back());
  }

  Status check_attention() const {
    const auto* a = attributes<AttentionAttributes>();
    if (a == nullptr) return invalid("G2: an attention has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(3, 0));
    SLUICE_RETURN_IF_ERROR(check_f32());
    const Shape &q = input(0).shape, &k = input(1).shape, &v = input(2).shape, &out = output().shape;
    const int rank = out.rank();
    if (rank < 2 || rank > 3 || q.rank() != rank || k.rank() != rank || v.rank() != rank) {
      return invalid("G2: an attention is of tensors [batch, rows, channels] or [rows, channels]");
    }
    if (rank == 3 && (q[0] != out[0] || k[0] != out[0] || v[0] != out[0])) return invalid("G2: batches differ");
    if (q[rank - 2] != out[rank - 2] || k[rank - 2] != v[rank - 2] || q.back() != k.back() || v.back() != out.back()) {
      return invalid("G2: queries, keys, values and output do not fit each other");
    }
    if (a->heads < 1 || q.back() % a->heads != 0 || v.back() % a->heads != 0) return invalid("G2: heads do not divide the channels");
    if (!std::isfinite(a->scale)) return invalid("G2: a number is not finite");
    if (a->causal && q[rank - 2] > k[rank - 2]) return invalid("G2: a causal attention has more queries than keys");
    return {};
  }

  Status check_embedding() const {
    const auto* a = attributes<EmbeddingAttributes>();
    if (a == nullptr) return invalid("G2: an embedding has its attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, 1));
    const Shape& indices = input(0).shape;
    const Shape& out = output().shape;
    if (input(0).dtype != DType::kI32 && input(0).dtype != DType::kI64) return invalid("G2: indices are i32 or i64");
    if (output().dtype != DType::kF32) return invalid("G2: an embedding's output is f32");
    if (a->table_rows < 1 || a->features < 1) return invalid("G2: a table has rows and features");
    if (out.rank() != indices.rank() + 1 || out.back() != a->features) return invalid("G2: the output is not a row for each index");
    for (int axis = 0; axis < indices.rank(); ++axis) {
      if (indices[axis] != out[axis]) return invalid("G2: the output is not a row for each index");
    }
    return check_panels(WeightLayout::kPanels, a->table_rows, a->table_rows, 1, a->features);
  }

  Status check_recurrent() const {
    const auto* a = attributes<RecurrentAttributes>();
    if (a == nullptr) return invalid("G2: a recurrent node has its attributes");
    const bool lstm = a->cell == Cell::kLstm;
    if ((a->first_cell || a->peepholes || a->input_forget) && !lstm) return invalid("G2: only an LSTM has cells");
    SLUICE_RETURN_IF_ERROR(check_operands(1u + (a->first_hidden ? 1 : 0) + (a->first_cell ? 1 : 0),
                                          1u + (node_.epilogue.has_bias ? 1 : 0) + (a->peepholes ? 1 : 0)));
    SLUICE_RETURN_IF_ERROR(check_f32());
    const Shape& out = output().shape;
    if (!within(a->hidden, 1, kMaxExtent) || out.rank() != 3 || out.back() != a->gates() * a->hidden || !(input(0).shape == out))
      return invalid("G2: a recurrent node is of [time, batch, gates * hidden] and gives the same");
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) {
      const Shape& state = input(i).shape;
      if (state.rank() < 2 || state.back() != a->hidden || state.element_count() != out[1] * a->hidden)
        return invalid("G2: a first state is [batch, hidden]");
    }
    for (const Activation& f : a->functions)
      if (std::isnan(f.a) || std::isnan(f.b)) return invalid("G2: an activation's numbers are not numbers");
    if (a->peepholes) SLUICE_RETURN_IF_ERROR(check_plain_f32(node_.weights.back(), 3 * a->hidden));
    return check_panels(WeightLayout::kPanels, out.back(), out.back(), 1, a->hidden);
  }

  Status check_lrn() const {
    SLUICE_RETURN_IF_ERROR(check_same_shape<LrnAttributes>(0));
    const auto* a = attributes<LrnAttributes>();
    if (!within(a->size, 1, kMaxLrnSize)) return invalid("G2: the size of a local response normalisation is out of range");
    if (!std::isfinite(a->alpha) || !std::isfinite(a->beta) || !std::isfinite(a->bias)) return invalid("G2: a number is not finite");
    return {};
  }

  /// Numpy: axes are counted from the last, an extent of 1 is repeated. `in` broadcasts together with `other` to `out` on one axis.
  static bool broadcasts(std::int64_t a, std::int64_t b, std::int64_t out) {
    return (a == out && (b == out || b == 1)) || (a == 1 && b == out);
  }
  /// The extent of the axis that is `from_last` before the last; 1 where there is none.
  static std::int64_t extent(const Shape& shape, int from_last) {
    const int axis = shape.rank() - 1 - from_last;
    return axis < 0 ? 1 : shape[axis];
  }

  Status check_broadcast(int first_from_last) const {
    const Shape& a = input(0).shape;
    const Shape& b = input(1).shape;
    const Shape& out = output().shape;
    if (out.rank() != std::max(a.rank(), b.rank())) return invalid("G2: the output's rank is not that of the inputs, broadcast");
    for (int axis = first_from_last; axis < out.rank(); ++axis) {
      if (!broadcasts(extent(a, axis), extent(b, axis), extent(out, axis))) return invalid("G2: the inputs do not broadcast to the output");
    }
    return {};
  }

  Status check_binary() const {
    if (attributes<BinaryAttributes>() == nullptr) return invalid("G2: a binary operator has its function");
    SLUICE_RETURN_IF_ERROR(check_operands(2, 0));
    SLUICE_RETURN_IF_ERROR(check_f32());
    return check_broadcast(0);
  }

  Status check_matmul() const {
    if (attributes<std::monostate>() == nullptr) return invalid("G2: a matrix product has no attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(2, 0));
    SLUICE_RETURN_IF_ERROR(check_f32());
    const Shape& a = input(0).shape;
    const Shape& b = input(1).shape;
    if (a.rank() < 2 || b.rank() < 2) return invalid("G2: a matrix product is of matrices");
    SLUICE_RETURN_IF_ERROR(check_broadcast(2));
    const Shape& out = output().shape;
    if (extent(a, 0) != extent(b, 1) || extent(out, 1) != extent(a, 1) || extent(out, 0) != extent(b, 0)) {
      return invalid("G2: the matrices do not fit each other and the output");
    }
    return {};
  }

  Status check_concat() const {
    const auto* a = attributes<AxisAttributes>();
    if (a == nullptr || node_.inputs.empty()) return invalid("G2: a concatenation has an axis and inputs");
    SLUICE_RETURN_IF_ERROR(check_operands(node_.inputs.size(), 0));
    SLUICE_RETURN_IF_ERROR(check_one_dtype());
    const Shape& out = output().shape;
    if (a->axis < 0 || a->axis >= out.rank()) return invalid("G2: the axis is none of the output's");
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const Shape& in = input(i).shape;
      if (in.rank() != out.rank()) return invalid("G2: an input has another rank than the output");
      for (int axis = 0; axis < out.rank(); ++axis) {
        if (axis != a->axis && in[axis] != out[axis]) return invalid("G2: the inputs differ beside the axis");
      }
      sum += in[a->axis];  // at most 2^20 inputs of 2^40
    }
    if (sum != out[a->axis]) return invalid("G2: the inputs' extents do not add up to the output's", sum, out[a->axis]);
    return {};
  }

  Status check_slice() const {
    const auto* a = attributes<SliceAttributes>();
    if (a == nullptr) return invalid("G2: a slice has its attributes");
    SLUICE_RETURN_IF_ERROR(check_moved());
    const Shape& in = input(0).shape;
    for (int axis = 0; axis < in.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      std::int64_t last = 0;
      if (a->step[i] == 0 || __builtin_mul_overflow(output().shape[axis] - 1, a->step[i], &last) ||
          __builtin_add_overflow(a->start[i], last, &last) || !within(a->start[i], 0, in[axis] - 1) || !within(last, 0, in[axis] - 1)) {
        return invalid("G2: a slice reads beside its input");
      }
    }
    return {};
  }

  Status check_pad() const {
    const auto* a = attributes<PadAttributes>();
    if (a == nullptr) return invalid("G2: a pad has its attributes");
    SLUICE_RETURN_IF_ERROR(check_moved());
    const Shape& in = input(0).shape;
    for (int axis = 0; axis < in.rank(); ++axis) {
      const std::int64_t before = a->before[static_cast<std::size_t>(axis)];
      const std::int64_t after = a->after[static_cast<std::size_t>(axis)];
      if (!within(before, -kMaxExtent, kMaxExtent) || !within(after, -kMaxExtent, kMaxExtent))
        return invalid("G2: a padding is out of range");
      if (in[axis] + before + after != output().shape[axis]) return invalid("G2: the output's extent does not follow from the padding");
      if (a->mode == PadMode::kReflect && (before >= in[axis] || after >= in[axis]))
        return invalid("G2: a padding reflects more than there is");
    }
    return {};
  }

  /// The extent that a scale gives may have been rounded either way.
  Status check_resize() const {
    const auto* a = attributes<ResizeAttributes>();
    if (a == nullptr) return invalid("G2: a resize has its attributes");
    SLUICE_RETURN_IF_ERROR(check_moved());
    SLUICE_RETURN_IF_ERROR(check_f32());
    if (!std::isfinite(a->cubic_a)) return invalid("G2: a number is not finite");
    for (int axis = 0; axis < input(0).shape.rank(); ++axis) {
      const float scale = a->scale[static_cast<std::size_t>(axis)];
      if (!std::isfinite(scale) || !(scale > 0.0f)) return invalid("G2: a scale is not positive and finite");
      const auto out = static_cast<double>(output().shape[axis]);
      const double expected = static_cast<double>(input(0).shape[axis]) * static_cast<double>(scale);
      if (std::abs(out - expected) > 1.0 + 1e-5 * out) return invalid("G2: the output's extent does not follow from the scale");
    }
    return {};
  }

  /// One input of the output's type and rank, no weights.
  Status check_moved() const {
    SLUICE_RETURN_IF_ERROR(check_operands(1, 0));
    SLUICE_RETURN_IF_ERROR(check_one_dtype());
    if (input(0).shape.rank() != output().shape.rank()) return invalid("G2: input and output differ in rank");
    return {};
  }

  Status check_transpose() const {
    const auto* a = attributes<TransposeAttributes>();
    if (a == nullptr) return invalid("G2: a transposition has its attributes");
    SLUICE_RETURN_IF_ERROR(check_moved());
    const Shape& in = input(0).shape;
    if (!is_permutation(a->perm, in.rank())) return invalid("G2: the order of axes is not a permutation");
    for (int axis = 0; axis < in.rank(); ++axis) {
      if (output().shape[axis] != in[a->perm[static_cast<std::size_t>(axis)]])
        return invalid("G2: the output is not the input, transposed");
    }
    return {};
  }

  /// Here only what holds of every plain operator. Types, shapes and arguments are proven where the operator is known: by its kernel,
  /// which the planner and the executor ask (kernels/plain.h).
  Status check_plain() const {
    const auto* a = attributes<PlainAttributes>();
    if (a == nullptr) return invalid("G2: a plain operator has its attributes");
    if (node_.weights.size() > 2048) return invalid("G4: bodies read more weights than are taken", 2048, node_.weights.size());
    if (static_cast<std::size_t>(std::popcount(a->present)) != node_.inputs.size())
      return invalid("G2: a plain operator has not the inputs that it names", static_cast<std::uint64_t>(std::popcount(a->present)), node_.inputs.size());
    std::size_t at = 0;
    while (at < a->arguments.size()) {
      const std::int64_t count = a->arguments[at];
      if (count < 0 || static_cast<std::uint64_t>(count) >= a->arguments.size() - at) return invalid("G2: a plain operator's arguments are cut short");
      at += static_cast<std::size_t>(count) + 1;
    }
    return {};
  }

  Status check_reshape() const {
    if (attributes<std::monostate>() == nullptr) return invalid("G2: a reshape has no attributes");
    SLUICE_RETURN_IF_ERROR(check_operands(1, 0));
    SLUICE_RETURN_IF_ERROR(check_one_dtype());
    if (input(0).shape.element_count() != output().shape.element_count()) return invalid("G2: a reshape changes the number of elements");
    return {};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

Status validate_node(const Graph& graph, const Node& node) { return NodeCheck(graph, node).run(); }

}  // namespace sluice::operators
