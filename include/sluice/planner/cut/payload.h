// What a load brings: stretches that lie one behind the other in the file, and what they are in memory.
//
//     in place     file    |..|== payload ==|..|   whole blocks             region as long as the blocks that are read
//     expanding    file    |..|~ payload ~|..|     at least one is stored
//                  memory  |=== raw ===|...~~~|    smaller than it is       region of the raw size, rounded up, and two blocks
//
// Invariant: the region holds the blocks that are read. Weights begin on 64 bytes and are that much long raw, so that none takes more bytes
// stored, with what lies before the next one, than raw; the two blocks are for the roundings at both ends.
#pragma once

#include <cstdint>

#include "sluice/core/units.h"
#include "sluice/model/graph.h"

namespace sluice::planner {

inline constexpr std::uint64_t kBlockBytes = 4096;  // direct-I/O block of Plan::block

struct Payload : model::FileRange {
  model::StretchForm form = model::StretchForm::kRaw;  // whatever any of the stretches has
  std::uint64_t raw = 0;                               // bytes of the stretches in memory
  std::uint64_t symbols = 0;                           // that decoding takes

  Payload() = default;
  Payload(const model::FileRange& range) noexcept : FileRange(range), raw(range.size.count()) {}  // NOLINT: stretches stored as they are

  bool expands() const noexcept { return shrinks(form); }
  std::uint64_t file_begin() const noexcept { return align_down(offset.count(), kBlockBytes); }
  std::uint64_t read_bytes() const noexcept { return align_up(end().count(), kBlockBytes) - file_begin(); }
  std::uint64_t region_bytes() const noexcept { return expands() ? align_up(raw, kBlockBytes) + 2 * kBlockBytes : read_bytes(); }
  /// The size for rules: bytes in memory, without rounding.
  std::uint64_t held_bytes() const noexcept { return expands() ? raw : size.count(); }

  /// May `next` be brought together with these? What expands has no room for the gap between segments.
  bool adjoins(const Payload& next) const noexcept {
    const std::uint64_t most = expands() || next.expands() ? model::kWeightAlignment : kBlockBytes;
    return next.offset >= end() && (next.offset - end()).count() < most;
  }
  /// Both together. Precondition: `adjoins`.
  Payload joined(const Payload& next) const noexcept {
    Payload both = *this;
    both.size = next.end() - offset;
    both.form = form | next.form;
    both.raw += next.raw;
    both.symbols += next.symbols;
    return both;
  }
};

/// Stretches [first, first + count) of a weight, counted from its own first. O(count) where the weight is coded.
inline Payload payload_of(const model::Graph& graph, const model::Weight& weight, std::size_t first, std::size_t count) {
  const auto stretches = graph.stretches_of(weight).subspan(first, count);
  const Bytes begin = stretches.front().offset, end = stretches.back().offset + stretches.back().stored_size;
  Payload payload(model::FileRange{begin, end - begin});
  payload.form = stretches.front().form;
  if (weight.code == model::kNoCode) return payload;
  const std::size_t value_bytes = model::value_bytes_of(graph.codes[weight.code].plane);
  payload.raw = 0;
  for (const model::Stretch& stretch : stretches) {
    payload.form = payload.form | stretch.form;
    payload.raw += stretch.raw_size.count();
    if (has_form(stretch.form, model::StretchForm::kCoded)) payload.symbols += stretch.raw_size.count() / value_bytes;
  }
  return payload;
}

/// All of a weight.
inline Payload payload_of(const model::Graph& graph, const model::Weight& weight) {
  return payload_of(graph, weight, 0, weight.stretch_count);
}

}  // namespace sluice::planner
