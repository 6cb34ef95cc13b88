// Images of any number of axes in another size: the forms of Resize that kResize does not take.
#include "sluice/operators/generic/resize.h"

#include <bit>

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace resize;
namespace {

PlainRefusal infer_resize(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  const PlainTensor& x = node.in(0);
  const auto extents = node.list(kExtents);
  const auto rank = static_cast<std::size_t>(x.shape.rank());
  if (!is_number(x.dtype) || (!is_f32(x.dtype) && node.integer(kMode) != kNearest)) return kWrongType;
  if (extents.size() != rank || node.list(kScales).size() != rank) return kWrongArgument;
  if (node.integer(kCoordinates) == kCrop && node.list(kRoi).size() != 2 * rank) return kWrongArgument;
  for (std::size_t a = 0; a < rank; ++a)
    // A scale far from what the extents say would make windows of any size.
    if (const double scale = node.real(kScales, a), length = scale * static_cast<double>(x.shape[static_cast<int>(a)]);
        !(scale > 1e-6 && scale < 1e9) || !(length > 0.4) || extents[a] < 1 || extents[a] > (std::int64_t{1} << 40))
      return kWrongArgument;
  out.dtype = x.dtype;
  return make_shape(extents, out.shape) ? nullptr : kWrongShape;
}

PlainRefusal infer_at_run(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.has(0)) return kMissingInput;
  Resolved resolved;
  if (const PlainRefusal refusal = resolved.read(node)) return refusal;
  return infer_resize(resolved.node(node), out);
}

constexpr PlainOperator kResizeOperators[] = {
    {430, "ResizeOfExtents",
     "extents:I scales:F mode:i coordinates:i rounding:i cubic_a:f exclude_outside:i extrapolation:f antialias:i roi:F", infer_resize},
    {590, "ResizeAtRun",
     "axes:I policy:i scales:F@2 sizes:I@3 mode:i coordinates:i rounding:i cubic_a:f exclude_outside:i extrapolation:f antialias:i",
     infer_at_run, nullptr, 1, bound_stated},
};

}  // namespace

PlainNode resize::Resolved::node(const PlainNode& of) const noexcept {
  return PlainNode(kResizeOperators[0], {.present = 1, .arguments = std::span(words_).first(count_)}, of.inputs().first(1));
}

std::span<const PlainOperator> resize_operators() noexcept { return kResizeOperators; }

}  // namespace sluice::operators::generic
