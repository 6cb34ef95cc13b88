// Conv and the pools of three spatial axes as those of images, whose kernels are fast: with channels last the planes of a volume are the
// images of a batch, and its columns of voxels are columns of pixels.
//
//     kernel 1 x h x w    [N, C, D, H, W] --> [N * D, C, H, W], a convolution of planes
//     kernel d x 1 x 1    [N, C, D, H, W] --> [N, C, D, H * W], a convolution of d x 1
//     kernel d x h x w    for each of the d taps a convolution of the planes that it meets; their sum. Of few channels one convolution,
//                         of planes with the channels of all d taps
//
// The moves between cost nothing where neighbours do the same: the layout pass (rewrite/lay_out.cc) has volumes with their channels last
// too. A sum of d convolutions is summed in another order than ONNX's, so graphs of the class `exact` keep the plain operator there.
#include "sluice/core/units.h"
#include "src/importer/lower_window.h"

namespace sluice::importer {
namespace {

using model::OpKind;

constexpr std::int64_t kMostVolumeExtent = std::int64_t{1} << 30;
// Up to here channels of several taps fill what one tap's would leave idle.
constexpr std::int64_t kMostTapChannels = 64;
// Each tap along the depth is a convolution, a slice and a sum: 20,000 of them took 100 MB to plan where the plain operator takes 3.
constexpr std::int64_t kMostDepthTaps = 64;

/// A window along one axis.
struct VolumeAxis {
  std::int64_t in, kernel, stride = 1, dilation = 1, before = 0, after = 0, out = 0;

  bool idle() const noexcept { return kernel == 1 && stride == 1 && before == 0 && after == 0; }
};

/// The windows of a node, whose kernel is that of its weight where it has one; refuses what is left to the plain operators, and has them
/// say what is malformed.
class VolumeWindow {
 public:
  VolumeWindow(const NodeContext& c, const Shape& in, const Shape* weight) {
    for (int a = 0; a < 3; ++a) axes_[static_cast<std::size_t>(a)] = {.in = in[a + 2], .kernel = weight == nullptr ? 0 : (*weight)[a + 2]};
    read(c, "kernel_shape", &VolumeAxis::kernel);
    read(c, "strides", &VolumeAxis::stride);
    read(c, "dilations", &VolumeAxis::dilation);
    const std::vector<std::int64_t> pads = c.integers("pads");
    if (!pads.empty() && pads.size() != 6) c.refuse("padding that is not of three axes");
    const std::string_view auto_pad = c.string("auto_pad", "NOTSET");
    if (!auto_pad.empty() && auto_pad != "NOTSET" && auto_pad != "VALID") c.refuse("volumes with auto_pad");
    for (std::size_t a = 0; a < 3; ++a) {
      VolumeAxis& axis = axes_[a];
      if (!pads.empty() && auto_pad != "VALID") axis.before = pads[a], axis.after = pads[a + 3];
      if (weight != nullptr && axis.kernel != (*weight)[static_cast<int>(a) + 2]) c.refuse("a kernel of another shape than its weight");
      const bool fits = axis.kernel >= 1 && axis.stride >= 1 && axis.dilation >= 1 && axis.before >= 0 && axis.after >= 0;
      for (const std::int64_t extent : {axis.in, axis.kernel, axis.stride, axis.dilation, axis.before, axis.after})
        if (!fits || extent > kMostVolumeExtent) c.refuse("windows of such extents");
      const std::int64_t reach = (axis.kernel - 1) * axis.dilation;
      if (weight == nullptr && (axis.before > reach || axis.after > reach)) c.refuse("pools of padding alone");
      const std::int64_t room = axis.in + axis.before + axis.after - (axis.kernel - 1) * axis.dilation - 1;
      if (room < 0) c.refuse("a window that is larger than the volume");
      const bool ceils = c.integer("ceil_mode", 0) != 0;
      axis.out = (ceils ? ceil_div(room, axis.stride) : room / axis.stride) + 1;
      if (ceils && (axis.out - 1) * axis.stride >= axis.in + axis.before) --axis.out;
    }
  }

  const VolumeAxis& depth() const noexcept { return axes_[0]; }
  /// Does nothing happen along rows and columns?
  bool along_depth() const noexcept { return axes_[1].idle() && axes_[2].idle(); }
  /// The windows of planes.
  Spatial planes() const noexcept { return spatial(axes_[1], axes_[2]); }
  std::array<std::int64_t, 2> plane_extents() const noexcept { return {axes_[1].out, axes_[2].out}; }
  /// The windows along the depth, of columns that are all voxels of a plane: of the extent `voxels`.
  Spatial depths(std::int64_t voxels) const noexcept { return spatial(axes_[0], {.in = voxels, .kernel = 1}); }

