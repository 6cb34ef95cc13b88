// The models that a runtime is asked about: repeats of a pattern of operators, each repeat shut off by a separator that nothing fuses with.
//
//     (a b |)^k      x -> a -> b -> softmax -> a -> b -> softmax -> ... -> y      maps of 1 x 32 x 28 x 28
//
// Without the separator the repeats would touch, and what is seen might be b fused with the next a. An operator of two inputs takes the
// map on its way and the second input of the model.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::detect {

/// By the words of kOperators.
using Pattern = std::vector<std::string>;

inline constexpr std::array<std::string_view, 9> kOperators = {"conv", "dwconv", "bn",      "relu",   "sigmoid",
                                                               "add",  "mul",    "maxpool", "avgpool"};

/// The bytes of an ONNX file; its nodes are named by their words, the separator "separator". An empty pattern gives separators alone.
std::string chain_of(const Pattern& pattern, int repeats);

}  // namespace sluice::cli::detect
