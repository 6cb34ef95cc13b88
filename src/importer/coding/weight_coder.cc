#include "src/importer/coding/weight_coder.h"

#include <algorithm>
#include <utility>

namespace sluice::importer::coding {
namespace {

constexpr double kFastGain = 0.9;  // f32 becomes 0.83 and bf16 0.67; of integers, 0.9 and decoded at a third of the rate, few are worth it
constexpr double kSmallGain = 0.99;      // below that, no weight is worth the decoding
constexpr double kAutoGain = 0.97;       // of time, so that what a prediction gets wrong does not cost
constexpr std::size_t kTableBytes = 32;  // of a table in the header, beside its frequencies
// Of one core with vectors: below what sluice-bench-coding measures with AVX2 and AVX-512 on Zen 5 (1.5e9).
constexpr double kSymbolsPerSecond = 1.35e9;
// Of checksums of what is stored: it comes from memory, since a piece that has arrived is in no cache.
constexpr double kVerifiedBytesPerSecond = 15e9;

}  // namespace

bool WeightCoder::begin(const model::Weight& weight) {
  of_type_ = {model::plane_of(weight.panel_layout.dtype), {}};
  bytes_ = {};
  has_other_ = coding_ == Coding::kSmall && of_type_.plane != bytes_.plane;
  raw_bytes_ = head_bytes_ = 0;
  return true;
}

void WeightCoder::look(std::span<const std::byte> raw) {
  count_symbols(of_type_.plane, raw, of_type_.counts);
  if (has_other_) count_symbols(bytes_.plane, raw, bytes_.counts);
  raw_bytes_ += static_cast<double>(raw.size());
  const std::size_t blocks = (raw.size() + model::kCodeBlockBytes - 1) / model::kCodeBlockBytes;
  head_bytes_ += static_cast<double>(blocks * (model::kCodeSizeBytes + model::kCodeStateBytes));
}

std::optional<model::Code> WeightCoder::end() {
  model::Code code = make_code(of_type_.plane, of_type_.counts);
  double stored = stored_bytes(code, of_type_.counts);
  if (has_other_) {
    model::Code bytes = make_code(bytes_.plane, bytes_.counts);
    const double by_bytes = stored_bytes(bytes, bytes_.counts);
    if (by_bytes < stored) {
      code = std::move(bytes);
      stored = by_bytes;
    }
  }
  if (!pays(code.plane, stored)) return std::nullopt;
  return code;
}

/// With the heads of blocks and the table.
double WeightCoder::stored_bytes(const model::Code& code, const Counts& counts) const noexcept {
  const auto table_bytes = static_cast<double>(kTableBytes + code.frequencies.size() * sizeof(code.frequencies[0]));
  return coded_bytes(code, counts) + head_bytes_ + table_bytes;
}

std::optional<std::vector<std::byte>> WeightCoder::encode(const model::Code& code, std::span<const std::byte> raw) {
  return coding::encode(code, raw);
}

bool WeightCoder::pays(model::CodePlane plane, double stored) const noexcept {
  if (stored >= kSmallGain * raw_bytes_) return false;
  if (coding_ == Coding::kFast) return stored <= kFastGain * raw_bytes_;
  if (coding_ != Coding::kAuto) return true;
  const double decoding =
      raw_bytes_ / static_cast<double>(model::value_bytes_of(plane)) / kSymbolsPerSecond + stored / kVerifiedBytesPerSecond;
  return std::max(stored / disk_bytes_per_second_, decoding) <= kAutoGain * raw_bytes_ / disk_bytes_per_second_;
}

}  // namespace sluice::importer::coding
