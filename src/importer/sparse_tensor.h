// ONNX's sparse tensors: values that are not zero and where they lie, in the order of rising places.
#pragma once

#include <span>

#include "src/importer/constant.h"

namespace sluice::importer {

/// The most bytes of a dense tensor for each byte of the values in the file: a small file must not make us hold what it merely declares.
inline constexpr std::uint64_t kMostSparseGain = 3072;

/// A dense tensor's extents, from a SparseTensorProto's. Throws Refusal: malformed where values and indices do not describe one tensor.
Shape shape_of_sparse(const Constant& values, const Constant& indices, std::span<const std::int64_t> dims);

/// The same tensor with its zeros written out; one zero for all of it where there is no value. Precondition: `shape` is what
/// `shape_of_sparse` gives. Throws Refusal.
Constant dense_of(const Constant& values, const Constant& indices, const Shape& shape);

}  // namespace sluice::importer
