// The bodies of If and Loop whose course is known at run only, as the plain operator Control has them (operators/generic/body.h): a plan of
// their own, with a place in the step's workspace for each tensor.
#pragma once

#include "src/importer/lowering.h"

namespace sluice::importer {

/// A body as Control's argument, and what the node hands it from outside, in order.
struct EncodedBody {
  std::vector<std::int64_t> words;
  std::vector<ValueId> given;
  std::vector<BodyWeight> weights;
};

/// The first `own` inputs of the body are written by the node (a loop's number, condition and carried values) and lie in the arena, the
/// others are given from outside. Constants of more than a few words become such inputs, and large ones weights: of each node one, its
/// largest, so that one at a time need be in memory. In a body within a body there are none. Refuses what is no plain node.
EncodedBody encode_body(NodeContext& c, ApartBody body, std::size_t own);

/// The type that a value has when the model runs.
inline DType run_type(const Value& value) { return is_float(value.dtype) ? DType::kF32 : value.dtype; }

/// Result i of a Control node.
ValueId add_result(NodeContext& c, ValueId packed, std::size_t i, DType dtype, const Shape& most, std::uint8_t bounded);

}  // namespace sluice::importer
