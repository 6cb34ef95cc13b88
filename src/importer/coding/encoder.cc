#include "src/importer/coding/encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "sluice/core/check.h"

namespace sluice::importer::coding {
namespace {

using model::CodePlane;

std::size_t value_count(CodePlane plane, std::span<const std::byte> raw) noexcept { return raw.size() / model::value_bytes_of(plane); }

/// A value whose upper byte is the symbol.
std::uint32_t rotated_value(CodePlane plane, const std::byte* value) noexcept {
  if (plane == CodePlane::kBytes) return static_cast<std::uint32_t>(*value);
  if (plane == CodePlane::kRotated16) {
    std::uint16_t bits;
    std::memcpy(&bits, value, sizeof bits);
    return std::rotl(bits, 1);
  }
  std::uint32_t bits;
  std::memcpy(&bits, value, sizeof bits);
  return std::rotl(bits, 1);
}

std::uint8_t symbol_of(CodePlane plane, std::uint32_t rotated) noexcept {
  return static_cast<std::uint8_t>(rotated >> 8 * (model::value_bytes_of(plane) - 1));
}

/// Moves slots between frequencies until they are as many as there are. A symbol of count c and frequency f costs c * log2(4096 / f) bits,
/// so that a slot more gains about c / (f + 1/2) and one less loses c / (f - 1/2): no logarithm, which machines round differently.
void fit(const Counts& counts, std::array<std::uint32_t, 256>& frequencies) {
  const auto price = [&](std::size_t symbol, double by) { return static_cast<double>(counts[symbol]) / (frequencies[symbol] + by); };
  std::uint32_t sum = std::accumulate(frequencies.begin(), frequencies.end(), 0u);
  for (; sum != model::kCodeSlots; sum < model::kCodeSlots ? ++sum : --sum) {
    const bool more = sum < model::kCodeSlots;
    std::optional<std::size_t> best;
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
      const std::uint32_t frequency = frequencies[symbol];
      if (frequency == 0 || (more ? frequency == model::kCodeSlots - 1 : frequency == 1)) continue;
      const bool better = !best || (more ? price(symbol, 0.5) > price(*best, 0.5) : price(symbol, -0.5) < price(*best, -0.5));
      if (better) best = symbol;
    }
    SLUICE_CHECK(best.has_value(), "at most 256 symbols share 4096 slots");
    frequencies[*best] = more ? frequencies[*best] + 1 : frequencies[*best] - 1;
  }
}

/// The lanes of one block: values go in from the last to the first, as a stack, so that they come out from the first on.
class BlockEncoder {
 public:
  explicit BlockEncoder(const model::Code& code) : code_(code) {
    std::uint32_t begin = 0;
    for (std::size_t i = 0; i < code.frequencies.size(); ++i) {
      symbols_[code.first + i] = {code.frequencies[i], begin};
      begin += code.frequencies[i];
    }
  }

  /// Appends the block to `out`, coded or raw.
  void append(std::span<const std::byte> raw, std::vector<std::byte>& out) {
    const bool coded = code(raw);
    const std::size_t size = model::kCodeStateBytes + 2 * words_.size() + other_.size();
    const bool shrinks = coded && size < raw.size();
    const auto head = static_cast<std::uint32_t>(shrinks ? size : raw.size());
    append_bytes(&head, sizeof head, out);
    if (!shrinks) return append_bytes(raw.data(), raw.size(), out);
    append_bytes(states_.data(), model::kCodeStateBytes, out);
    append_bytes(words_.data(), 2 * words_.size(), out);
    append_bytes(other_.data(), other_.size(), out);
  }

 private:
  struct Symbol {
    std::uint32_t frequency = 0;
    std::uint32_t begin = 0;
  };

  static void append_bytes(const void* bytes, std::size_t size, std::vector<std::byte>& out) {
    const auto* const from = static_cast<const std::byte*>(bytes);
    out.insert(out.end(), from, from + size);
  }

