// What entropy coding makes of a model's weights: bytes, and raw bytes a second that one core decodes, by type and instruction set.
//
//     sluice-bench-coding MODEL.sluice...
//
// All f32 panels of the models, as they are and rounded to bf16, f16 and i8 (a scale for each output channel, in front of its panel as the
// format has them); a table for each weight, stretches of 64 KiB. Rates are those of the fastest of nine passes over all stretches, which a
// busy machine disturbs least.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "src/executor/coding/stretch_decoder.h"
#include "src/importer/coding/encoder.h"
#include "tests/bench/must.h"
#include "tests/executor/coding_samples.h"

namespace sluice::bench {
namespace {

using model::CodePlane;
using ByteVector = std::vector<std::byte>;

/// A weight's panels as f32, and how many values a panel has.
struct Values {
  std::vector<float> values;
  std::size_t panel = 0;
};

std::vector<Values> read_weights(const std::string& path) {
  const auto file = must(model::ModelFile::open(path, operators::validate_node));
  std::ifstream bytes(path, std::ios::binary);
  std::vector<Values> weights;
  for (const model::Weight& weight : file.graph().weights) {
    if (weight.panel_layout.layout != model::WeightLayout::kPanels || weight.panel_layout.dtype != DType::kF32 || weight.always_resident)
      continue;
    Values read{std::vector<float>(weight.bytes.count() / sizeof(float)), weight.panel_bytes.count() / sizeof(float)};
    bytes.seekg(static_cast<std::streamoff>(weight.offset.count()));
    bytes.read(reinterpret_cast<char*>(read.values.data()), static_cast<std::streamsize>(weight.bytes.count()));
    weights.push_back(std::move(read));
  }
  return weights;
}

template <class T, class Convert>
ByteVector converted(const std::vector<float>& values, const Convert& convert) {
  ByteVector raw(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = convert(values[i]);
    std::memcpy(raw.data() + i * sizeof(T), &value, sizeof(T));
  }
  return raw;
}

std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

ByteVector to_i8(const Values& weight) {
  ByteVector raw;
  for (std::size_t at = 0; at < weight.values.size(); at += weight.panel) {
    float scale[16]{};
    for (std::size_t i = 0; i < weight.panel; ++i) scale[i % 16] = std::max(scale[i % 16], std::abs(weight.values[at + i]) / 127);
    const auto* const head = reinterpret_cast<const std::byte*>(scale);
    raw.insert(raw.end(), head, head + sizeof scale);
    raw.insert(raw.end(), 16 * sizeof(float), std::byte{});  // zero points
    for (std::size_t i = 0; i < weight.panel; ++i)
      raw.push_back(static_cast<std::byte>(scale[i % 16] == 0 ? 0 : std::lround(weight.values[at + i] / scale[i % 16])));
  }
  return raw;
}

struct CodedWeight {
  model::Code code;
  std::vector<ByteVector> stretches;
  std::vector<std::size_t> raw_sizes;
};

class Measurement {
 public:
  explicit Measurement(CodePlane plane) : plane_(plane) {}

  void add(const ByteVector& raw) {
    importer::coding::Counts counts{};
    importer::coding::count_symbols(plane_, raw, counts);
    CodedWeight weight{importer::coding::make_code(plane_, counts), {}, {}};
    for (std::size_t at = 0; at < raw.size(); at += model::kCodeBlockBytes) {
      const std::span stretch = std::span(raw).subspan(at, std::min(raw.size() - at, model::kCodeBlockBytes));
      raw_ += stretch.size();
      auto stored = importer::coding::encode(weight.code, stretch);
      stored_ += stored ? stored->size() : stretch.size();
      if (!stored) continue;
      weight.stretches.push_back(*std::move(stored));
      weight.raw_sizes.push_back(stretch.size());
      decoded_ += stretch.size();
    }
    weights_.push_back(std::move(weight));
  }

  void print(const char* name) const {
    if (raw_ == 0) return;
    std::printf("  %-5s %7.1f MB raw  stored %.3f ", name, static_cast<double>(raw_) / 1e6,
                static_cast<double>(stored_) / static_cast<double>(raw_));
    for (const Isa isa : test::isas_here()) std::printf("  %s %5.2f GB/s", std::string(name_of(isa)).c_str(), rate(isa) / 1e9);
    std::printf("\n");
  }

 private:
  double rate(Isa isa) const {
    constexpr int kPasses = 9;
    const auto decoder = std::make_unique<executor::coding::StretchDecoder>(isa);
    ByteVector raw(model::kCodeBlockBytes);
    double best = 1e9;
    for (int pass = 0; pass < kPasses; ++pass) {
      const auto start = std::chrono::steady_clock::now();
      for (const CodedWeight& weight : weights_) {
        decoder->take(weight.code);
        for (std::size_t s = 0; s < weight.stretches.size(); ++s)
          if (!decoder->decode(weight.stretches[s], std::span(raw).first(weight.raw_sizes[s]))) std::abort();
      }
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return static_cast<double>(decoded_) / best;
  }

  CodePlane plane_;
  std::vector<CodedWeight> weights_;
  std::size_t raw_ = 0, stored_ = 0, decoded_ = 0;
};

void measure(const std::string& path) {
  Measurement f32(CodePlane::kRotated32), bf16(CodePlane::kRotated16), f16(CodePlane::kRotated16), i8(CodePlane::kBytes);
  for (const Values& weight : read_weights(path)) {
    f32.add(converted<float>(weight.values, [](float value) { return value; }));
    bf16.add(converted<std::uint16_t>(weight.values, &to_bf16));
    f16.add(converted<_Float16>(weight.values, [](float value) { return static_cast<_Float16>(value); }));
    i8.add(to_i8(weight));
  }
  std::printf("%s\n", path.substr(path.rfind('/') + 1).c_str());
  f32.print("f32");
  bf16.print("bf16");
  f16.print("f16");
  i8.print("i8");
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: sluice-bench-coding MODEL.sluice...\n");
    return 1;
  }
  for (int i = 1; i < argc; ++i) sluice::bench::measure(argv[i]);
  return 0;
}
