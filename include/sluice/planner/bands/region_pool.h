// Regions that a search has measured, and the cheapest way to put them together so that no place needs more than so much.
//
//     place      0   1   2   3   4   5   6          a place is a node as it is, or lies in one region: the cheapest such row of both
//     as it is   +   +   -   -   +   -   +          is a shortest path, over the places that need no more than the limit
//     regions      [=======)[=======)
//                      [===========)
//
// What a region needs and takes hardly depends on what else is cut; whoever puts regions together measures the whole and corrects what is
// said here. A region that was measured at one place is there wherever the same nodes follow each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/core/sort.h"
#include "sluice/planner/bands/region.h"

namespace sluice::planner {

class RegionPool {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// Alike wherever it stands.
  struct Kind {
    Region region;         // where it was measured
    double extra = 0;      // seconds beyond those of whole nodes
    bool settled = false;  // needs of its pieces count what placing its rows saves
    std::uint64_t saved = 0;
  };
  struct Piece {
    std::size_t kind;
    std::size_t first;
    std::uint64_t need;
  };
  /// A row of pieces, or where it ends.
  struct Way {
    std::vector<std::pair<std::size_t, std::size_t>> pieces;  // place, index there
    double extra = 0;
    std::size_t stuck = kNone;  // the place that no piece leads over
  };

  /// By place: what it needs without regions.
  explicit RegionPool(std::vector<std::uint64_t> whole) : whole_(std::move(whole)), pieces_(whole_.size()) {}

  bool has(const Region& region) const {
    return region.first < pieces_.size() && std::any_of(pieces_[region.first].begin(), pieces_[region.first].end(),
                                                        [&](const Piece& p) { return same(kinds_[p.kind].region, region); });
  }
  std::size_t add_kind(Kind kind) {
    kinds_.push_back(std::move(kind));
    return kinds_.size() - 1;
  }
  void add_piece(const Piece& piece) {
    pieces_[piece.first].push_back(piece);
    ++count_;
  }
  /// Places and pieces that were looked at since this was asked last.
  std::uint64_t looked_at() noexcept { return std::exchange(looked_, 0); }

  Kind& kind(std::size_t k) noexcept { return kinds_[k]; }
  const std::vector<Piece>& pieces_at(std::size_t first) const noexcept { return pieces_[first]; }
  Piece& piece(std::pair<std::size_t, std::size_t> at) noexcept { return pieces_[at.first][at.second]; }
  std::size_t length(const Piece& piece) const noexcept { return kinds_[piece.kind].region.end - kinds_[piece.kind].region.first; }
  Region region(const Piece& piece) const noexcept {
    Region region = kinds_[piece.kind].region;
    region.end = piece.first + length(piece);
    region.first = piece.first;
    return region;
  }
  std::vector<Region> regions(const Way& way) const {
    std::vector<Region> regions;
    for (const auto& [place, index] : way.pieces) regions.push_back(region(pieces_[place][index]));
    return regions;
  }

  /// What a place was seen to need, more than was known.
  void correct_whole(std::size_t place, std::uint64_t need) noexcept { whole_[place] = std::max(whole_[place], need); }
  std::uint64_t whole(std::size_t place) const noexcept { return whole_[place]; }

  /// The settled kind needs that much less.
  void settle(std::size_t k, std::uint64_t saved) {
    kinds_[k].settled = true;
    kinds_[k].saved = saved;
    looked_ += count_;
    for (std::vector<Piece>& there : pieces_)
      for (Piece& piece : there)
        if (piece.kind == k) piece.need -= std::min(piece.need, saved);
  }

  /// The cheapest way on which nothing needs more than `most`.
  Way cheapest(std::uint64_t most) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    struct Stop {
      double extra = kNever;
      std::size_t from = kNone, index = kNone;
    };
    looked_ += whole_.size() + count_;
    std::vector<Stop> stops(whole_.size() + 1);
    stops[0].extra = 0;
    std::size_t farthest = 0;
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      if (stops[i].extra == kNever) continue;
      farthest = i;
      const auto reach = [&](std::size_t end, double extra, std::size_t index) {
        if (stops[i].extra + extra < stops[end].extra) stops[end] = {stops[i].extra + extra, i, index};
      };
      if (whole_[i] <= most) reach(i + 1, 0, kNone);
      for (std::size_t k = 0; k < pieces_[i].size(); ++k)
        if (const Piece& piece = pieces_[i][k]; piece.need <= most) reach(i + length(piece), kinds_[piece.kind].extra, k);
    }
    Way way;
    way.extra = stops.back().extra;
    if (way.extra == kNever) {
      way.stuck = farthest;
      return way;
    }
    for (std::size_t at = whole_.size(); at > 0; at = stops[at].from)
      if (stops[at].index != kNone) way.pieces.push_back({stops[at].from, stops[at].index});
    std::reverse(way.pieces.begin(), way.pieces.end());
    return way;
  }

  /// The least below `below` that a way of at most so many extra seconds needs; nothing: there is no such way.
  std::optional<std::uint64_t> least(double extra, std::uint64_t below) const {
    const auto too_low = [&](std::uint64_t most) { return !(cheapest(most).extra <= extra); };
    if (below == 0 || too_low(below - 1)) return std::nullopt;
    std::vector<std::uint64_t> needs;
    for (const std::vector<Piece>& there : pieces_)
      for (const Piece& piece : there)
        if (piece.need < below) needs.push_back(piece.need);
    for (const std::uint64_t need : whole_)
      if (need < below) needs.push_back(need);
    sluice::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    const auto found = std::partition_point(needs.begin(), needs.end(), too_low);
    return found == needs.end() ? std::nullopt : std::optional(*found);
  }

 private:
  static bool same(Region a, const Region& b) noexcept {  // wherever they stand
    a.end = b.first + (a.end - a.first);
    a.first = b.first;
    return a == b;
  }

  std::vector<std::uint64_t> whole_;
  std::vector<std::vector<Piece>> pieces_;  // by place
  std::vector<Kind> kinds_;
  std::size_t count_ = 0;  // of pieces
  mutable std::uint64_t looked_ = 0;
};

}  // namespace sluice::planner
