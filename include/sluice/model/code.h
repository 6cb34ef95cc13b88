// Entropy coding of weights by byte plane: what a coded stretch looks like, and the table that its weight has in the header.
//
// Trained values differ little in their exponents and are noise below, so one byte of each value is coded, by a table of its weight, and
// the others stay as they are. Values of 16 and 32 bits are rotated left by one first: that puts the exponent into the upper byte and the
// sign among the noise.
//
//     bf16        s eeeeeeee mmmmmmm   ->   eeeeeeee | mmmmmmm s      the upper byte is coded, the lower one is not
//
// A coded stretch is its blocks, back to back: 64 KiB raw each, the last one what is left.
//
//     block       size, u32 | states [32] u32 | words, u16 ...        | other bytes of value 0 | of value 1 | ...        little-endian
//                 size, u32 | the raw bytes                            a block whose size is its raw size
//
// `size` counts what follows it in the block. Coding is rANS: value i belongs to lane i mod 32, whose state x it takes one step on:
//
//     slot = x mod 4096;  symbol = the one that has this slot, as its slots are [begin, begin + frequency);
//     x = frequency * (x / 4096) + slot - begin;  if x < 65536: x = 65536 * x + the next word
//
// so that 32 lanes take words in their order, and no instruction set reads other bits than another. All states end as 65536, with the last
// word taken: what does not is broken.
//
// Invariants (`check_code`): (C1) frequencies are below 4096, at least two are not zero, and they sum to 4096. (C2) `first` and all that
// follow it are bytes. Invariants of a stretch (the decoder ensures them for any bytes): (C3) blocks fill the stretch, and after each block
// the stored rest is no longer than the raw rest, so that the stretch can be decoded in place, from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/core/dtype.h"

namespace sluice::model {

/// The raw size of a block: a core's L2 cache holds it with ease, and its 128 bytes of states are 0.2 % of it.
inline constexpr std::size_t kCodeBlockBytes = 64 * 1024;
/// Two vectors of AVX-512, whose steps hide each other's latency.
inline constexpr std::size_t kCodeLanes = 32;
/// A table of 16 KiB stays in the first cache; 14 bits shrink int8 by 0.1 % more.
inline constexpr std::uint32_t kCodeBits = 12;
inline constexpr std::uint32_t kCodeSlots = 1u << kCodeBits;
inline constexpr std::uint32_t kCodeLeastState = 1u << 16;
inline constexpr std::size_t kCodeStateBytes = kCodeLanes * sizeof(std::uint32_t);
inline constexpr std::size_t kCodeSizeBytes = sizeof(std::uint32_t);  // before each block

/// The byte of each value that is coded.
enum class CodePlane : std::uint8_t {
  kBytes = 0,      // each byte is a value: integers of up to 8 bits, with their scales
  kRotated16 = 1,  // the upper byte of 16 bits, rotated left by one: bf16, f16
  kRotated32 = 2,  // the same of 32 bits: f32
};
inline constexpr int kCodePlaneCount = 3;

/// Bytes of a value of this plane.
constexpr std::size_t value_bytes_of(CodePlane plane) noexcept { return std::size_t{1} << static_cast<int>(plane); }
/// The plane that values of a type gain most by.
constexpr CodePlane plane_of(DType dtype) noexcept {
  if (dtype == DType::kF32) return CodePlane::kRotated32;
  return dtype == DType::kF16 || dtype == DType::kBF16 ? CodePlane::kRotated16 : CodePlane::kBytes;
}

/// The table of a weight.
struct Code {
  CodePlane plane = CodePlane::kBytes;
  std::uint8_t first = 0;                  // symbol of frequencies[0]
  std::vector<std::uint16_t> frequencies;  // of 4096, for `first` and the symbols after it

  friend bool operator==(const Code&, const Code&) = default;
};

/// C1 and C2.
constexpr bool check_code(const Code& code) noexcept {
  if (code.frequencies.size() > std::size_t{256} - code.first) return false;
  std::uint32_t sum = 0;
  for (const std::uint16_t frequency : code.frequencies) {
    if (frequency >= kCodeSlots) return false;
    sum += frequency;
  }
  return sum == kCodeSlots;
}

}  // namespace sluice::model
