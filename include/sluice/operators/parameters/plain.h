// Parameters of plain operators: the operator of kernels/plain.h, its arguments, and the result that the plan expects.
#pragma once

#include <cstdint>
#include <span>

#include "sluice/core/dtype.h"
#include "sluice/core/shape.h"
#include "sluice/operators/parameters/parameters.h"

namespace sluice::operators {

/// Points at the attributes of a plain operator's node.
struct PlainForm {
  std::uint8_t result = 0;                  // which of the ONNX node's outputs this node makes
  std::uint32_t present = 0;                // bit i: ONNX input i is there
  std::span<const std::int64_t> arguments;  // for each argument its length, then its values (reals as the bits of a double)
};

struct PlainParameters {
  PlainForm form;
  std::uint16_t op = 0;       // its number
  DType dtype = DType::kF32;  // of the result
  std::uint8_t bounded = 0;   // bit a: axis a may be shorter in a run than `shape`
  Shape shape;
  std::uint64_t scratch = 0;  // bytes of workspace
};

static_assert(kIsParameters<PlainParameters>);

}  // namespace sluice::operators
