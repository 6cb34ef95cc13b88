// Channels of one tensor get like ranges, so that one scale fits all of them.
//
//     A: w[i], b[i] / s[i]  --Relu-->  x[i] / s[i]  -->  B: w[., i] * s[i]
//
// It is the same function, because a Relu of twice as much is twice the Relu.
//
// Per-channel scales of weights take in whatever s[i] does to the rows of A, and, where B is depthwise, to those of B: there all channels
// become as large as the largest. Elsewhere B's rows would spread as the tensor narrows: s[i] is then the geometric mean of what both want.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "src/quantiser/units.h"

namespace sluice::quantiser {

/// Is there a layer with a group for each channel?
bool has_depthwise(const Editor& editor, const std::vector<Unit>& units);

/// `largest`: of each channel of a tensor that a layer reads, its largest magnitude. Gives how many tensors were equalised; units are to be
/// found again then.
std::size_t equalise(Editor& editor, const std::vector<Unit>& units, const std::map<std::string_view, std::vector<float>>& largest);

}  // namespace sluice::quantiser
