// The models that a runtime is asked about: repeats of a pattern of operators, between separators that nothing fuses with.
//
// A pattern is written in two ways, with the same operators and separators: its operators side by side (cut 0), or with a separator moved
// from the end of the repeat to a place between two operators that might run as one. What else a model costs is the same in both.
//
//             together                                   cut 1                                   cut 2
//     chain   x -> a -> b -> c -> | -> |                 x -> a -> | -> b -> c -> |              x -> a -> b -> | -> c -> |
//     fork    x -> a -+-> b -> | -> | -+-> + -> |        x -> a -+-> | -> b -> | -+-> + -> |
//                     +-> | -----------+                         +-> | -----------+
//     join    z -> | -> a -+-> b -> | -> | -> |          z -> | -> a -> | -+-> b -> |
//                  x -> c -+                                  x -> c -> | -+
//
// | is a normalisation, over which a runtime may keep its layout: of an image (each value needs its whole plane), or over channels (each
// value needs its whole pixel, between transposes, which a runtime that keeps channels innermost drops). After it values are near one
// again, however many repeats there are. The two inputs of a model go through a 1x1 convolution and a separator first, so that both come in
// the runtime's layout; an operator of two inputs takes the map on its way and the second of them, the last one of a join excepted. Maps
// are larger than a first cache, as otherwise a second pass over them costs next to nothing, and of few channels, as otherwise a
// convolution takes many times as long as what is fused with it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::detect {

enum class Form : std::uint8_t { kChain, kFork, kJoin };
enum class Separator : std::uint8_t { kImage, kChannels };

struct Pattern {
  Form form = Form::kChain;
  std::vector<std::string> words;  // of kOperators
  auto operator<=>(const Pattern&) const = default;
};

/// A pattern with each operator once and one separator behind it, for rules that compare sums.
inline constexpr int kBare = -1;

struct Arrangement {
  Separator separator = Separator::kImage;
  Pattern pattern;
  int cut = 0;
  int repeats = 1;
  auto operator<=>(const Arrangement&) const = default;
};

/// Those that are asked about unless others are named. "hswish" and "sigmoid" can be named, too: they take as long inside another operator's loop
/// as in a loop of their own, so that times do not tell.
inline constexpr std::array<std::string_view, 9> kUsualOperators = {"conv", "dwconv", "bn",      "relu",   "clip",
                                                                    "add",  "mul",    "maxpool", "avgpool"};
inline constexpr std::array<std::string_view, 11> kOperators = {"conv", "dwconv",  "bn",      "relu",   "clip",   "add",
                                                                "mul",  "maxpool", "avgpool", "hswish", "sigmoid"};

/// "chain", "fork" or "join"; "image" or "channels".
const char* name_of(Form form);
const char* name_of(Separator separator);
/// Operators that take two maps: those that a join can end with.
bool joins(std::string_view word);
/// In how many places a pattern can be cut.
int cuts_of(const Pattern& pattern);

/// "SEPARATOR-FORM-WORD-...-REPEATS-together.onnx"; "cut1", "cut2" or "bare" in place of the last.
std::string file_name_of(const Arrangement& arrangement);
/// The bytes of an ONNX file; its nodes are named by their words and a number ("conv.3"), separators "separator", the sum of a fork "merge".
std::string model_of(const Arrangement& arrangement);

}  // namespace sluice::cli::detect
