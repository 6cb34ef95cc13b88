#include "src/emit/packed_text.h"

#include <algorithm>
#include <array>

namespace sluice::emit {
namespace {

// Characters from the space on are 1 to 95, so that more bytes are left for pairs.
constexpr std::uint8_t kBeforeSpace = 31;
constexpr std::uint32_t kFirstCode = 96, kCodes = 160;

struct Pair {
  std::uint8_t first = 0, second = 0;
  std::uint32_t count = 0;
};

/// The pair that occurs most often; pieces end with a zero, which no pair has. Of equal ones the first.
Pair most_frequent(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint32_t> counts(std::size_t{1} << 16);
  Pair best;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0 || bytes[i + 1] == 0) continue;
    const std::uint32_t count = ++counts[static_cast<std::size_t>(bytes[i]) << 8 | bytes[i + 1]];
    if (count > best.count) best = {bytes[i], bytes[i + 1], count};
  }
  return best;
}

void replace(std::vector<std::uint8_t>& bytes, const Pair& pair, std::uint8_t code) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < bytes.size(); ++to) {
    const bool here = from + 1 < bytes.size() && bytes[from] == pair.first && bytes[from + 1] == pair.second;
    bytes[to] = here ? code : bytes[from];
    from += here ? 2 : 1;
  }
  bytes.resize(to);
}

}  // namespace

PackedText pack_text(const std::vector<std::string>& pieces) {
  PackedText packed;
  for (const std::string& piece : pieces) {
    for (const char c : piece) packed.bytes.push_back(static_cast<std::uint8_t>(c - kBeforeSpace));
    packed.bytes.push_back(0);
    packed.longest = std::max(packed.longest, static_cast<std::uint32_t>(piece.size()) + 1);
  }
  // A code costs two bytes in the table of pairs and saves one byte at each use.
  constexpr std::uint32_t kWorthIt = 4;
  std::array<std::uint32_t, kFirstCode + kCodes> waiting{};
  for (std::uint32_t code = kFirstCode; code < kFirstCode + kCodes; ++code) {
    const Pair pair = most_frequent(packed.bytes);
    if (pair.count < kWorthIt) break;
    replace(packed.bytes, pair, static_cast<std::uint8_t>(code));
    packed.pairs.insert(packed.pairs.end(), {pair.first, pair.second});
    waiting[code] = 1 + std::max(waiting[pair.first], waiting[pair.second]);
    packed.most_waiting = std::max(packed.most_waiting, waiting[code] + 1);
  }
  if (packed.pairs.empty()) packed.pairs = {0, 0};  // C has no empty arrays
  return packed;
}

}  // namespace sluice::emit
