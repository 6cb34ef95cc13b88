// One value, as plain code: what the vector loops do for many at once. It also handles what is left over after whole rounds.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "sluice/model/code.h"
#include "src/executor/coding/rounds.h"

namespace sluice::executor::coding {

/// Takes a lane one step on, and perhaps a word; returns the symbol.
inline std::uint8_t take_step(const std::uint32_t* table, std::uint32_t& state, const std::uint8_t*& words) noexcept {
  const std::uint32_t entry = table[state % model::kCodeSlots];
  const std::uint32_t next = (entry >> kFrequencyShift) * (state >> model::kCodeBits) + (entry >> kOffsetShift & (model::kCodeSlots - 1));
  std::uint16_t word;
  std::memcpy(&word, words, sizeof word);
  const std::uint32_t takes = next < model::kCodeLeastState ? 1 : 0;  // as likely as not, so nothing branches on it
  words += sizeof word * takes;
  state = next << 16 * takes | (word & (0 - takes));
  return static_cast<std::uint8_t>(entry);
}

/// Puts a value together again.
template <model::CodePlane kPlane>
inline void put_value(std::uint8_t symbol, const std::uint8_t* other, std::uint8_t* out) noexcept {
  if constexpr (kPlane == model::CodePlane::kBytes) {
    *out = symbol;
  } else if constexpr (kPlane == model::CodePlane::kRotated16) {
    const auto value = std::rotr(static_cast<std::uint16_t>(symbol << 8 | *other), 1);
    std::memcpy(out, &value, sizeof value);
  } else {
    const std::uint32_t low = other[0] | std::uint32_t{other[1]} << 8 | std::uint32_t{other[2]} << 16;
    const std::uint32_t value = std::rotr(std::uint32_t{symbol} << 24 | low, 1);
    std::memcpy(out, &value, sizeof value);
  }
}

}  // namespace sluice::executor::coding
