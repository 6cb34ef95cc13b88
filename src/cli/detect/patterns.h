// The models that a runtime is asked about: repeats of a pattern of operators, each repeat shut off by separators that nothing fuses with.
//
//     chain   (a b |)^k    x -> a -> b -> | -> a -> b -> | -> ... -> y
//     fork    (a b)        a's result goes to b, and past it too:            x -> a -+-> b -> | -+-> + -> |
//                                                                                    +-----> -- -+
//     join    (a c b)      b takes the results of a and of c:                x -+-> a -------> b -> |
//                                                                               +-> -- -> c ---^
//
// | is a softmax over channels and -- the logarithm of one, so that no runtime finds twice the same. Without separators the repeats would touch, and what is seen might be b fused with the next a. A convolution of
// 1x1 and a separator come first, so that a runtime that keeps images in another order of axes does so in all models. Maps are of 1 x 16 x 40 x
// 40: with more channels a convolution would take many times as long as what is fused with it. An operator of two inputs takes the map on its
// way and the second input of the model, b of a join excepted.
//
// A fork of no operators and a join of b alone are what their separators cost.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::detect {

enum class Form : std::uint8_t { kChain, kFork, kJoin };

struct Pattern {
  Form form = Form::kChain;
  std::vector<std::string> words;  // of kOperators
  auto operator<=>(const Pattern&) const = default;
};

/// Those that are asked about unless others are named. "hswish" and "sigmoid" can be named, too: they take as long inside another operator's loop
/// as in a loop of their own, so that times do not tell.
inline constexpr std::array<std::string_view, 9> kUsualOperators = {"conv", "dwconv", "bn",      "relu",   "clip",
                                                                    "add",  "mul",    "maxpool", "avgpool"};
inline constexpr std::array<std::string_view, 11> kOperators = {"conv", "dwconv",  "bn",      "relu",   "clip",   "add",
                                                                "mul",  "maxpool", "avgpool", "hswish", "sigmoid"};

/// "chain", "fork" or "join".
const char* name_of(Form form);
/// Operators that take two maps: those that a join can end with.
bool joins(std::string_view word);

/// The bytes of an ONNX file; its nodes are named by their words and a number ("conv.3"), separators "separator", the sum of a fork "merge".
std::string model_of(const Pattern& pattern, int repeats);

}  // namespace sluice::cli::detect
