// The inner loop of decoding: rounds of 32 values of one block, a lane each. Once for each instruction set, with the same results.
//
//     states --slot--> table entry --> next states --(those below 65536)--> take words
//                          |
//                          +--> symbol + other bytes of the value --> out
//
// Block heads, what is left over after whole rounds, and whether a block is sound are the caller's (stretch_decoder.cc).
//
// Invariants: (B1) 64 bytes behind `words_end`, and behind what the rounds take from `other`, may be read. (B2) `out` has room for all
// rounds and is written nowhere else. (B3) Any words, states and table entries are safe: slots are 12 bits, and no more words are taken
// than there are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::executor::coding {

/// An entry of the decoding table: frequency in the upper 12 bits, then slot - begin in 12, then the symbol.
inline constexpr std::uint32_t kFrequencyShift = 20;
inline constexpr std::uint32_t kOffsetShift = 8;
constexpr std::uint32_t make_entry(std::uint32_t frequency, std::uint32_t offset, std::uint32_t symbol) noexcept {
  return frequency << kFrequencyShift | offset << kOffsetShift | symbol;
}

struct Rounds {
  const std::uint32_t* table;  // [4096]
  std::uint32_t* states;       // [32]
  const std::uint8_t* words;   // not aligned
  const std::uint8_t* words_end;
  const std::uint8_t* other;  // the bytes that are not coded
  std::uint8_t* out;
  std::size_t count;  // of rounds
};

/// Decodes all rounds, and leaves the states. Returns where the words that were not taken begin; null where they did not suffice.
using RunRounds = const std::uint8_t* (*)(const Rounds& rounds) noexcept;

/// By plane.
struct RoundsTable {
  RunRounds bytes, rotated16, rotated32;
};

extern const RoundsTable kScalarRounds;
#if defined(__x86_64__)
extern const RoundsTable kAvx2Rounds;
extern const RoundsTable kAvx512Rounds;
#endif
#if defined(__aarch64__)
extern const RoundsTable kNeonRounds;
#endif

}  // namespace sluice::executor::coding
