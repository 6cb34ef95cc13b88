// The walk of a region, as the emitted code does it (portable/rows.h): how much of each tensor is alive at once follows from it.
//
//     made      |=========================>|                 of a storage: what its maker has written
//     keep                 |<- alive ->|                     the first element that a reader still wants; a ring holds what is between
//
// Invariant: steps here and there are the same, so that a ring of the size found here never loses what is still read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sluice/core/interval.h"
#include "sluice/emit/network.h"
#include "sluice/emit/strips.h"

namespace sluice::emit {

inline std::int64_t granule_of(const Stage& stage, const Region& region) noexcept {
  const std::int64_t row = stage.walked.pixels;
  return stage.whole_rows || region.granule == 0 ? row : std::min(row, region.granule);
}

class Walk {
 public:
  Walk(const Network& network, const Region& region)
      : network_(network),
        region_(region),
        strips_(network, region),
        places_(region.last - region.first),
        columns_(region.last - region.first),
        row_pixels_(region.last - region.first, 0),
        alive_(network.storages.size(), 0),
        kept_(region.last - region.first, false) {
    for (std::size_t i = region.first; i < region.last; ++i) {
      kept_[i - region.first] = outlives(network, region, network.stages[i].storage);
      if (region.strips > 1) row_pixels_[i - region.first] = strips_.row_pixels(i);
    }
  }

  /// By how many bytes a storage `above` that ends here must be above one `below` that is made here, so that no byte is written while it is
  /// still read. Ask before `run`.
  struct Overlap {
    std::size_t above = 0, below = 0;
    std::int64_t distance = 0;
  };
  void watch(std::size_t above, std::size_t below) { overlaps_.push_back({above, below, 0}); }
  const std::vector<Overlap>& overlaps() const { return overlaps_; }

  void run() {
    for (std::int64_t strip = 0; strip < region_.strips; ++strip) {
      for (std::size_t i = region_.first; i < region_.last; ++i) {
        columns_[i - region_.first] = strips_.columns(strip, i);
        place(i) = {0, columns(i).begin};
      }
      for (std::size_t target = region_.last; target-- > region_.first;)
        if (target + 1 == region_.last || kept_[target - region_.first]) finish(target);
    }
  }

  /// The most elements of a storage that were alive at once.
  std::int64_t alive(std::size_t storage) const { return alive_[storage]; }

 private:
  struct Place {
    std::int64_t row = 0, pixel = 0;
  };
  static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::max();

  Place& place(std::size_t stage) { return places_[stage - region_.first]; }
  const Place& place(std::size_t stage) const { return places_[stage - region_.first]; }
  const Interval<std::int64_t>& columns(std::size_t stage) const { return columns_[stage - region_.first]; }
  bool inside(std::size_t stage) const { return region_.contains(stage); }
  bool done(std::size_t stage) const { return place(stage).row == network_.stages[stage].walked.rows; }

  void finish(std::size_t target) {
    std::size_t i = target;
    while (!done(target)) {
      const Stage& stage = network_.stages[i];
      const std::int64_t count = std::min(columns(i).end - place(i).pixel, granule_of(stage, region_));
      const std::size_t maker = lacks(i, count);
      if (maker != i) {
        i = maker;
        continue;
      }
      make(i, count);
      while (i < target)
        if (++i == target || !done(i)) break;
    }
  }

  /// The stage that must run before `i` can make `count` pixels; `i` itself if none must.
  std::size_t lacks(std::size_t i, std::int64_t count) const {
    const Place& at = place(i);
    for (const StageInput& input : network_.stages[i].inputs) {
      const auto maker = network_.storages[input.storage].maker;
      if (!maker || !inside(*maker) || done(*maker)) continue;
      const Stage& made = network_.stages[*maker];
      if (made.folds) return *maker;
      std::int64_t row = at.row, pixel = at.pixel + count - 1;
      if (input.reach) row = input.reach->row.last(row), pixel = input.reach->pixel.last(pixel);
      const std::int64_t wanted = (row * row_pixels(input) + pixel + 1) * input.view.channels;
      if (wanted > made_by(*maker)) return *maker;
    }
    return i;
  }

