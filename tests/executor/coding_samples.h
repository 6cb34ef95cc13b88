// Bytes to code: trained values look like normal ones, and other bytes must come back as well.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "sluice/core/cpu.h"
#include "sluice/model/code.h"

namespace sluice::test {

/// Normal values of a plane's type: f32, bf16, or i8 with the largest at three and a half deviations.
inline std::vector<std::byte> draw_normal(model::CodePlane plane, std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> raw(bytes);
  const std::size_t size = model::value_bytes_of(plane);
  for (std::size_t at = 0; at + size <= bytes; at += size) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;  // the same on every standard library
    const auto value = static_cast<float>(0.03 * sum);
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (plane == model::CodePlane::kRotated16) bits >>= 16;
    if (plane == model::CodePlane::kBytes)
      bits = static_cast<std::uint32_t>(std::clamp(static_cast<int>(std::lround(sum / 3.5 * 127)), -127, 127));
    std::memcpy(raw.data() + at, &bits, size);
  }
  return raw;
}

/// The instruction sets that this processor has.
inline std::vector<Isa> isas_here() {
  if (best_isa() == Isa::kNeon) return {Isa::kScalar, Isa::kNeon};
  std::vector<Isa> isas{Isa::kScalar};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512})
    if (isa <= best_isa()) isas.push_back(isa);
  return isas;
}

}  // namespace sluice::test
