// The graph with its units in integers, as QDQ: each tensor of bytes behind a QuantizeLinear and a DequantizeLinear, weights as i8 and
// biases as i32 behind a DequantizeLinear, one scale for each output channel.
//
//     x --QuantizeLinear--> u8 --DequantizeLinear--> Conv(., i8 --DequantizeLinear-->, i32 --DequantizeLinear-->) --Relu--> y
//
// Weights are symmetric in [-127, 127], so that two products of bytes fit 16 bits with either sign (docs/quantisation.md).
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "src/quantiser/ranges.h"
#include "src/quantiser/units.h"

namespace sluice::quantiser {

/// For each activation: its range, and the mean of each channel if a layer with weights reads it.
struct Activation {
  Range range;
  std::vector<double> means;
};
using Activations = std::map<std::string_view, Activation>;

struct IntegerGraph {
  Editor editor;
  std::map<std::string_view, std::string_view> dequantised;  // a tensor of bytes: the value that its readers see
};

/// Tensors that nothing computes between get one range: `units` of movement do not round again.
void tie_ranges(const Editor& editor, const std::vector<Unit>& units, Activations& activations);

/// `units` are of `editor`'s graph. With `correct_bias`, what rounding its weights adds to a layer's outputs on average is taken from its
/// bias.
IntegerGraph insert_integers(const Editor& editor, const std::vector<Unit>& units, const Activations& activations, bool correct_bias);

}  // namespace sluice::quantiser