  /// From one row to the next, as a reader and as the maker sees it: in strips both see rows of the same length.
  std::int64_t row_pixels(const StageInput& input) const {
    const auto maker = network_.storages[input.storage].maker;
    const std::int64_t in_strips = maker && inside(*maker) ? row_pixels_[*maker - region_.first] : 0;
    return in_strips != 0 ? in_strips : input.view.pixels;
  }
  std::int64_t row_pixels(std::size_t maker) const {
    const std::int64_t in_strips = row_pixels_[maker - region_.first];
    return in_strips != 0 ? in_strips : network_.stages[maker].out.pixels;
  }

  /// The element up to which a stage at this position has made everything of this strip.
  std::int64_t made_before(std::size_t maker, const Place& at) const {
    return (at.row * row_pixels(maker) + at.pixel) * network_.stages[maker].out.channels;
  }
  std::int64_t made_by(std::size_t maker) const { return made_before(maker, place(maker)); }

  /// The first element that this pixel of stage `i` or a later one of the strip reads through `input`.
  std::int64_t first_read(std::size_t i, const StageInput& input, const Place& at) const {
    const Stage& stage = network_.stages[i];
    if (at.row >= stage.walked.rows) return kNobody;
    const std::int64_t row_pixels_read = row_pixels(input);
    if (!input.reach) return (at.row * row_pixels_read + at.pixel) * input.view.channels;
    const auto pixel_of = [&](std::int64_t row, std::int64_t pixel) {
      return input.reach->row.first(row) * row_pixels_read + input.reach->pixel.first(pixel);
    };
    std::int64_t first = pixel_of(at.row, at.pixel);
    if (at.row + 1 < stage.walked.rows) first = std::min(first, pixel_of(at.row + 1, columns(i).begin));
    return first * input.view.channels;
  }

  /// The first element of a storage that is still read. While `writer` writes the pixels before `after`, what it reads in place counts as
  /// read up to there.
  std::int64_t keep_of(std::size_t storage, std::size_t writer, const Place& after) const {
    std::int64_t keep = kNobody;
    for (const std::size_t reader : network_.storages[storage].readers) {
      if (!inside(reader)) return 0;
      for (const StageInput& input : network_.stages[reader].inputs)
        if (input.storage == storage)
          keep = std::min(keep, first_read(reader, input, reader == writer && input.in_place ? after : place(reader)));
    }
    return keep;
  }

  void make(std::size_t i, std::int64_t count) {
    const Stage& stage = network_.stages[i];
    Place after = place(i);
    if ((after.pixel += count) == columns(i).end) after = {after.row + 1, columns(i).begin};
    const bool writes = !stage.folds || after.row == stage.walked.rows;
    if (writes) {
      const std::int64_t end =
          stage.folds ? stage.out.rows * stage.out.pixels * stage.out.channels : made_before(i, {place(i).row, place(i).pixel + count});
      // Rows that no stage reads are written all the same.
      const std::int64_t keep = std::min(keep_of(stage.storage, i, after), end - stage.out.channels);
      alive_[stage.storage] = std::max(alive_[stage.storage], end - keep);
      for (Overlap& o : overlaps_)
        if (o.below == stage.storage) push_apart(o, i, after, end);
    }
    place(i) = after;
  }

  void push_apart(Overlap& o, std::size_t writer, const Place& after, std::int64_t end) const {
    const std::int64_t keep = keep_of(o.above, writer, after);
    if (keep == kNobody) return;
    const auto size = [&](std::size_t storage) { return static_cast<std::int64_t>(size_of(network_.storages[storage].dtype)); };
    o.distance = std::max(o.distance, end * size(o.below) - keep * size(o.above));
  }

  const Network& network_;
  Region region_;
  Strips strips_;
  std::vector<Place> places_;
  std::vector<Interval<std::int64_t>> columns_;  // of the strip
  std::vector<std::int64_t> row_pixels_;         // of the region's own stages, in strips; 0: as many as the tensor has
  std::vector<std::int64_t> alive_;
  std::vector<bool> kept_;
  std::vector<Overlap> overlaps_;
};

}  // namespace sluice::emit
