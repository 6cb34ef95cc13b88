// What a model file may need of the build that runs it, beyond what every build of this format version can: a bit each.
//
// The prefix of a file carries the bits that its graphs need, so that a reader refuses a file that it cannot run by the name of what is
// missing, also when it cannot make sense of the header. A bit that it has no name for refuses the file as of a later version; a feature
// that it has a name for but no code, like most of those below today, is decoded, validated in form and then refused with the tensor, node
// or weight that needs it. Code for a feature adds its bit to `kSupportedFeatures`.
//
// Invariants: the bits are stored in files, append only; a file's bits cover those of each of its graphs (the reader checks it).
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "sluice/core/error.h"

namespace sluice::model {

struct Graph;

enum class Feature : std::uint8_t {
  kInt8 = 0,               // the numeric class, and tensors that stand for reals by a scale and a zero point
  kBrainTensors = 1,       // bf16 tensors and constants
  kSubgraphs = 2,          // nodes that run graphs
  kHalfPanels = 3,         // f16 and bf16 panels
  kHalfScales = 4,         // blocks of a panel with f16 scales
  kInterleavedPanels = 5,  // i8 panels for sums of four products
  kSparsePanels = 6,
  kInputPanels = 7,     // panels of input features
  kCodedStretches = 8,  // entropy-coded
  kEncryption = 9,
  kStretchesWithoutZeros = 10,
  kWithoutWeights = 11,  // the file ends after its header: it can be planned and priced, not run. Of the file: the prefix alone says it
};
inline constexpr int kFeatureCount = 12;
std::string_view name_of(Feature feature) noexcept;

/// A set of features, as the prefix holds it.
using Features = std::uint64_t;
constexpr Features bit_of(Feature feature) noexcept { return Features{1} << static_cast<int>(feature); }
inline constexpr Features kKnownFeatures = (Features{1} << kFeatureCount) - 1;
inline constexpr Features kSupportedFeatures = bit_of(Feature::kInt8) | bit_of(Feature::kSubgraphs) | bit_of(Feature::kHalfPanels) |
                                               bit_of(Feature::kHalfScales) | bit_of(Feature::kInterleavedPanels) |
                                               bit_of(Feature::kSparsePanels) | bit_of(Feature::kCodedStretches) |
                                               bit_of(Feature::kEncryption) | bit_of(Feature::kWithoutWeights);

/// What this graph needs. O(size of the graph).
Features features_of(const Graph& graph) noexcept;

/// Errors: kUnsupported with the first tensor, node, weight or stretch that needs what this build has not.
Status check_supported(const Graph& graph);

}  // namespace sluice::model
