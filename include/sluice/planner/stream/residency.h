// Pass: which pieces stay in memory between runs, when there is memory to spare but not for all of them.
//
//     order    | 7 | 3 | 9 | 0 | 5 | ...          one order of pieces for a model and a profile; a budget keeps a prefix,
//     32 MiB   |===|===|                          each piece at the address that its place in the order gives it:
//     48 MiB   |===|===|===|===|                  a change of budget moves the end of the prefix and nothing else
//
// Each kept byte saves its reading in every period. It matters less which bytes they are than when they are needed: kept pieces that are
// spread over the run (even) let the reader get ahead everywhere; where reading takes long compared with computing (dense) the reader falls
// behind first. Several orders are tried at a few sizes with the fluid bound, beside no more room than streaming needs, and the best one is
// the model's own. A budget leaves it for another order only where its own is 2 % or more from what the bytes allow
// (planner/choose/draft_search.h). What several nodes read comes first in each: kept, it saves as many readings. Invariant: an order holds
// each piece once.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/cut/weight_pieces.h"

namespace sluice::planner {

enum class ResidencyOrder : std::uint8_t { kEven, kDense, kLarge, kFront, kBack };
inline constexpr ResidencyOrder kResidencyOrders[] = {ResidencyOrder::kEven, ResidencyOrder::kDense, ResidencyOrder::kLarge,
                                                      ResidencyOrder::kFront, ResidencyOrder::kBack};

namespace detail {

/// Van der Corput's sequence: each prefix of the order that it gives is spread evenly.
inline std::uint32_t mirrored_bits(std::uint32_t n) noexcept {
  std::uint32_t mirrored = 0;
  for (int bit = 0; bit < 32; ++bit) mirrored |= (n >> bit & 1u) << (31 - bit);
  return mirrored;
}

}  // namespace detail

/// `compute`: seconds of each position.
inline std::vector<std::uint32_t> order_pieces(const Pieces& pieces, const std::vector<double>& compute, ResidencyOrder rule) {
  std::vector<double> key(pieces.all.size(), 0.0);  // least first
  double passed = 0;
  double total = 0;
  for (const Piece& piece : pieces.all) total += static_cast<double>(piece.region_bytes());
  for (std::size_t p = 0; p < key.size(); ++p) {
    const auto bytes = static_cast<double>(pieces.all[p].region_bytes());
    switch (rule) {
      case ResidencyOrder::kEven:
        key[p] = detail::mirrored_bits(static_cast<std::uint32_t>((passed + bytes / 2) / total * 65536.0));
        break;
      case ResidencyOrder::kDense:
        key[p] = compute[pieces.all[p].position] / bytes;
        break;
      case ResidencyOrder::kLarge:
        key[p] = -bytes;
        break;
      case ResidencyOrder::kFront:
        key[p] = static_cast<double>(p);
        break;
      case ResidencyOrder::kBack:
        key[p] = -static_cast<double>(p);
    }
    passed += bytes;
  }
  std::vector<std::uint32_t> order(key.size());
  std::iota(order.begin(), order.end(), 0u);
  sluice::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t more = pieces.all[a].reads, less = pieces.all[b].reads;
    return more != less ? more > less : key[a] < key[b];
  });
  return order;
}

/// By piece: the longest prefix of the order that fits `bytes`. `skipped`: pieces that need not be kept (they are transformed), or empty.
inline std::vector<bool> keep_prefix(const Pieces& pieces, const std::vector<std::uint32_t>& order, std::uint64_t bytes,
                                     const std::vector<bool>& skipped = {}) {
  std::vector<bool> kept(pieces.all.size(), false);
  for (std::uint32_t p : order) {
    if (!skipped.empty() && skipped[p]) continue;
    const std::uint64_t region = pieces.all[p].region_bytes();
    if (region > bytes) break;
    bytes -= region;
    kept[p] = true;
  }
  return kept;
}

}  // namespace sluice::planner
