// Conv, ConvTranspose and the pools.
#include "src/importer/lower_window.h"

namespace sluice::importer {
namespace {

using model::OpKind;
using model::PoolKind;

/// A weight of rank 3 as rank 4 with a kernel height of 1.
Constant as_image_weight(const Constant& w) {
  if (w.shape.rank() == 4) return w;
  return *reshaped(w, Shape{w.shape[0], w.shape[1], 1, w.shape[2]});
}

PanelValues panels_of(const NodeContext& c, const Constant& w, std::string name, int rank) {
  if (!is_float(w.dtype)) c.refuse("the weight is not float");
  if (w.shape.rank() != rank) c.malformed("the weight's rank differs from the input's");
  if (rank != 3 && rank != 4) c.refuse("a kernel of shape " + w.shape.to_string() + "; supported are [N, C, L] and [N, C, H, W]");
  if (w.elements() == 0) c.malformed("the weight is empty");
  PanelValues panels;
  panels.name = std::move(name);
  panels.values = with_even_taps(as_image_weight(w));
  return panels;
}

PanelValues read_weight(const NodeContext& c) {
  return panels_of(c, c.require_constant(1, "the weight"), c.draft().value(c.input(1)).name, c.input_shape(0).rank());
}

void attach(NodeContext& c, PanelValues panels, std::vector<float> bias) {
  DraftNode& node = c.last_node();
  node.panels = std::move(panels);
  node.epilogue.has_bias = !bias.empty();
  node.bias = std::move(bias);
}

}  // namespace

std::vector<float> read_bias(const NodeContext& c, std::int64_t channels) {
  if (!c.has_input(2)) return {};
  const Constant& bias = c.require_constant(2, "the bias");
  if (!is_float(bias.dtype) || bias.elements() != channels) c.malformed("the bias must have one float for each output channel");
  return floats(bias);
}

std::int64_t read_groups(const NodeContext& c, std::int64_t channels) {
  const std::int64_t groups = c.integer("group", 1);
  if (groups < 1 || channels % groups != 0)
    c.malformed("attribute group is " + std::to_string(groups) + ", which does not divide " + std::to_string(channels) + " channels");
  return groups;
}

ValueId add_image_conv(NodeContext& c, ValueId image, const Spatial& s, const std::array<std::int64_t, 2>& out, std::int64_t groups,
                       PanelValues panels, std::vector<float> bias) {
  const Shape in = c.shape(image);
  const std::int64_t outputs = panels.values.shape[0];
  const ValueId y = c.add(OpKind::kConv, {image}, Shape{in[0], outputs, out[0], out[1]},
                          model::ConvAttributes{make_window(s, out), groups, in[1], outputs});
  attach(c, std::move(panels), std::move(bias));
  return y;
}

ValueId add_image_pool(NodeContext& c, ValueId image, const Spatial& s, const std::array<std::int64_t, 2>& out, PoolKind kind,
                       bool counts_padding) {
  const Shape in = c.shape(image);
  return c.add(OpKind::kPool, {image}, Shape{in[0], in[1], out[0], out[1]},
               model::PoolAttributes{kind, make_window(s, out), counts_padding});
}

namespace {

void lower_pool(NodeContext& c, PoolKind kind) {
  const ValueId x = c.float_input(0);
  if (c.wants_output(1)) c.refuse("the second output, Indices, is used; only the pooled values are supported");
  if (c.integer("storage_order", 0) != 0) c.refuse("storage_order 1");
  if (c.shape(x).rank() == 5) return c.set_output(0, add_volume_pool(c, x, kind));
  Spatial s = read_spatial(c, c.shape(x), {});
  const auto out = windowed_extents(c, s, c.integer("ceil_mode", 0) != 0);
  const ValueId y = add_image_pool(c, as_image(c, x), s, out, kind, c.integer("count_include_pad", 0) != 0);
  c.set_output(0, as_line(c, y, s.one_dimensional));
}

ValueId add_global_pool(NodeContext& c, ValueId x, PoolKind kind) {
  const Shape shape = c.shape(x);
  if (shape.rank() == 5) {
    if (kind == PoolKind::kAverage && c.draft().exact) c.refuse("means over three axes of the class exact");
    const ValueId flat = c.add_reshape(x, Shape{shape[0], shape[1], shape[2] * shape[3], shape[4]});
    return c.add_reshape(add_global_pool(c, flat, kind), Shape{shape[0], shape[1], 1, 1, 1});
  }
  if (shape.rank() != 3 && shape.rank() != 4)
    c.refuse("input of shape " + shape.to_string() + "; supported are [N, C, L], [N, C, H, W] and [N, C, D, H, W]");
  const ValueId image = as_image(c, x);
  const Shape in = c.shape(image);
  const model::Window window{.in_h = in[2], .in_w = in[3], .kernel_h = in[2], .kernel_w = in[3]};
  const ValueId y = c.add(OpKind::kPool, {image}, Shape{in[0], in[1], 1, 1}, model::PoolAttributes{kind, window, false});
  return as_line(c, y, shape.rank() == 3);
}

/// The mean over neighbouring axes [first, end): what lies before them becomes the batch, what follows the channels of an image whose
/// columns are the run.
ValueId add_mean_over_run(NodeContext& c, ValueId x, int first, int end) {
  const Shape shape = c.shape(x);
  const std::int64_t before = shape.count(0, first), run = shape.count(first, end), after = shape.count(end, shape.rank());
  ValueId image = x;
  if (after > 1) image = c.add_transpose(c.add_reshape(x, Shape{before, run, after}), Perm{0, 2, 1, 3, 4, 5, 6, 7});
  image = c.add_reshape(image, Shape{before, after, 1, run});
  const model::Window window{.in_h = 1, .in_w = run, .kernel_w = run};
  return c.add(OpKind::kPool, {image}, Shape{before, after, 1, 1}, model::PoolAttributes{PoolKind::kAverage, window, false});
}

}  // namespace

namespace {

/// Is it an image of one column, as lines in images are, with a kernel along it? Kernels take neighbours of a row at once.
bool is_column(const Spatial& s) noexcept {
  return !s.one_dimensional && s.in[1] == 1 && s.kernel[1] == 1 && s.before[1] == 0 && s.after[1] == 0 && s.kernel[0] > 1 && s.in[0] > 1;
}

/// The column as a row.
ValueId add_column_conv(NodeContext& c, ValueId x, Spatial s, std::int64_t extent, std::int64_t groups, PanelValues panels,
                        std::vector<float> bias) {
  const Shape in = c.shape(x), w = panels.values.shape;
  panels.values = reshaped_or_copied(panels.values, Shape{w[0], w[1], 1, w[2]});
  for (auto* of_axis : {&s.in, &s.kernel, &s.stride, &s.dilation, &s.before, &s.after}) std::swap((*of_axis)[0], (*of_axis)[1]);
  const ValueId row = c.add_reshape(x, Shape{in[0], in[1], 1, in[2]});
  const ValueId y = add_image_conv(c, row, s, {1, extent}, groups, std::move(panels), std::move(bias));
  return c.add_reshape(y, Shape{in[0], w[0], extent, 1});
}

ValueId add_conv(NodeContext& c, ValueId x, PanelValues panels, std::vector<float> bias) {
  const Shape in = c.shape(x), w = panels.values.shape;
  const std::int64_t kernel[] = {w[2], w[3]};
  Spatial s = read_spatial(c, in, std::span<const std::int64_t>(kernel).subspan(in.rank() == 3 ? 1 : 0));
  const std::int64_t groups = read_groups(c, in[1]);
  if (w[1] != in[1] / groups || w[0] % groups != 0)
    c.malformed("a weight of shape " + w.to_string() + " does not fit " + std::to_string(in[1]) + " channels in " + std::to_string(groups) +
                " groups");
  const auto out = windowed_extents(c, s, false);
  if (is_column(s)) return add_column_conv(c, x, s, out[0], groups, std::move(panels), std::move(bias));
  const ValueId y = add_image_conv(c, as_image(c, x), s, out, groups, std::move(panels), std::move(bias));
  return as_line(c, y, s.one_dimensional);
}

}  // namespace

ValueId add_conv(NodeContext& c, ValueId x, const Constant& weight, const std::string& name) {
  return add_conv(c, x, panels_of(c, weight, name, c.shape(x).rank()), {});
}

void lower_conv(NodeContext& c) {
  const ValueId x = c.float_input(0);
  if (c.shape(x).rank() == 5) return lower_volume_conv(c);
  PanelValues panels = read_weight(c);
  std::vector<float> bias = read_bias(c, panels.values.shape[0]);
  c.set_output(0, add_conv(c, x, std::move(panels), std::move(bias)));
}

void lower_conv_transpose(NodeContext& c) {
  const ValueId x = c.float_input(0);
  PanelValues panels = read_weight(c);
  const Shape in = c.shape(x), w = panels.values.shape;
  const std::int64_t kernel[] = {w[2], w[3]};
  const std::size_t lead = in.rank() == 3 ? 1 : 0;
  Spatial s = read_spatial(c, in, std::span<const std::int64_t>(kernel).subspan(lead));
  const std::int64_t groups = read_groups(c, in[1]);
  if (w[0] != in[1])
    c.malformed("a weight of shape " + c.input_shape(1).to_string() + " does not fit " + std::to_string(in[1]) + " channels");
  const auto channels = Shape::make(std::array{w[1], groups});
  if (!channels) c.malformed("the number of output channels overflows");

  std::array<std::int64_t, 2> extra{}, wanted{};
  const std::vector<std::int64_t> output_padding = c.integers("output_padding"), output_shape = c.integers("output_shape");
  if ((!output_padding.empty() && output_padding.size() != 2 - lead) || (!output_shape.empty() && output_shape.size() != 2 - lead))
    c.malformed("output_padding and output_shape must have one value for each spatial axis");
  const std::string_view auto_pad = c.string("auto_pad", "NOTSET");
  std::array<std::int64_t, 2> out{};
  for (std::size_t a = 0; a < 2; ++a) {
    if (a >= lead && !output_padding.empty()) extra[a] = output_padding[a - lead];
    if (a >= lead && !output_shape.empty()) wanted[a] = output_shape[a - lead];
    if (a < lead) wanted[a] = 0;
    if (extra[a] < 0 || extra[a] >= std::max(s.stride[a], s.dilation[a]))
      c.malformed("output_padding must be below the stride or dilation");
    std::int64_t full = s.stride[a] * (s.in[a] - 1) + extra[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
    const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (same && wanted[a] == 0) wanted[a] = s.in[a] * s.stride[a];
    if (auto_pad == "VALID") s.before[a] = s.after[a] = 0;
    if (wanted[a] > 0) {
      // The rest of the padding, if odd, goes where auto_pad says: to the end for SAME_UPPER, else to the beginning.
      // A little more than the input reaches is padding of the output.
      const std::int64_t missing = std::max<std::int64_t>(0, wanted[a] - full);
      if (extra[a] + missing >= std::max(s.stride[a], s.dilation[a])) c.refuse("output_shape is larger than what the input reaches");
      full += missing;
      const std::int64_t total = full - wanted[a];
      s.before[a] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      s.after[a] = total - s.before[a];
    }
    out[a] = full - s.before[a] - s.after[a];
    if (out[a] < 1) c.malformed("the padding leaves nothing of the output");
  }
  const std::int64_t outputs = channels->element_count();
  std::vector<float> bias = read_bias(c, outputs);
  const model::ConvAttributes attributes{make_window(s, out), groups, in[1], outputs};
  const ValueId image = as_image(c, x);
  const ValueId y = c.add(OpKind::kConvTranspose, {image}, Shape{in[0], outputs, out[0], out[1]}, attributes);
  attach(c, std::move(panels), std::move(bias));
  c.set_output(0, as_line(c, y, s.one_dimensional));
}

void lower_max_pool(NodeContext& c) { lower_pool(c, PoolKind::kMax); }
void lower_average_pool(NodeContext& c) { lower_pool(c, PoolKind::kAverage); }
void lower_global_average_pool(NodeContext& c) { c.set_output(0, add_global_pool(c, c.float_input(0), PoolKind::kAverage)); }
void lower_global_max_pool(NodeContext& c) { c.set_output(0, add_global_pool(c, c.float_input(0), PoolKind::kMax)); }

void lower_reduce_mean(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape shape = c.shape(x);
  std::vector<std::int64_t> listed = c.has_input(1) ? c.constant_integers(1, "the list of axes") : c.integers("axes");
  if (listed.empty()) {
    if (c.integer("noop_with_empty_axes", 0) != 0) return c.set_output(0, x);
    for (int a = 0; a < shape.rank(); ++a) listed.push_back(a);
  }
  std::array<bool, Shape::kMaxRank> reduced{};
  for (const std::int64_t a : listed) reduced[static_cast<std::size_t>(c.axis(a, shape.rank()))] = true;
  Shape kept = shape;
  std::vector<std::int64_t> squeezed;
  int first = shape.rank(), last = -1;
  for (int a = 0; a < shape.rank(); ++a) {
    if (reduced[static_cast<std::size_t>(a)]) {
      kept[a] = 1;
      if (shape[a] != 1) first = std::min(first, a), last = a;
    } else {
      squeezed.push_back(shape[a]);
    }
  }
  for (int a = first; a <= last; ++a)
    if (!reduced[static_cast<std::size_t>(a)] && shape[a] != 1) c.refuse("the reduced axes must be neighbours");
  ValueId y = x;
  const bool volume = shape.rank() == 5 && last == 4 && !c.draft().exact;
  if (first == 2 && (volume || (last == 3 && shape.rank() == 4))) {
    y = add_global_pool(c, x, PoolKind::kAverage);
  } else if (last >= 0) {
    y = add_mean_over_run(c, x, first, last + 1);
  }
  if (c.integer("keepdims", 1) != 0) return c.set_output(0, c.add_reshape(y, kept));
  c.set_output(0, c.add_reshape(y, *Shape::make(squeezed)));
}

}  // namespace sluice::importer
