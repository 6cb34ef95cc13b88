// Coded stretches of any bytes, with any table: all instruction sets say the same, in memory that is exactly as long as it has to be. What
// was coded comes back, in place too; what was changed then is refused or gives other bytes.
//
//     input   mode | plane | changes | symbols n | n counts | the rest: mode even, a stretch; odd, bytes to code, whose last ones say what
//     is changed
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "src/executor/coding/stretch_decoder.h"
#include "src/importer/coding/encoder.h"
#include "tests/executor/coding_samples.h"

namespace {

using namespace sluice;
using executor::coding::StretchDecoder;

void must(bool holds) {
  if (!holds) std::abort();
}

/// By instruction set, kept: they are large.
StretchDecoder& decoder_of(std::size_t i) {
  static std::vector<std::unique_ptr<StretchDecoder>> decoders = [] {
    std::vector<std::unique_ptr<StretchDecoder>> made;
    for (const Isa isa : test::isas_here()) made.push_back(std::make_unique<StretchDecoder>(isa));
    return made;
  }();
  return *decoders[i];
}

/// Whether all find it sound, and then the bytes.
bool decode(const model::Code& code, std::span<const std::byte> from, std::vector<std::byte>& raw) {
  bool sound = false;
  const std::vector<std::byte> stored(from.begin(), from.end());  // so that a read beyond is seen
  for (std::size_t i = 0; i < test::isas_here().size(); ++i) {
    std::vector<std::byte> here(raw.size());
    decoder_of(i).take(code);
    const bool says = decoder_of(i).decode(stored, here);
    must(i == 0 || (says == sound && (!sound || here == raw)));
    sound = says;
    if (i == 0) raw = std::move(here);
  }
  return sound;
}

void code_and_change(model::CodePlane plane, std::span<const std::byte> bytes, std::size_t changes) {
  const std::size_t value = model::value_bytes_of(plane);
  const std::span raw = bytes.first(bytes.size() / value * value);
  if (raw.empty()) return;
  importer::coding::Counts counts{};
  importer::coding::count_symbols(plane, raw, counts);
  const model::Code code = importer::coding::make_code(plane, counts);
  must(model::check_code(code));
  auto stored = importer::coding::encode(code, raw);
  if (!stored) return;
  std::vector<std::byte> back(raw.size());
  must(decode(code, *stored, back) && std::equal(raw.begin(), raw.end(), back.begin()));
  std::vector<std::byte> region(raw.size());
  std::copy(stored->begin(), stored->end(), region.end() - static_cast<std::ptrdiff_t>(stored->size()));
  must(decoder_of(0).decode(std::span(region).last(stored->size()), region) && region == back);
  for (std::size_t i = 0; i < changes && 3 * i + 3 <= raw.size(); ++i) {
    const std::span change = raw.subspan(raw.size() - 3 * i - 3, 3);
    const std::size_t at = static_cast<std::size_t>(change[0]) * 256 + static_cast<std::size_t>(change[1]);
    (*stored)[at % stored->size()] ^= change[2];
  }
  decode(code, *stored, back);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const auto plane = static_cast<model::CodePlane>(data[1] % model::kCodePlaneCount);
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(4);
  if (data[0] % 2 == 1) {
    code_and_change(plane, bytes, data[2]);
    return 0;
  }
  importer::coding::Counts counts{};
  const std::size_t symbols = std::min<std::size_t>(data[3], bytes.size());
  for (std::size_t i = 0; i < symbols; ++i) counts[i] = static_cast<std::uint64_t>(bytes[i]);
  counts[255] += 1;
  std::vector<std::byte> raw(model::kCodeBlockBytes / 256 * (data[2] + std::size_t{1}) * (data[0] % 4 == 0 ? 2 : 1));
  decode(importer::coding::make_code(plane, counts), bytes.subspan(symbols), raw);
  return 0;
}
