// The offsets of a graph's weights in its file, computed from their sizes alone. The writer assigns them, the validator demands them.
//
//     | prefix, header | pad | small weights, in order of first use | pad | other weights, in order of first use | pad |
//                            4096 k                                 4096 m                                       file size
#pragma once

#include <vector>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::model {

/// Far above any model's, far below the size at which sums overflow.
inline constexpr Bytes kMaxFileBytes{std::uint64_t{1} << 62};

/// Panels in one stretch of a weight with panels of this size.
constexpr std::int64_t panels_per_stretch(Bytes panel_bytes) noexcept {
  return panel_bytes >= kStretchBytes ? 1 : static_cast<std::int64_t>(kStretchBytes.count() / panel_bytes.count());
}

/// Weights in file order: those of the resident segment, then the others, each in the order of the nodes that first read them; weights
/// that no node reads come last. Needs only `bytes` of each.
std::vector<WeightId> weights_in_file_order(const Graph& graph);

/// Assigns offset, bytes, always_resident and stretches (hashes zero) of all weights behind a header that ends at `header_end`, and gives
/// the file's size. Errors: kInvalidArgument when the sizes overflow.
Result<Bytes> assign_layout(Graph& graph, Bytes header_end);

}  // namespace sluice::model
