// Eight vectors of 4 states. NEON has no gather: entries are loaded one by one; a table of permutations brings words into the lanes that
// want them.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <array>

#include "sluice/model/code.h"
#include "src/executor/coding/rounds.h"

namespace sluice::executor::coding {
namespace {

constexpr std::size_t kVectors = model::kCodeLanes / 4;

/// For each set of lanes, the bytes of the next four words that each lane takes into its lower half.
constexpr auto kTaken = [] {
  std::array<std::array<std::uint8_t, 16>, 16> table{};
  for (unsigned lanes = 0; lanes < 16; ++lanes) {
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < 4; ++lane) {
      const bool takes = (lanes >> lane & 1) != 0;
      for (unsigned byte = 0; byte < 4; ++byte)
        table[lanes][4 * lane + byte] = takes && byte < 2 ? static_cast<std::uint8_t>(next + byte) : std::uint8_t{255};
      if (takes) next = static_cast<std::uint8_t>(next + 2);
    }
  }
  return table;
}();
constexpr std::array<std::uint8_t, 16> kCount = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

/// Entries of 4 lanes, and their states one step on.
inline uint32x4_t take_steps(const std::uint32_t* table, uint32x4_t& x, const std::uint8_t*& words) {
  const uint32x4_t slots = vandq_u32(x, vdupq_n_u32(4095));
  uint32x4_t entries = vdupq_n_u32(table[vgetq_lane_u32(slots, 0)]);
  entries = vld1q_lane_u32(table + vgetq_lane_u32(slots, 1), entries, 1);
  entries = vld1q_lane_u32(table + vgetq_lane_u32(slots, 2), entries, 2);
  entries = vld1q_lane_u32(table + vgetq_lane_u32(slots, 3), entries, 3);
  const uint32x4_t offset = vandq_u32(vshrq_n_u32(entries, kOffsetShift), vdupq_n_u32(4095));
  const uint32x4_t stepped = vmlaq_u32(offset, vshrq_n_u32(entries, kFrequencyShift), vshrq_n_u32(x, 12));
  const uint32x4_t low = vcltq_u32(stepped, vdupq_n_u32(1 << 16));
  const uint32x4_t bits = {1, 2, 4, 8};
  const std::uint32_t lanes = vaddvq_u32(vandq_u32(low, bits));
  const uint8x16_t next = vcombine_u8(vld1_u8(words), vdup_n_u8(0));
  const uint32x4_t taken = vreinterpretq_u32_u8(vqtbl1q_u8(next, vld1q_u8(kTaken[lanes].data())));
  x = vbslq_u32(low, vorrq_u32(vshlq_n_u32(stepped, 16), taken), stepped);
  words += 2 * std::size_t{kCount[lanes]};
  return entries;
}

/// The symbols of 16 lanes, a byte each.
inline uint8x16_t symbols_of(const uint32x4_t* entries) {
  const uint16x8_t first = vcombine_u16(vmovn_u32(entries[0]), vmovn_u32(entries[1]));
  const uint16x8_t second = vcombine_u16(vmovn_u32(entries[2]), vmovn_u32(entries[3]));
  return vcombine_u8(vmovn_u16(first), vmovn_u16(second));
}

struct PutBytes {
  static constexpr std::size_t kOther = 0, kOut = 32;
  static void put(const uint32x4_t* entries, const std::uint8_t*, std::uint8_t* out) {
    vst1q_u8(out, symbols_of(entries));
    vst1q_u8(out + 16, symbols_of(entries + 4));
  }
};

struct PutRotated16 {
  static constexpr std::size_t kOther = 32, kOut = 64;
  static void put(const uint32x4_t* entries, const std::uint8_t* other, std::uint8_t* out) {
    for (std::size_t half = 0; half < 2; ++half) {
      const uint8x16_t symbols = symbols_of(entries + 4 * half), low = vld1q_u8(other + 16 * half);
      for (std::size_t part = 0; part < 2; ++part) {
        const uint16x8_t value = vreinterpretq_u16_u8(part == 0 ? vzip1q_u8(low, symbols) : vzip2q_u8(low, symbols));
        vst1q_u8(out + 32 * half + 16 * part, vreinterpretq_u8_u16(vsliq_n_u16(vshrq_n_u16(value, 1), value, 15)));
      }
    }
  }
};

struct PutRotated32 {
  static constexpr std::size_t kOther = 96, kOut = 128;
  static void put(const uint32x4_t* entries, const std::uint8_t* other, std::uint8_t* out) {
    const uint8x16_t apart = {0, 1, 2, 255, 3, 4, 5, 255, 6, 7, 8, 255, 9, 10, 11, 255};
    for (std::size_t v = 0; v < kVectors; ++v) {
      const uint32x4_t low = vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(other + 12 * v), apart));
      const uint32x4_t value = vsliq_n_u32(low, entries[v], 24);
      vst1q_u8(out + 16 * v, vreinterpretq_u8_u32(vsliq_n_u32(vshrq_n_u32(value, 1), value, 31)));
    }
  }
};

template <class Put>
const std::uint8_t* run(const Rounds& rounds) noexcept {
  const std::uint8_t* words = rounds.words;
  const std::uint8_t* other = rounds.other;
  std::uint8_t* out = rounds.out;
  uint32x4_t x[kVectors], entries[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) x[v] = vld1q_u32(rounds.states + 4 * v);
  for (std::size_t round = 0; round < rounds.count; ++round, other += Put::kOther, out += Put::kOut) {
    for (std::size_t v = 0; v < kVectors; ++v) entries[v] = take_steps(rounds.table, x[v], words);
    Put::put(entries, other, out);
    if (words > rounds.words_end) return nullptr;
  }
  for (std::size_t v = 0; v < kVectors; ++v) vst1q_u32(rounds.states + 4 * v, x[v]);
  return words;
}

}  // namespace

extern const RoundsTable kNeonRounds = {&run<PutBytes>, &run<PutRotated16>, &run<PutRotated32>};

}  // namespace sluice::executor::coding
#endif
