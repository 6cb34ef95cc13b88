// Operators whose window slides over images: convolution, transposed convolution, pooling.
#include <algorithm>

#include "sluice/operators/parameters/integer.h"
#include "src/operators/families.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

// Taps of a pool are not bounded by weights in the file; 8192 x 8192 is more than any image that fits a budget.
constexpr std::int64_t kMaxPoolTaps = std::int64_t{1} << 26;
// A transposed convolution runs once for each phase of its strides.
constexpr std::int64_t kMaxPhases = std::int64_t{1} << 16;
// Kernels copy parts of a convolution's padded input, 16 lanes of it at the most, and count its bytes in 64 bits.
constexpr std::uint64_t kMaxPaddedBytes = std::uint64_t{1} << 40;

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

// ---- what they have in common

/// The window's extents are those of an NHWC input and output of these channels.
Status check_shapes(const NodeCheck& check, const Window& w, std::int64_t in_channels) {
  const Shape& in = check.input(0).shape;
  if (in.rank() != 4 || check.output().shape.rank() != 4) return check.invalid("G3: an operator with a window works on NHWC tensors");
  if (!(in == Shape{in[0], w.in_h, w.in_w, in_channels})) return check.invalid("G2: the input is not as window and channels say");
  SLUICE_RETURN_IF_ERROR(check.inferred("G2: the output is not as window and channels say"));
  if (!rows_of(w).bounded() || !columns_of(w).bounded()) {
    return check.invalid("G2: a window's kernel, stride or dilation is not positive, or a number is out of range");
  }
  return {};
}

std::optional<Shape> infer_window(const Graph& graph, const Node& node, const Window& w, std::int64_t channels) noexcept {
  const Shape& in = shape_of_input(graph, node);
  if (in.rank() != 4) return std::nullopt;
  return Shape{in[0], w.out_h, w.out_w, channels};
}

AxisRelation relate(const WindowAxis& axis, int output_axis) noexcept {
  return {.kind = AxisKind::kWindow,
          .output_axis = static_cast<std::int8_t>(output_axis),
          .kernel = axis.kernel,
          .stride = axis.stride,
          .dilation = axis.dilation,
          .pad_before = axis.pad_begin};
}

/// Output y is the sum of taps t of the inputs (y + pad - t * dilation) / stride: a window of taps turned round, of inputs spread out.
AxisRelation relate_transposed(const WindowAxis& axis, int output_axis) noexcept {
  return {.kind = AxisKind::kWindow,
          .output_axis = static_cast<std::int8_t>(output_axis),
          .kernel = axis.kernel,
          .dilation = axis.dilation,
          .pad_before = axis.extent() - 1 - axis.pad_begin,
          .divisor = axis.stride};
}

// ---- convolution

Status check_groups(const NodeCheck& check, const ConvAttributes& a) {
  if (a.groups < 1 || a.in_channels < 1 || a.out_channels < 1) return check.invalid("G2: groups and channels are positive");
  if (a.in_channels % a.groups != 0 || a.out_channels % a.groups != 0) return check.invalid("G2: groups divide the channels");
  return {};
}

Status check_weights(const NodeCheck& check, const ConvAttributes& a, bool may_be_plain_panels) {
  const WeightLayout stored = check.graph().weight(check.node().weights[0]).panel_layout.layout;
  const bool may_be_sparse = check.node().op == OpKind::kConv && a.groups == 1;
  WeightLayout layout = a.depthwise() ? WeightLayout::kDepthwise : WeightLayout::kPanels;
  const bool widened = is_narrow(check.graph().weight(check.node().weights[0]).panel_layout);  // those lie as groups of one output do
  if (may_be_plain_panels || widened || (may_be_sparse && stored == WeightLayout::kSparse)) layout = stored;
  if (layout == WeightLayout::kPlain || (layout == WeightLayout::kSparse && !may_be_sparse) ||
      (layout == WeightLayout::kDepthwise && !a.depthwise())) {
    return check.invalid("G4: the weight's layout is not the operator's");
  }
  const auto taps = checked_mul(static_cast<std::uint64_t>(a.window.kernel_h), static_cast<std::uint64_t>(a.window.kernel_w));
  if (!taps || *taps > static_cast<std::uint64_t>(INT64_MAX)) return check.invalid("G2: a window's kernel is out of range");
  return check.panels(layout, a.out_channels, outputs_per_group(check.node()), static_cast<std::int64_t>(*taps), a.in_channels / a.groups);
}

