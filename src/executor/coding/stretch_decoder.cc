#include "src/executor/coding/stretch_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sluice/core/check.h"
#include "src/core/build_list.h"
#include "src/core/wipe.h"
#include "src/executor/coding/step.h"

namespace sluice::executor::coding {
namespace {

static_assert(std::endian::native == std::endian::little, "words, states and values are read as they lie");

const RoundsTable* rounds_of(Isa isa) noexcept {
  if constexpr (kOneIsa) isa = kOnlyIsa;
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return &kAvx512Rounds;
  if (isa == Isa::kAvx2) return &kAvx2Rounds;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return &kNeonRounds;
#endif
  static_cast<void>(isa);
  return &kScalarRounds;
}

RunRounds rounds_of(const RoundsTable& table, model::CodePlane plane) noexcept {
  if (plane == model::CodePlane::kRotated32) return table.rotated32;
  return plane == model::CodePlane::kRotated16 ? table.rotated16 : table.bytes;
}

void put_value_of(model::CodePlane plane, std::uint8_t symbol, const std::uint8_t* other, std::uint8_t* out) noexcept {
  if (plane == model::CodePlane::kRotated32) return put_value<model::CodePlane::kRotated32>(symbol, other, out);
  if (plane == model::CodePlane::kRotated16) return put_value<model::CodePlane::kRotated16>(symbol, other, out);
  put_value<model::CodePlane::kBytes>(symbol, other, out);
}

}  // namespace

StretchDecoder::StretchDecoder(Isa isa) noexcept : rounds_(rounds_of(isa)) {}

StretchDecoder::~StretchDecoder() { wipe(std::as_writable_bytes(std::span(scratch_))); }

void StretchDecoder::take(const model::Code& code) noexcept {
  SLUICE_DCHECK(model::check_code(code), "whoever validated the graph has seen to it");
  plane_ = code.plane;
  std::uint32_t* slot = table_.data();
  for (std::size_t i = 0; i < code.frequencies.size(); ++i) {
    const std::uint32_t frequency = code.frequencies[i], first = make_entry(frequency, 0, static_cast<std::uint32_t>(code.first + i));
    // Whole runs, which vectors write; the next symbol's write over what is too much.
    for (std::uint32_t offset = 0; offset < frequency; offset += kRun)
      for (std::uint32_t j = 0; j < kRun; ++j) slot[offset + j] = first + ((offset + j) << kOffsetShift);
    slot += frequency;
  }
}

bool StretchDecoder::decode(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
  while (!raw.empty()) {
    std::uint32_t size = 0;
    if (stored.size() < sizeof size) return false;
    std::memcpy(&size, stored.data(), sizeof size);
    stored = stored.subspan(sizeof size);
    const std::span block = raw.first(std::min(raw.size(), model::kCodeBlockBytes));
    if (size > block.size() || size > stored.size()) return false;
    const std::span coded = stored.first(size);
    stored = stored.subspan(size);
    raw = raw.subspan(block.size());
    if (stored.size() > raw.size()) return false;  // what follows would be written over before it is read
    if (size == block.size()) {
      std::memmove(block.data(), coded.data(), size);
    } else if (!decode_block(coded, block)) {
      return false;
    }
  }
  return stored.empty();
}

bool StretchDecoder::decode_block(std::span<const std::byte> stored, std::span<std::byte> raw) noexcept {
  const std::size_t value_bytes = model::value_bytes_of(plane_);
  const std::size_t values = raw.size() / value_bytes;
  const std::size_t other_bytes = values * (value_bytes - 1);
  if (raw.size() % value_bytes != 0 || stored.size() < model::kCodeStateBytes + other_bytes) return false;
  std::memcpy(states_.data(), stored.data(), model::kCodeStateBytes);
  const std::span rest = stored.subspan(model::kCodeStateBytes);
  std::memcpy(scratch_.data(), rest.data(), rest.size());
  const std::uint8_t* const words_end = scratch_.data() + (rest.size() - other_bytes);
  const std::size_t rounds = values / model::kCodeLanes;
  const std::uint8_t* const words = rounds_of(*rounds_, plane_)(
      {table_.data(), states_.data(), scratch_.data(), words_end, words_end, reinterpret_cast<std::uint8_t*>(raw.data()), rounds});
  const std::size_t done = rounds * model::kCodeLanes;
  return words != nullptr && decode_rest(words, words_end, words_end + done * (value_bytes - 1), raw.subspan(done * value_bytes));
}

/// The values after whole rounds, and whether all ends as it began.
bool StretchDecoder::decode_rest(const std::uint8_t* words, const std::uint8_t* words_end, const std::uint8_t* other,
                                 std::span<std::byte> raw) noexcept {
  const std::size_t value_bytes = model::value_bytes_of(plane_);
  auto* out = reinterpret_cast<std::uint8_t*>(raw.data());
  for (std::size_t lane = 0; lane < raw.size() / value_bytes; ++lane, other += value_bytes - 1, out += value_bytes) {
    const std::uint8_t symbol = take_step(table_.data(), states_[lane], words);
    put_value_of(plane_, symbol, other, out);
    if (words > words_end) return false;
  }
  return words == words_end && std::all_of(states_.begin(), states_.end(), [](std::uint32_t x) { return x == model::kCodeLeastState; });
}

}  // namespace sluice::executor::coding
