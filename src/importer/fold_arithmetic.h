// Element by element and reducing operators on small constants: the arithmetic of shapes, anchors and masks.
#pragma once

#include <optional>

#include "src/importer/lowering.h"

namespace sluice::importer {

/// How many elements `fold_arithmetic` would compute for this node, all of whose inputs are constant; nothing when it does not know the
/// operator.
std::optional<std::int64_t> arithmetic_elements(const NodeContext& c);
Constant fold_arithmetic(const NodeContext& c);

/// A dense constant of the given type from computed values; reals are rounded to it.
Constant from_reals(std::span<const double> values, const Shape& shape, DType dtype);
Constant cast(const Constant& constant, DType to);
/// The parts, of one type or all reals, side by side along `axis`; `shape` is the whole's.
Constant concatenated(std::span<const Constant> parts, int axis, const Shape& shape);

}  // namespace sluice::importer