/// The padded input of a convolution: no pad is negative, and its bytes stay countable.
Status check_padded(const NodeCheck& check, std::int64_t rows, std::int64_t columns, const ConvAttributes& a) {
  const Window& w = a.window;
  if (std::min({w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}) < 0) return check.invalid("G2: a convolution has a negative pad");
  const auto area = checked_mul(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
  const auto values = area ? checked_mul(*area, static_cast<std::uint64_t>(a.in_channels)) : std::nullopt;
  const auto bytes = values ? checked_mul(*values, kPanelLanes * sizeof(float)) : std::nullopt;
  if (!bytes || *bytes > kMaxPaddedBytes) return check.invalid("G2: a convolution's padded input is larger than any machine holds");
  return {};
}

Status check_conv_axis(const NodeCheck& check, const WindowAxis& axis) {
  const std::int64_t padded = axis.in + axis.pad_begin + axis.pad_end;
  if (padded < axis.extent() || (padded - axis.extent()) / axis.stride + 1 != axis.out) {
    return check.invalid("G2: the output's extent does not follow from the window");
  }
  return {};
}

Status validate_conv(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<ConvAttributes>();
  if (a == nullptr) return check.invalid("G2: a convolution has its attributes");
  SLUICE_RETURN_IF_ERROR(check.products());
  SLUICE_RETURN_IF_ERROR(check_groups(check, *a));
  SLUICE_RETURN_IF_ERROR(check_shapes(check, a->window, a->in_channels));
  const Window& w = a->window;
  for (const WindowAxis& axis : {rows_of(w), columns_of(w)}) SLUICE_RETURN_IF_ERROR(check_conv_axis(check, axis));
  SLUICE_RETURN_IF_ERROR(check_padded(check, w.in_h + w.pad_top + w.pad_bottom, w.in_w + w.pad_left + w.pad_right, *a));
  if (node.numeric == NumericClass::kWinograd4 &&
      (w.kernel_h != 3 || w.kernel_w != 3 || w.stride_h != 1 || w.stride_w != 1 || w.dilation_h != 1 || w.dilation_w != 1 ||
       (a->groups != 1 && a->out_channels / a->groups < kPanelLanes))) {
    return check.invalid("G2: winograd4 is for 3x3 windows of stride and dilation 1, in groups that fill panels");
  }
  SLUICE_RETURN_IF_ERROR(check.residual());
  return check_weights(check, *a, false);
}

/// An output position that no input reaches is allowed (output padding): less than a stride or a dilation of them.
Status check_transposed_axis(const NodeCheck& check, const WindowAxis& axis) {
  const auto reached = checked_mul(static_cast<std::uint64_t>(axis.in - 1), static_cast<std::uint64_t>(axis.stride));
  if (!reached || *reached > static_cast<std::uint64_t>(kMaxExtent) || axis.extent() > kMaxExtent) {
    return check.invalid("G2: a window's kernel, stride or dilation is out of range");
  }
  const std::int64_t plain = static_cast<std::int64_t>(*reached) + axis.extent() - axis.pad_begin - axis.pad_end;
  if (!within(axis.out, plain, plain + std::max(axis.stride, axis.dilation) - 1)) {
    return check.invalid("G2: the output's extent does not follow from the window");
  }
  return {};
}

Status validate_conv_transpose(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<ConvAttributes>();
  if (a == nullptr) return check.invalid("G2: a convolution has its attributes");
  SLUICE_RETURN_IF_ERROR(check.products());
  SLUICE_RETURN_IF_ERROR(check_groups(check, *a));
  SLUICE_RETURN_IF_ERROR(check_shapes(check, a->window, a->in_channels));
  const Window& w = a->window;
  for (const WindowAxis& axis : {rows_of(w), columns_of(w)}) SLUICE_RETURN_IF_ERROR(check_transposed_axis(check, axis));
  if (w.stride_h * w.stride_w > kMaxPhases) return check.invalid("G2: a transposed convolution has more phases than any image has pixels");
  // Each phase is a convolution whose taps reach over the input's edges by as much as the kernel spans.
  SLUICE_RETURN_IF_ERROR(check_padded(check, w.in_h + 2 * rows_of(w).extent(), w.in_w + 2 * columns_of(w).extent(), *a));
  SLUICE_RETURN_IF_ERROR(check.residual());
  return check_weights(check, *a, a->depthwise());
}

std::optional<Shape> infer_conv(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<ConvAttributes>();
  return infer_window(graph, node, a.window, a.out_channels);
}

AxisRelation relate_channels_of(const ConvAttributes& a) noexcept {
  if (a.groups == 1) return reduced();
  return a.depthwise() ? same(3) : blocks(3, a.out_channels / a.groups, a.in_channels / a.groups);
}

AxisRelations relate_conv(const Graph& graph, const Node& node, std::size_t input) noexcept {
  const auto& a = node.as<ConvAttributes>();
  if (input > 0) return relate_along_last(graph, node, input);  // a zero point or scale of the run time
  AxisRelations axes(4);
  axes[0] = same(0);
  axes[1] = relate(rows_of(a.window), 1);
  axes[2] = relate(columns_of(a.window), 2);
  axes[3] = relate_channels_of(a);
  return axes;
}

AxisRelations relate_conv_transpose(const Graph&, const Node& node, std::size_t) noexcept {
  const auto& a = node.as<ConvAttributes>();
  AxisRelations axes(4);
  axes[0] = same(0);
  axes[1] = relate_transposed(rows_of(a.window), 1);
  axes[2] = relate_transposed(columns_of(a.window), 2);
  axes[3] = relate_channels_of(a);
  return axes;
}

/// Taps come before channels in the chain (NumericClass::kExact), so that only a single tap leaves the channels outermost.
Reduction conv_reduction(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<ConvAttributes>();
  if (a.window.taps() != 1 || a.groups != 1 || !adds_in_one_chain(graph, node)) return {};
  return {.input_axis = 3, .extent = a.in_channels};
}

std::int64_t products_per_output(const ConvAttributes& a) noexcept { return a.window.taps() * (a.in_channels / a.groups); }

std::uint64_t conv_flops(const Graph&, const Node& node) noexcept {
  return static_cast<std::uint64_t>(2 * products_per_output(node.as<ConvAttributes>()));
}
std::uint64_t conv_transpose_flops(const Graph&, const Node& node) noexcept {
  const auto& a = node.as<ConvAttributes>();
  return static_cast<std::uint64_t>(2 * products_per_output(a) / (a.window.stride_h * a.window.stride_w));
}

std::uint64_t conv_macs(const Graph& graph, const Node& node) noexcept {
  return macs_of_outputs(graph, node, products_per_output(node.as<ConvAttributes>()));
}
std::uint64_t conv_transpose_macs(const Graph& graph, const Node& node) noexcept {
  const auto& a = node.as<ConvAttributes>();
  return static_cast<std::uint64_t>(shape_of_input(graph, node).element_count()) *
         static_cast<std::uint64_t>(a.window.taps() * a.out_channels / a.groups);
}

// ---- pool

/// With ceil_mode the last window may stand over the end by less than a stride, but it begins inside the image: a window of padding only
/// has no maximum and no mean.
Status check_pool_axis(const NodeCheck& check, const WindowAxis& axis) {
  if (axis.pad_begin < 0 || axis.pad_end < 0 || axis.pad_begin >= axis.extent() || axis.pad_end >= axis.extent()) {
    return check.invalid("G2: a pool's padding is negative or as wide as its window");
  }
  const std::int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.extent();
  const std::int64_t least = room < 0 ? 1 : room / axis.stride + 1;
  const std::int64_t most = room < 0 ? 1 : ceil_div(room, axis.stride) + 1;
  if (!within(axis.out, least, most)) return check.invalid("G2: the output's extent does not follow from the window");
  const auto last = checked_mul(static_cast<std::uint64_t>(axis.out - 1), static_cast<std::uint64_t>(axis.stride));
  if (!last || *last >= static_cast<std::uint64_t>(axis.in + axis.pad_begin))
    return check.invalid("G2: a pool's last window lies beyond the image");
  return {};
}

Status validate_pool(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<PoolAttributes>();
  if (a == nullptr) return check.invalid("G2: a pool has its attributes");
  SLUICE_RETURN_IF_ERROR(check.operands(1, 0));
  SLUICE_RETURN_IF_ERROR(check.f32_or_integers());
  if (check.integer() && a->kind == PoolKind::kMax && check.input(0).quantisation != check.output().quantisation)
    return check.invalid("G2: the largest of integers has the scale of its input");
  SLUICE_RETURN_IF_ERROR(check_shapes(check, a->window, check.input(0).shape.back()));
  const auto taps = checked_mul(static_cast<std::uint64_t>(a->window.kernel_h), static_cast<std::uint64_t>(a->window.kernel_w));
  if (!taps || *taps > static_cast<std::uint64_t>(kMaxPoolTaps)) return check.invalid("G2: a pool has more taps than any image has pixels");
  if (check.integer() && a->kind == PoolKind::kAverage && *taps > static_cast<std::uint64_t>(kMostAveragedBytes))
    return check.invalid("G2: an average of integers has more taps than its sum of 32 bits holds");
  for (const WindowAxis& axis : {rows_of(a->window), columns_of(a->window)}) SLUICE_RETURN_IF_ERROR(check_pool_axis(check, axis));
  return {};
}

std::optional<Shape> infer_pool(const Graph& graph, const Node& node) noexcept {
  return infer_window(graph, node, node.as<PoolAttributes>().window, shape_of_input(graph, node).back());
}

AxisRelations relate_pool(const Graph&, const Node& node, std::size_t) noexcept {
  const Window& w = node.as<PoolAttributes>().window;
  AxisRelations axes(4);
  axes[0] = same(0);
  axes[1] = relate(rows_of(w), 1);
  axes[2] = relate(columns_of(w), 2);
  axes[3] = same(3);
  return axes;
}

std::uint64_t pool_flops(const Graph&, const Node& node) noexcept {
  return static_cast<std::uint64_t>(node.as<PoolAttributes>().window.taps());
}

}  // namespace

