// Constants whose floats stand for narrower values, which the model file then holds in their own bytes (emit.cc), scales and zeros beside
// them. Made where ONNX says that a weight is quantised: DequantizeLinear, MatMulNBits, GatherBlockQuantized, products of whole numbers.
//
// Invariants: a view of such a constant shows which element it begins at by its distance from `base`, so permuting, reshaping and slicing
// keep the bytes; a copy loses them and is a constant of floats.
#pragma once

#include <vector>

#include "sluice/kernels/packing.h"
#include "src/importer/constant.h"

namespace sluice::importer {

inline bool is_byte(DType dtype) noexcept { return dtype == DType::kI8 || dtype == DType::kU8; }

/// Element e of the dense constant that begins at `base` is (values[e] - zeros[s]) * scales[s], s = order.of(e).
struct QuantisedValues {
  const std::byte* base = nullptr;
  std::vector<std::int8_t> values;  // of 8 bits, from -128 on; of 4 and 2, from 0 on
  int bits = 8;
  std::vector<float> scales;
  std::vector<float> zeros;
  kernels::ScaleOrder order;
};

/// The values of i8 or u8 constant `q`, `zeros` (as ONNX has them, one for each scale) moved with them. `base` is still to be set.
QuantisedValues quantised_values(const Constant& q, std::vector<float> scales, std::vector<float> zeros, const kernels::ScaleOrder& order);

/// The floats that `q` stands for.
Constant dequantised(const Constant& q, std::vector<float> scales, std::vector<float> zeros, const kernels::ScaleOrder& order);

/// Values of `bits` bits that lie several to a byte, the first in the lowest bits, as i8 or u8: rows of `row` values, each of which begins
/// with a byte of its own. `packed` has the bytes that they need.
Constant unpacked(const Constant& packed, const Shape& shape, std::int64_t row, int bits, bool is_signed);

}  // namespace sluice::importer
