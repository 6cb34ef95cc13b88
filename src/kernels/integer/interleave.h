// Four vectors of sixteen bytes, lane by lane: how weights of the class int8 lie, four values of a lane after each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::kernels::integer {

using Sixteen = std::uint8_t __attribute__((vector_size(16)));

inline Sixteen load_lanes(const std::int8_t* from) noexcept {
  Sixteen lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// Puts the bytes of four vectors side by side, a lane's four after each other; `j`th quarter of the lanes to quarters[j].
inline void interleave(const Sixteen (&t)[4], std::byte* const (&quarters)[4]) noexcept {
  const auto low = [](Sixteen a, Sixteen b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto high = [](Sixteen a, Sixteen b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  };
  // Twice: of 0 2 and 1 3, then of the results, gives 0 1 2 3.
  const Sixteen low02 = low(t[0], t[2]), low13 = low(t[1], t[3]), high02 = high(t[0], t[2]), high13 = high(t[1], t[3]);
  const Sixteen all[4] = {low(low02, low13), high(low02, low13), low(high02, high13), high(high02, high13)};
  for (int j = 0; j < 4; ++j) std::memcpy(quarters[j], &all[j], sizeof all[j]);
}

}  // namespace sluice::kernels::integer
