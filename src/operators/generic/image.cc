// Images of any number of axes, sampled at places that other values give.
#include "sluice/operators/generic/image.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace image;
namespace {

PlainRefusal infer_grid(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0) || !node.has(1)) return kMissingInput;
  const Shape &x = node.in(0).shape, &grid = node.in(1).shape;
  const int axes = x.rank() - 2;
  if (!is_f32(node.in(0).dtype) || !is_f32(node.in(1).dtype)) return kWrongType;
  if (axes < 1 || axes > kMaxGridAxes || grid.rank() != x.rank() || grid.back() != axes || grid[0] != x[0]) return kWrongShape;
  Dims dims;
  dims.add(x, 0, 2);
  dims.add(grid, 1, grid.rank() - 1);
  out.dtype = DType::kF32;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

// ---- AffineGrid: theta [N, 2, 3] or [N, 3, 4] and a size

PlainRefusal infer_affine(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const auto size = node.list(0);
  if (size.size() != 4 && size.size() != 5) return kWrongArgument;
  const auto axes = static_cast<std::int64_t>(size.size()) - 2;
  if (!is_f32(node.in(0).dtype) || !(node.in(0).shape == Shape{size[0], axes, axes + 1})) return kWrongShape;
  Dims dims;
  dims.add(size[0]);
  for (const std::int64_t extent : size.subspan(2)) dims.add(extent);
  dims.add(axes);
  out.dtype = DType::kF32;
  return make_shape(dims.span(), out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_roi(const PlainNode& node, PlainTensor& out) noexcept {
  for (const int i : {0, 1, 2})
    if (!node.has(i)) return kMissingInput;
  const Shape &x = node.in(0).shape, &rois = node.in(1).shape;
  if (!is_f32(node.in(0).dtype) || !is_f32(node.in(1).dtype) || !is_index(node.in(2).dtype)) return kWrongType;
  if (x.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || node.in(2).count() != rois[0]) return kWrongShape;
  constexpr std::int64_t kMost = 1 << 14;
  if (node.integer(kRoiHeight) < 1 || node.integer(kRoiWidth) < 1 || node.integer(kRoiHeight) > kMost || node.integer(kRoiWidth) > kMost)
    return kWrongArgument;
  if (node.integer(kRoiSamples) < 0 || node.integer(kRoiSamples) > kMost) return kWrongArgument;
  out = {DType::kF32, Shape{rois[0], x[1], node.integer(kRoiHeight), node.integer(kRoiWidth)}};
  return nullptr;
}

constexpr PlainOperator kImageOperators[] = {
    {431, "GridSample", "align_corners:i=0 mode:s=linear|nearest|cubic|bilinear|bicubic padding_mode:s=zeros|border|reflection",
     infer_grid},
    {432, "AffineGrid", "size:I@1 align_corners:i=0", infer_affine, nullptr, 1, bound_stated_f32},
    {433, "RoiAlign",
     "mode:s=avg|max output_height:i=1 output_width:i=1 sampling_ratio:i=0 spatial_scale:f=1 "
     "coordinate_transformation_mode:s=|half_pixel|output_half_pixel #",
     infer_roi},
};

}  // namespace

std::span<const PlainOperator> image_operators() noexcept { return kImageOperators; }

}  // namespace sluice::operators::generic
