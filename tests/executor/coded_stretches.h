// A stored form for tests: values whose lower halves are zero, stored as their upper halves, scrambled. What does not shrink stays raw.
//
// With it a file of coded stretches is made from any bytes, and a decoder table that reads it: the readers themselves know nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/executor/decoder.h"
#include "sluice/model/graph.h"

namespace sluice::toy {

inline constexpr std::byte kHalvesScramble{0x5A};

/// The upper halves of 32-bit little-endian values.
inline std::vector<std::byte> code_halves(std::span<const std::byte> raw) {
  std::vector<std::byte> stored;
  for (std::size_t i = 0; i < raw.size(); i += 4)
    for (std::size_t b = 2; b < 4; ++b) stored.push_back(raw[i + b] ^ kHalvesScramble);
  return stored;
}

/// Values that halves hold exactly.
inline std::vector<std::byte> draw_coarse_values(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> raw(bytes);
  for (std::size_t i = 0; i < bytes; ++i) raw[i] = i % 4 < 2 ? std::byte{} : static_cast<std::byte>(random());
  return raw;
}

class HalvesDecoder final : public executor::Decoder {
 public:
  Status decode(const executor::StretchBytes& bytes) noexcept override {
    SLUICE_RETURN_IF_ERROR(executor::verify_checksum(bytes));
    for (std::size_t i = 0; i < bytes.stored.size(); i += 2) {
      const std::byte low = bytes.stored[i] ^ kHalvesScramble;  // read before its place is written
      const std::byte high = bytes.stored[i + 1] ^ kHalvesScramble;
      std::byte* const value = bytes.raw.data() + 2 * i;
      value[0] = value[1] = std::byte{};
      value[2] = low;
      value[3] = high;
    }
    return {};
  }
};

inline Result<executor::Decoders> make_halves_decoders(const model::Graph& graph, const model::FileKey* key = nullptr) noexcept {
  SLUICE_ASSIGN_OR_RETURN(executor::Decoders decoders, executor::make_decoders(graph, key));
  decoders[executor::index_of(model::StretchForm::kCoded)] = std::make_unique<HalvesDecoder>();
  return decoders;
}

/// Appends a stretch to `file`, coded or raw, and says where it is.
inline model::Stretch append_stretch(std::vector<std::byte>& file, std::span<const std::byte> raw, bool coded) {
  const std::vector<std::byte> stored = coded ? code_halves(raw) : std::vector<std::byte>(raw.begin(), raw.end());
  model::Stretch stretch;
  stretch.offset = Bytes(file.size());
  stretch.stored_size = Bytes(stored.size());
  stretch.raw_size = Bytes(raw.size());
  stretch.xxh3 = xxh3_64(stored);
  stretch.form = coded ? model::StretchForm::kCoded : model::StretchForm::kRaw;
  file.insert(file.end(), stored.begin(), stored.end());
  return stretch;
}

}  // namespace sluice::toy
