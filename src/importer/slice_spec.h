// Which part of a tensor Slice, Split and Gather take: shared by folding (views of constants) and lowering (kSlice nodes).
#pragma once

#include "src/importer/lowering.h"

namespace sluice::importer {

/// out[i] = in[start + i * step] for i < extent, on each axis. Every index is inside the input.
struct SliceSpec {
  std::array<std::int64_t, Shape::kMaxRank> start{}, step{1, 1, 1, 1, 1, 1, 1, 1}, extent{};
  static SliceSpec whole(const Shape& shape) noexcept {
    SliceSpec spec;
    for (int axis = 0; axis < shape.rank(); ++axis) spec.extent[static_cast<std::size_t>(axis)] = shape[axis];
    return spec;
  }
};

/// Reads a Slice node's starts, ends, axes and steps (attributes before opset 10, inputs since).
SliceSpec read_slice(const NodeContext& c, const Shape& shape);

/// Extents of a Split node's parts along an axis of `extent`.
std::vector<std::int64_t> split_extents(const NodeContext& c, std::int64_t extent);

/// The part of a constant, as a view.
Constant sliced(const Constant& constant, const SliceSpec& spec);

}  // namespace sluice::importer