 private:
  static Spatial spatial(const VolumeAxis& rows, const VolumeAxis& columns) noexcept {
    Spatial s;
    s.in = {rows.in, columns.in};
    s.kernel = {rows.kernel, columns.kernel};
    s.stride = {rows.stride, columns.stride};
    s.dilation = {rows.dilation, columns.dilation};
    s.before = {rows.before, columns.before};
    s.after = {rows.after, columns.after};
    return s;
  }
  void read(const NodeContext& c, const char* name, std::int64_t VolumeAxis::*to) {
    const std::vector<std::int64_t> values = c.integers(name);
    if (!values.empty() && values.size() != 3) c.refuse("windows that are not of three axes");
    for (std::size_t a = 0; a < values.size(); ++a) axes_[a].*to = values[a];
  }

  std::array<VolumeAxis, 3> axes_{};
};

/// [N, C, D, H, W] as [N * D, C, H, W].
ValueId as_planes(NodeContext& c, ValueId x) {
  const ValueId turned = c.add_transpose(x, kPlanesOfVolume);
  const Shape s = c.shape(turned);
  return c.add_reshape(turned, Shape{s[0] * s[1], s[2], s[3], s[4]});
}
ValueId as_volume(NodeContext& c, ValueId planes, std::int64_t volumes) {
  const Shape s = c.shape(planes);
  return c.add_transpose(c.add_reshape(planes, Shape{volumes, s[0] / volumes, s[1], s[2], s[3]}), kPlanesOfVolume);
}
/// [N, C, D, H, W] as [N, C, D, H * W], and back to rows of `columns`.
ValueId as_columns(NodeContext& c, ValueId x) {
  const Shape s = c.shape(x);
  return c.add_reshape(x, Shape{s[0], s[1], s[2], s[3] * s[4]});
}
ValueId from_columns(NodeContext& c, ValueId x, std::int64_t columns) {
  const Shape s = c.shape(x);
  return c.add_reshape(x, Shape{s[0], s[1], s[2], s[3] / columns, columns});
}

/// Tap `k` of the depth of a weight [N, C, D, H, W].
Constant weight_plane(const Constant& w, std::int64_t k) {
  const Shape shape{w.shape[0], w.shape[1], w.shape[3], w.shape[4]};
  if (w.absent) return make_absent(w.dtype, shape);
  Constant plane = w;
  plane.shape = shape;
  plane.strides[2] = w.strides[3];
  plane.strides[3] = w.strides[4];
  plane.data += k * w.strides[2] * static_cast<std::int64_t>(size_of(w.dtype));
  return with_even_taps(plane);
}

/// A convolution of volumes, as the head of this file says.
class VolumeConv {
 public:
  VolumeConv(NodeContext& c, ValueId x, const Constant& weight)
      : c_(c), x_(x), in_(c.shape(x)), weight_(weight), window_(c, in_, &weight.shape), name_(c.draft().value(c.input(1)).name) {
    groups_ = read_groups(c, in_[1]);
    bias_ = read_bias(c, weight.shape[0]);
  }

  ValueId add() {
    const VolumeAxis& depth = window_.depth();
    if (window_.along_depth()) {
      const ValueId columns = as_columns(c_, x_);
      const Shape taps{weight_.shape[0], weight_.shape[1], depth.kernel, 1};
      const auto weight = reshaped(weight_, taps);
      if (!weight) c_.refuse("a weight whose taps lie apart");
      const std::int64_t voxels = in_[3] * in_[4];
      const ValueId y = add_image_conv(c_, columns, window_.depths(voxels), {depth.out, voxels}, groups_,
                                       {.name = name_, .values = with_even_taps(*weight)}, std::move(bias_));
      return from_columns(c_, y, in_[4]);
    }
    if (depth.kernel == 1 && (depth.before > 0 || depth.after > 0)) c_.refuse("padding that no tap meets");
    if (depth.kernel > kMostDepthTaps) c_.refuse("kernels of so many taps along the depth");
    if (depth.kernel > 1 && c_.draft().exact) c_.refuse("three axes in one sum of the class exact");
    return as_volume(c_, sum_of_taps(), in_[0]);
  }

