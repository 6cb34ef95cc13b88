#include "src/executor/coding/decode_rate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "src/executor/coding/stretch_decoder.h"

namespace sluice::executor::coding {
namespace {

constexpr std::size_t kValues = model::kCodeBlockBytes / sizeof(float);

/// 2.7 bits a value.
model::Code typical_code() { return {model::CodePlane::kRotated32, 112, {64, 192, 512, 1024, 1024, 640, 320, 160, 80, 40, 20, 12, 8}}; }

/// A block of random words, of which a decoder takes as many, and does as much with them, as if an encoder had made them; only at its end
/// it finds that none has.
std::vector<std::byte> random_block() {
  constexpr std::size_t kWordBytes = 12 * 1024;  // of 16 KiB that the table might want at most, twice what it wants
  const std::uint32_t size = model::kCodeStateBytes + kWordBytes + 3 * kValues;
  std::vector<std::byte> block(sizeof size + size);
  std::mt19937 random(1);
  std::generate(block.begin(), block.end(), [&] { return static_cast<std::byte>(random()); });
  std::memcpy(block.data(), &size, sizeof size);
  for (std::size_t lane = 0; lane < model::kCodeLanes; ++lane) {
    const std::uint32_t state = model::kCodeLeastState | static_cast<std::uint32_t>(random());
    std::memcpy(block.data() + sizeof size + lane * sizeof state, &state, sizeof state);
  }
  return block;
}

}  // namespace

double measure_decode_rate() {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 20, kBlocks = 32;
  const auto decoder = std::make_unique<StretchDecoder>();
  const std::vector<std::byte> stored = random_block();
  std::vector<std::byte> raw(model::kCodeBlockBytes);
  decoder->take(typical_code());
  double least = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < kBatches; ++batch) {
    const Clock::time_point start = Clock::now();
    for (int block = 0; block < kBlocks; ++block) static_cast<void>(decoder->decode(stored, raw));
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least > 0 ? kBlocks * kValues / least : 0;
}

}  // namespace sluice::executor::coding
