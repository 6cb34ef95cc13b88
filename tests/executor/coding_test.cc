// What the encoder makes, every decoder expands; what it does not make, every decoder refuses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "sluice/core/hash.h"
#include "sluice/executor/decoder.h"
#include "src/executor/coding/decode_rate.h"
#include "src/executor/coding/stretch_decoder.h"
#include "src/importer/coding/encoder.h"
#include "tests/executor/coding_samples.h"

namespace sluice::executor::coding {
namespace {

using model::CodePlane;
using ByteVector = std::vector<std::byte>;

constexpr CodePlane kPlanes[] = {CodePlane::kBytes, CodePlane::kRotated16, CodePlane::kRotated32};

model::Code code_of(CodePlane plane, std::span<const std::byte> raw) {
  importer::coding::Counts counts{};
  importer::coding::count_symbols(plane, raw, counts);
  return importer::coding::make_code(plane, counts);
}

/// Decoders of all instruction sets, with a table.
std::vector<std::unique_ptr<StretchDecoder>> decoders_of(const model::Code& code) {
  std::vector<std::unique_ptr<StretchDecoder>> decoders;
  for (const Isa isa : test::isas_here()) {
    decoders.push_back(std::make_unique<StretchDecoder>(isa));
    decoders.back()->take(code);
  }
  return decoders;
}

/// What all decoders make of a stretch: nothing where it is broken. They must agree.
std::optional<ByteVector> decode_everywhere(const model::Code& code, std::span<const std::byte> stored, std::size_t raw_size) {
  std::optional<ByteVector> first;
  bool is_first = true;
  for (const auto& decoder : decoders_of(code)) {
    constexpr std::byte kCanary{0xC5};
    ByteVector padded(raw_size + 128, kCanary);
    const std::span raw = std::span(padded).subspan(64, raw_size);
    const bool sound = decoder->decode(stored, raw);
    const auto untouched = [&](std::span<const std::byte> bytes) {
      return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kCanary; });
    };
    CHECK((untouched(std::span(padded).first(64)) && untouched(std::span(padded).last(64))));
    if (is_first && sound) first = ByteVector(raw.begin(), raw.end());
    if (!is_first) CHECK(sound == first.has_value());
    if (!is_first && sound && first) CHECK(std::equal(raw.begin(), raw.end(), first->begin()));
    is_first = false;
  }
  return first;
}

/// Decodes a stretch whose raw bytes end where its stored ones end.
ByteVector decode_in_place(StretchDecoder& decoder, std::span<const std::byte> stored, std::size_t raw_size) {
  ByteVector region(raw_size);
  std::copy(stored.begin(), stored.end(), region.end() - static_cast<std::ptrdiff_t>(stored.size()));
  REQUIRE(decoder.decode(std::span(region).last(stored.size()), region));
  return region;
}

}  // namespace

TEST_CASE("coded stretches of any length come back on every instruction set, apart and in place") {
  for (const CodePlane plane : kPlanes) {
    for (const std::size_t bytes : {1024u, 1088u, 4096u, 36864u, 65536u, 65600u, 3 * 65536u, 3 * 65536u + 1984u}) {
      CAPTURE(static_cast<int>(plane), bytes);
      const ByteVector raw = test::draw_normal(plane, bytes, static_cast<std::uint32_t>(bytes));
      const model::Code code = code_of(plane, raw);
      REQUIRE(model::check_code(code));
      const auto stored = importer::coding::encode(code, raw);
      // The last block of 64 bytes does not shrink, and would be written over itself.
      if (bytes == 65600) {
        CHECK_FALSE(stored);
        continue;
      }
      if (bytes < 4096 && !stored) continue;
      REQUIRE(stored);
      CHECK(decode_everywhere(code, *stored, bytes) == raw);
      for (const auto& decoder : decoders_of(code)) CHECK(decode_in_place(*decoder, *stored, bytes) == raw);
    }
  }
}

TEST_CASE("tables of any frequencies, one after the other in a decoder: each symbol has its slots and no others") {
  const std::vector<std::vector<std::uint16_t>> tables{{4095, 1},
                                                       {1, 4095},
                                                       {1, 0, 4094, 0, 0, 1},
                                                       {7, 8, 9, 15, 16, 17, 4024},
                                                       {4024, 17, 16, 15, 9, 8, 7},
                                                       std::vector<std::uint16_t>(256, 16)};
  const auto decoders = decoders_of({CodePlane::kBytes, 0, {2048, 2048}});
  for (const auto& frequencies : tables) {
    const model::Code code{CodePlane::kBytes, 0, frequencies};
    REQUIRE(model::check_code(code));
    // As often as the table says, so that it shrinks or nearly, and each symbol comes.
    ByteVector raw;
    for (std::size_t symbol = 0; symbol < frequencies.size(); ++symbol)
      raw.insert(raw.end(), frequencies[symbol] * std::size_t{4}, static_cast<std::byte>(symbol));
    std::shuffle(raw.begin(), raw.end(), std::mt19937(7));
    const auto stored = importer::coding::encode(code, raw);
    REQUIRE(stored.has_value() == (frequencies.size() < 256));
    if (!stored) continue;
    CHECK(decode_everywhere(code, *stored, raw.size()) == raw);
    for (const auto& decoder : decoders) {
      decoder->take(code);
      CHECK(decode_in_place(*decoder, *stored, raw.size()) == raw);
    }
  }
}