 private:
  ValueId sum_of_taps() {
    const VolumeAxis& depth = window_.depth();
    const ValueId volume = padded();
    if (groups_ == 1 && depth.kernel > 1 && depth.kernel * in_[1] <= kMostTapChannels && weight_.elements() <= kMaxFoldedElements)
      return taps_as_channels(volume);
    ValueId sum;
    for (std::int64_t k = 0; k < depth.kernel; ++k) {
      const std::int64_t first = k * depth.dilation - depth.before;  // the plane that output 0 meets
      const bool meets = first < depth.in && first + (depth.out - 1) * depth.stride >= 0;
      if (!meets && (sum.valid() || k + 1 < depth.kernel)) continue;  // padding alone
      const ValueId y = add_image_conv(c_, met_by(volume, first + depth.before), window_.planes(), window_.plane_extents(), groups_,
                                       {.name = k == 0 ? name_ : name_ + ":" + std::to_string(k), .values = weight_plane(weight_, k)},
                                       sum.valid() ? std::vector<float>() : bias_);
      sum = sum.valid() ? c_.add_binary(model::BinaryFunction::kAdd, y, sum) : y;
    }
    return sum;
  }

  ValueId taps_as_channels(ValueId volume) {
    const std::int64_t taps = window_.depth().kernel;
    std::vector<ValueId> parts;
    for (std::int64_t k = 0; k < taps; ++k) parts.push_back(met_by(volume, k * window_.depth().dilation));
    Shape shape = c_.shape(parts[0]);
    shape[1] *= taps;
    const ValueId all = c_.add(OpKind::kConcat, parts, shape, model::AxisAttributes{1});
    c_.last_node().axis = 1;
    const Shape to{weight_.shape[0], shape[1], weight_.shape[3], weight_.shape[4]};
    const Constant weight = weight_.absent ? make_absent(weight_.dtype, to) : reshaped_or_copied(permuted(weight_, kPlanesOfVolume), to);
    return add_image_conv(c_, all, window_.planes(), window_.plane_extents(), 1, {.name = name_, .values = with_even_taps(weight)},
                          std::move(bias_));
  }

  /// The volume with the padding of its depth.
  ValueId padded() {
    const VolumeAxis& depth = window_.depth();
    if (depth.before == 0 && depth.after == 0) return x_;
    model::PadAttributes pad;
    pad.before[2] = depth.before;
    pad.after[2] = depth.after;
    Shape shape = in_;
    shape[2] += depth.before + depth.after;
    return c_.add(OpKind::kPad, {x_}, shape, pad);
  }

  /// The planes of a volume that a tap meets whose first is plane `first`.
  ValueId met_by(ValueId volume, std::int64_t first) {
    const VolumeAxis& depth = window_.depth();
    Shape shape = c_.shape(volume);
    if (shape[2] == depth.out && depth.stride == 1) return as_planes(c_, volume);
    model::SliceAttributes slice;
    slice.start[2] = first;
    slice.step[2] = depth.stride;
    shape[2] = depth.out;
    return as_planes(c_, c_.add(OpKind::kSlice, {volume}, shape, slice));
  }

  NodeContext& c_;
  ValueId x_;
  const Shape in_;
  const Constant& weight_;
  VolumeWindow window_;
  std::string name_;
  std::int64_t groups_ = 1;
  std::vector<float> bias_;
};

}  // namespace

void lower_volume_conv(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Constant weight = c.require_constant(1, "the weight");
  const Shape in = c.shape(x);
  if (!is_float(weight.dtype) || weight.quantised != nullptr || weight.shape.rank() != 5 || weight.elements() == 0)
    c.refuse("such a weight of volumes");
  const std::int64_t groups = c.integer("group", 1);
  if (groups < 1 || in[1] % groups != 0 || weight.shape[1] != in[1] / groups || weight.shape[0] % groups != 0)
    c.refuse("a weight that does not fit its groups");
  c.set_output(0, VolumeConv(c, x, weight).add());
}

ValueId add_volume_pool(NodeContext& c, ValueId x, model::PoolKind kind) {
  const Shape in = c.shape(x);
  const VolumeWindow window(c, in, nullptr);
  const bool counts_padding = c.integer("count_include_pad", 0) != 0;
  if (window.along_depth()) {
    const std::int64_t voxels = in[3] * in[4];
    const ValueId y = add_image_pool(c, as_columns(c, x), window.depths(voxels), {window.depth().out, voxels}, kind, counts_padding);
    return from_columns(c, y, in[4]);
  }
  // The greatest of greatest ones, the mean of means: of how many values is a product of both. But the sums are others.
  if (!window.depth().idle() && kind != model::PoolKind::kMax && c.draft().exact) c.refuse("means over three axes of the class exact");
  const ValueId planes =
      as_volume(c, add_image_pool(c, as_planes(c, x), window.planes(), window.plane_extents(), kind, counts_padding), in[0]);
  if (window.depth().idle()) return planes;
  const Shape s = c.shape(planes);
  const std::int64_t voxels = s[3] * s[4];
  const ValueId y = add_image_pool(c, as_columns(c, planes), window.depths(voxels), {window.depth().out, voxels}, kind, counts_padding);
  return from_columns(c, y, s[4]);
}

}  // namespace sluice::importer