constexpr OperatorDefinition kConv = {
    .kind = OpKind::kConv,
    .attributes = kAlternative<ConvAttributes>,
    .epilogue = {.bias = true, .residual = true, .activation = true},
    .quantised_panels = true,
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_conv,
    .infer = infer_conv,
    .relate_input = relate_conv,
    .relate_weight = relate_panels,
    .reduction = conv_reduction,
    .flops_per_output = conv_flops,
    .macs = conv_macs,
};

constexpr OperatorDefinition kConvTranspose = {
    .kind = OpKind::kConvTranspose,
    .attributes = kAlternative<ConvAttributes>,
    .epilogue = {.bias = true, .residual = true, .activation = true},
    .quantised_panels = true,
    .validate = validate_conv_transpose,
    .infer = infer_conv,
    .relate_input = relate_conv_transpose,
    .relate_weight = relate_panels,
    .flops_per_output = conv_transpose_flops,
    .macs = conv_transpose_macs,
};

constexpr OperatorDefinition kPool = {
    .kind = OpKind::kPool,
    .attributes = kAlternative<PoolAttributes>,
    .epilogue = {.activation = true},
    .integers = Integers::kSome,
    .in_bands = true,
    .validate = validate_pool,
    .infer = infer_pool,
    .relate_input = relate_pool,
    .flops_per_output = pool_flops,
};

}  // namespace sluice::operators