TEST_CASE("the table of one weight codes each of its stretches, also those that are unlike the others") {
  const ByteVector small = test::draw_normal(CodePlane::kRotated32, 65536, 1);
  ByteVector large = small;
  for (std::size_t at = 3; at < large.size(); at += 4) large[at] = static_cast<std::byte>(static_cast<unsigned>(large[at]) ^ 0x40u);
  ByteVector both = small;
  both.insert(both.end(), large.begin(), large.end());
  const model::Code code = code_of(CodePlane::kRotated32, both);
  for (const ByteVector& raw : {small, large}) {
    const auto stored = importer::coding::encode(code, raw);
    REQUIRE(stored);
    CHECK(decode_everywhere(code, *stored, raw.size()) == raw);
  }
}

TEST_CASE("values of every kind come back: one value only, infinities, NaN, denormals, zeros of both signs") {
  for (const CodePlane plane : kPlanes) {
    ByteVector raw(8192);
    CHECK(decode_everywhere(code_of(plane, raw), *importer::coding::encode(code_of(plane, raw), raw), raw.size()) == raw);
    raw.assign(8192, std::byte{255});
    CHECK(decode_everywhere(code_of(plane, raw), *importer::coding::encode(code_of(plane, raw), raw), raw.size()) == raw);
  }
  const float odd[] = {0.0f,
                       -0.0f,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::denorm_min(),
                       -1e-41f,
                       std::numeric_limits<float>::max(),
                       std::numeric_limits<float>::quiet_NaN()};
  ByteVector raw(65536);
  for (std::size_t at = 0; at < raw.size(); at += sizeof(float)) std::memcpy(raw.data() + at, &odd[at / 4 % std::size(odd)], sizeof(float));
  for (const CodePlane plane : kPlanes) {
    const model::Code code = code_of(plane, raw);
    CHECK(decode_everywhere(code, *importer::coding::encode(code, raw), raw.size()) == raw);
  }
}

TEST_CASE("coding shrinks normal values by what their exponents are worth, and noise not at all") {
  const double most[] = {0.93, 0.68, 0.84};
  for (const CodePlane plane : kPlanes) {
    const ByteVector raw = test::draw_normal(plane, 16 * 65536, 7);
    const auto stored = importer::coding::encode(code_of(plane, raw), raw);
    REQUIRE(stored);
    CHECK(static_cast<double>(stored->size()) / static_cast<double>(raw.size()) <= most[static_cast<int>(plane)]);
  }
  std::mt19937 random(3);
  ByteVector noise(65536);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  CHECK_FALSE(importer::coding::encode(code_of(CodePlane::kBytes, noise), noise));
}

TEST_CASE("what a table's price says is what its stretches take") {
  for (const CodePlane plane : kPlanes) {
    const ByteVector raw = test::draw_normal(plane, 65536, 5);
    importer::coding::Counts counts{};
    importer::coding::count_symbols(plane, raw, counts);
    const model::Code code = importer::coding::make_code(plane, counts);
    const double heads = model::kCodeStateBytes + model::kCodeSizeBytes;
    const auto stored = static_cast<double>(importer::coding::encode(code, raw)->size());
    CHECK(std::abs(importer::coding::coded_bytes(code, counts) + heads - stored) < 0.001 * stored + 64);
  }
}

TEST_CASE("coded bytes are those of the format: what was coded once is read for ever") {
  const std::uint64_t expected[] = {0x56b9929eed049e8f, 0x95d7f8db35295497, 0x56fdc71cdf2f3c8e};
  for (const CodePlane plane : kPlanes) {
    const ByteVector raw = test::draw_normal(plane, 70016, 11);
    const model::Code code = code_of(plane, raw);
    const auto stored = importer::coding::encode(code, raw);
    REQUIRE(stored);
    CHECK(xxh3_64(*stored) == expected[static_cast<int>(plane)]);
  }
}

TEST_CASE("a table that is none is seen") {
  model::Code code{CodePlane::kBytes, 10, {4000, 96}};
  CHECK(model::check_code(code));
  code.frequencies = {4000, 97};
  CHECK_FALSE(model::check_code(code));
  code.frequencies = {4096};  // does not fit into its 12 bits
  CHECK_FALSE(model::check_code(code));
  code.frequencies = {};
  CHECK_FALSE(model::check_code(code));
  code.frequencies.assign(247, 16);
  code.frequencies[0] = 4096 - 246 * 16;
  CHECK_FALSE(model::check_code(code));  // the last symbol would be 256
  code.first = 9;
  CHECK(model::check_code(code));
}

