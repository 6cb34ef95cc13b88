// Parts of graphs with quantised tensors: constants with bytes of their own, QuantizeLinear and DequantizeLinear nodes, and the positions
// of one output's values in a weight.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "src/quantiser/units.h"

namespace sluice::quantiser {

/// A dense tensor of its own bytes.
template <class T>
Constant constant_of(DType dtype, const Shape& shape, const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  return importer::make_view(dtype, shape, bytes->data(), bytes);
}

/// A QuantizeLinear or DequantizeLinear node; its output has a new name like `base`. `axis` below 0: one scale for all.
OnnxNode linear_node(Editor& editor, const std::string& base, std::string_view op, std::vector<std::string_view> inputs, std::int64_t axis);

/// The positions of an output channel's values in a dense weight: output n's value k is element n * row_step + k * step.
struct WeightRows {
  std::int64_t count, length, row_step, step, taps;

  WeightRows(const Unit& unit, const Shape& shape) {
    count = shape[unit.output_axis];
    length = shape.element_count() / count;
    row_step = unit.output_axis == 0 ? length : 1;
    step = unit.output_axis == 0 ? 1 : count;
    taps = shape.count(2, std::max(2, shape.rank()));
  }
};

}  // namespace sluice::quantiser