  /// False: a symbol is none of the table's, or the values are not whole.
  bool code(std::span<const std::byte> raw) {
    const std::size_t value_bytes = model::value_bytes_of(code_.plane);
    const std::size_t values = value_count(code_.plane, raw);
    states_.fill(model::kCodeLeastState);
    words_.clear();
    other_.resize(values * (value_bytes - 1));
    if (values * value_bytes != raw.size()) return false;
    for (std::size_t i = values; i-- > 0;) {
      const std::uint32_t value = rotated_value(code_.plane, raw.data() + i * value_bytes);
      if (value_bytes > 1) std::memcpy(other_.data() + i * (value_bytes - 1), &value, value_bytes - 1);
      const Symbol symbol = symbols_[symbol_of(code_.plane, value)];
      if (symbol.frequency == 0) return false;
      push(symbol, states_[i % model::kCodeLanes]);
    }
    std::reverse(words_.begin(), words_.end());
    return true;
  }

  void push(const Symbol& symbol, std::uint32_t& state) {
    // States stay below 2^32: from 2^20 * frequency on a word goes out first.
    if (state >= symbol.frequency << (32 - model::kCodeBits)) {
      words_.push_back(static_cast<std::uint16_t>(state));
      state >>= 16;
    }
    state = (state / symbol.frequency << model::kCodeBits) + state % symbol.frequency + symbol.begin;
  }

  const model::Code& code_;
  std::array<Symbol, 256> symbols_;
  std::array<std::uint32_t, model::kCodeLanes> states_;
  std::vector<std::uint16_t> words_;
  std::vector<std::byte> other_;
};

}  // namespace

void count_symbols(CodePlane plane, std::span<const std::byte> raw, Counts& counts) noexcept {
  const std::size_t value_bytes = model::value_bytes_of(plane);
  for (std::size_t i = 0; i < value_count(plane, raw); ++i) ++counts[symbol_of(plane, rotated_value(plane, raw.data() + i * value_bytes))];
}

model::Code make_code(CodePlane plane, const Counts& counts) {
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::array<std::uint32_t, 256> frequencies{};
  for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] == 0) continue;
    const double share = static_cast<double>(counts[symbol]) / static_cast<double>(total) * model::kCodeSlots;
    frequencies[symbol] = std::clamp<std::uint32_t>(static_cast<std::uint32_t>(share + 0.5), 1, model::kCodeSlots - 1);
  }
  auto first =
      static_cast<std::size_t>(std::find_if(counts.begin(), counts.end(), [](std::uint64_t c) { return c != 0; }) - counts.begin());
  if (counts[first] == total) {  // a frequency of all slots is none: a neighbour, which never comes, takes one
    const std::size_t neighbour = first == 0 ? 1 : first - 1;
    frequencies[neighbour] = 1;
    first = std::min(first, neighbour);
  }
  fit(counts, frequencies);
  std::size_t end = frequencies.size();
  while (frequencies[end - 1] == 0) --end;
  model::Code code{plane, static_cast<std::uint8_t>(first), {}};
  for (std::size_t symbol = first; symbol < end; ++symbol) code.frequencies.push_back(static_cast<std::uint16_t>(frequencies[symbol]));
  return code;
}

double coded_bytes(const model::Code& code, const Counts& counts) noexcept {
  double bits = 0;
  std::uint64_t values = 0;
  for (std::size_t i = 0; i < code.frequencies.size(); ++i) {
    if (counts[code.first + i] == 0) continue;
    values += counts[code.first + i];
    bits += static_cast<double>(counts[code.first + i]) * std::log2(static_cast<double>(model::kCodeSlots) / code.frequencies[i]);
  }
  return bits / 8 + static_cast<double>(values * (model::value_bytes_of(code.plane) - 1));
}

std::optional<std::vector<std::byte>> encode(const model::Code& code, std::span<const std::byte> raw) {
  BlockEncoder encoder(code);
  std::vector<std::byte> stored;
  std::vector<std::size_t> ends;  // of the blocks
  for (std::size_t at = 0; at < raw.size(); at += model::kCodeBlockBytes) {
    encoder.append(raw.subspan(at, std::min(raw.size() - at, model::kCodeBlockBytes)), stored);
    ends.push_back(stored.size());
  }
  if (stored.size() >= raw.size()) return std::nullopt;
  for (std::size_t block = 0; block < ends.size(); ++block) {
    const std::size_t raw_left = raw.size() - std::min(raw.size(), (block + 1) * model::kCodeBlockBytes);
    if (stored.size() - ends[block] > raw_left) return std::nullopt;
  }
  return stored;
}

}  // namespace sluice::importer::coding
