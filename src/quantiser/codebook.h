// The few whole numbers that a layer's weights become multiples of: those with the least squared error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::quantiser {

inline constexpr int kMostCode = 127;

/// How much each whole number from -127 to 127 counts; entry v + 127 is that of v.
using CodeWeights = std::array<double, 2 * kMostCode + 1>;

/// At most `count` codes, in rising order: among all sets of rounded means of runs, the one with the least error.
std::vector<int> fit_codes(const CodeWeights& weights, std::size_t count);

/// The nearest code of each whole number, by v + 127; the smaller of two that are as near.
std::array<std::int8_t, 2 * kMostCode + 1> nearest_codes(const std::vector<int>& codes);

}  // namespace sluice::quantiser
