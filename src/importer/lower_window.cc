#include "src/importer/lower_window.h"

namespace sluice::importer {
namespace {

// No image, kernel or padding of a real model comes near; sums and products of a few such numbers stay within 64 bits.
constexpr std::int64_t kMostSideOfWindow = std::int64_t{1} << 30;

void read_list(const NodeContext& c, std::string_view name, std::array<std::int64_t, 2>& to, std::size_t count, std::int64_t least) {
  const std::vector<std::int64_t> values = c.integers(name);
  if (values.empty()) return;
  if (values.size() != count) c.malformed("attribute " + std::string(name) + " must have " + std::to_string(count) + " values");
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] < least || values[i] > kMostSideOfWindow) c.malformed("attribute " + std::string(name) + " has a value out of range");
    to[2 - count + i] = values[i];
  }
}

}  // namespace

Spatial read_spatial(const NodeContext& c, const Shape& input, std::span<const std::int64_t> kernel) {
  if (input.rank() != 3 && input.rank() != 4)
    c.refuse("input of shape " + input.to_string() + "; supported are [N, C, L] and [N, C, H, W]");
  Spatial s;
  s.one_dimensional = input.rank() == 3;
  const std::size_t count = s.one_dimensional ? 1 : 2;
  s.in = {s.one_dimensional ? 1 : input[2], input[input.rank() - 1]};
  s.kernel = {1, 1};
  for (std::size_t i = 0; i < kernel.size() && i < count; ++i) s.kernel[2 - count + i] = kernel[i];
  if (kernel.empty() && c.integers("kernel_shape").empty()) c.malformed("attribute kernel_shape is missing");
  const std::array<std::int64_t, 2> of_weight = s.kernel;
  read_list(c, "kernel_shape", s.kernel, count, 1);
  if (!kernel.empty() && s.kernel != of_weight) c.malformed("attribute kernel_shape does not agree with the weight's shape");
  read_list(c, "strides", s.stride, count, 1);
  read_list(c, "dilations", s.dilation, count, 1);
  for (const std::int64_t extent : {s.in[0], s.in[1], s.kernel[0], s.kernel[1]})
    if (extent < 1 || extent > kMostSideOfWindow) c.malformed("an image or kernel extent is out of range");

  const std::vector<std::int64_t> pads = c.integers("pads");
  if (!pads.empty()) {
    if (pads.size() != 2 * count) c.malformed("attribute pads must have " + std::to_string(2 * count) + " values");
    for (std::size_t i = 0; i < count; ++i) {
      s.before[2 - count + i] = pads[i];
      s.after[2 - count + i] = pads[count + i];
      if (pads[i] < 0 || pads[count + i] < 0) c.refuse("negative padding");
      if (pads[i] > kMostSideOfWindow || pads[count + i] > kMostSideOfWindow) c.malformed("a padding is out of range");
    }
  }
  return s;
}

std::array<std::int64_t, 2> windowed_extents(const NodeContext& c, Spatial& s, bool ceil_mode) {
  const std::string_view auto_pad = c.string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) c.malformed("attribute auto_pad has an unknown value");
  std::array<std::int64_t, 2> out{};
  for (std::size_t a = 0; a < 2; ++a) {
    const std::int64_t reach = (s.kernel[a] - 1) * s.dilation[a] + 1;
    if (auto_pad == "VALID") s.before[a] = s.after[a] = 0;
    if (same) {
      out[a] = ceil_div(s.in[a], s.stride[a]);
      const std::int64_t total = std::max<std::int64_t>(0, (out[a] - 1) * s.stride[a] + reach - s.in[a]);
      s.before[a] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      s.after[a] = total - s.before[a];
      continue;
    }
    const std::int64_t room = s.in[a] + s.before[a] + s.after[a] - reach;
    if (room < 0) c.malformed("the kernel reaches over " + std::to_string(reach) + " values where the padded input has fewer");
    out[a] = (ceil_mode ? ceil_div(room, s.stride[a]) : room / s.stride[a]) + 1;
    // A last window that would start beyond the input and its leading padding is dropped.
    if (ceil_mode && (out[a] - 1) * s.stride[a] >= s.in[a] + s.before[a]) --out[a];
  }
  return out;
}

model::Window make_window(const Spatial& s, const std::array<std::int64_t, 2>& out) {
  return {.in_h = s.in[0],
          .in_w = s.in[1],
          .out_h = out[0],
          .out_w = out[1],
          .kernel_h = s.kernel[0],
          .kernel_w = s.kernel[1],
          .stride_h = s.stride[0],
          .stride_w = s.stride[1],
          .dilation_h = s.dilation[0],
          .dilation_w = s.dilation[1],
          .pad_top = s.before[0],
          .pad_left = s.before[1],
          .pad_bottom = s.after[0],
          .pad_right = s.after[1]};
}

ValueId as_image(NodeContext& c, ValueId x) {
  const Shape shape = c.shape(x);
  return shape.rank() == 4 ? x : c.add_reshape(x, Shape{shape[0], shape[1], 1, shape[2]});
}

ValueId as_line(NodeContext& c, ValueId x, bool one_dimensional) {
  const Shape shape = c.shape(x);
  return one_dimensional ? c.add_reshape(x, Shape{shape[0], shape[1], shape[3]}) : x;
}

}  // namespace sluice::importer
