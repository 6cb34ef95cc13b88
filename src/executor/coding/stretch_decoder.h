// Decodes coded stretches (sluice/model/code.h has their picture): block after block through a scratch of its own, so that a stretch may
// expand over itself.
//
//     stored    |~ block 0 ~|~ block 1 ~| ...
//                     v copy
//     scratch   |~ block ~| 64 bytes |         vectors read beyond the end, and what they read may be overwritten meanwhile
//                     v rounds (rounds.h), then what is left over, a value at a time
//     raw       |=== block 0 ===|
//
// Invariants: (S1) whatever the bytes are, nothing is read outside `stored` or written outside `raw`; what is broken is said to be. (S2)
// All instruction sets find the same stretches broken and give the same bytes. (S3) Nothing is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/core/cpu.h"
#include "sluice/model/code.h"
#include "src/executor/coding/rounds.h"

namespace sluice::executor::coding {

class StretchDecoder {
 public:
  /// Precondition: this CPU has `isa`.
  explicit StretchDecoder(Isa isa = active_isa()) noexcept;
  /// Overwrites the scratch, which has values that may have been encrypted.
  ~StretchDecoder();
  StretchDecoder(const StretchDecoder&) = delete;
  StretchDecoder& operator=(const StretchDecoder&) = delete;

  /// The table of the stretches that follow. Precondition: `check_code`. 1 microsecond.
  void take(const model::Code& code) noexcept;

  /// Expands a stretch. `raw` may overlap `stored` if it ends no later. False: the bytes are none that an encoder makes of so many raw
  /// ones with this table; `raw` then holds anything.
  bool decode(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept;

 private:
  bool decode_block(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept;
  bool decode_rest(const std::uint8_t* words, const std::uint8_t* words_end, const std::uint8_t* other, std::span<std::byte> raw) noexcept;

  static constexpr std::size_t kBeyond = 64;
  static constexpr std::uint32_t kRun = 8;  // entries of the table that are written at a time

  const RoundsTable* rounds_;
  model::CodePlane plane_ = model::CodePlane::kBytes;
  alignas(64) std::array<std::uint32_t, model::kCodeSlots + kRun> table_{};
  alignas(64) std::array<std::uint32_t, model::kCodeLanes> states_{};
  alignas(64) std::array<std::uint8_t, model::kCodeBlockBytes + kBeyond> scratch_{};
};

}  // namespace sluice::executor::coding