TEST_CASE("a stretch that is cut, longer, or made for another length is refused") {
  for (const CodePlane plane : kPlanes) {
    const ByteVector raw = test::draw_normal(plane, 2048, 2);
    const model::Code code = code_of(plane, raw);
    const auto stored = importer::coding::encode(code, raw);
    REQUIRE(stored);
    for (std::size_t size = 0; size < stored->size(); ++size)
      CHECK_FALSE(decode_everywhere(code, std::span(*stored).first(size), raw.size()));
    ByteVector longer = *stored;
    longer.push_back(std::byte{});
    CHECK_FALSE(decode_everywhere(code, longer, raw.size()));
    for (const std::size_t size : {0u, 1u, 63u, 1984u, 2047u, 2049u, 2112u, 65536u, 131072u})
      CHECK_FALSE(decode_everywhere(code, *stored, size));
  }
}

TEST_CASE("a flipped bit is refused or gives other bytes, and in the size of a block it is refused") {
  for (const CodePlane plane : kPlanes) {
    const ByteVector raw = test::draw_normal(plane, 2048, 4);
    const model::Code code = code_of(plane, raw);
    const auto stored = importer::coding::encode(code, raw);
    REQUIRE(stored);
    for (std::size_t bit = 0; bit < 8 * stored->size(); ++bit) {
      ByteVector flipped = *stored;
      flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const auto got = decode_everywhere(code, flipped, raw.size());
      CHECK(got != raw);
      if (bit / 8 < model::kCodeSizeBytes) CHECK_FALSE(got);
    }
  }
}

TEST_CASE("the decoder of coded stretches finds each weight's table, and says what is broken") {
  model::Graph graph;
  std::vector<ByteVector> raw, stored;
  for (std::uint32_t w = 0; w < 3; ++w) {
    raw.push_back(test::draw_normal(kPlanes[w], 16384, w));
    graph.codes.push_back(code_of(kPlanes[w], raw[w]));
    stored.push_back(*importer::coding::encode(graph.codes[w], raw[w]));
  }
  // Weights need not be in the order of their stretches.
  for (const std::uint32_t w : {2u, 0u, 1u}) {
    model::Weight weight;
    weight.first_stretch = w;
    weight.stretch_count = 1;
    weight.code = w;
    graph.weights.push_back(weight);
  }
  for (std::uint32_t w = 0; w < 3; ++w)
    graph.stretches.push_back({Bytes(), Bytes(stored[w].size()), Bytes(raw[w].size()), xxh3_64(stored[w]), model::StretchForm::kCoded});
  const auto decoders = *make_decoders(graph);
  Decoder& decoder = *decoders[index_of(graph.stretches[0].form)];
  ByteVector got(16384);
  for (const std::uint32_t w : {1u, 1u, 0u, 2u, 0u}) {
    REQUIRE(decoder.decode({graph, w, stored[w], got}));
    CHECK(got == raw[w]);
  }
  stored[1].back() ^= std::byte{1};
  CHECK(decoder.decode({graph, 1, stored[1], got}).error().code == ErrorCode::kChecksumMismatch);
  stored[1].resize(stored[1].size() - 1);
  graph.stretches[1].xxh3 = xxh3_64(stored[1]);  // as one who forges a file would
  CHECK(decoder.decode({graph, 1, stored[1], got}).error().code == ErrorCode::kInvalidModel);
  REQUIRE(decoder.decode({graph, 2, stored[2], got}));
  CHECK(got == raw[2]);
}

TEST_CASE("a rate of decoding is found without an encoder") {
  const double rate = coding::measure_decode_rate();
  CHECK(std::isfinite(rate));
  CHECK(rate > 0);
}

TEST_CASE("blocks whose values would overtake what is still to be read are refused") {
  ByteVector raw = test::draw_normal(CodePlane::kRotated32, 65536 + 2048, 6);
  const model::Code code = code_of(CodePlane::kRotated32, raw);
  const auto first = importer::coding::encode(code, std::span(raw).first(65536));
  REQUIRE(first);
  ByteVector stored = *first;
  const std::uint32_t size = 2048;
  stored.resize(stored.size() + sizeof size);
  std::memcpy(stored.data() + stored.size() - sizeof size, &size, sizeof size);
  stored.insert(stored.end(), raw.end() - 2048, raw.end());
  REQUIRE(stored.size() < raw.size());
  CHECK_FALSE(decode_everywhere(code, stored, raw.size()));
}

}  // namespace sluice::executor::coding
