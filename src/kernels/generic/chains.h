// How sums of products are formed: one chain of fused multiply-adds each, in the order of k. Every product of the exact class is such a
// chain, whoever computes it: the reference, the long tail, and the fast kernels, which hold many chains at once.
//
//     sum = fma(x[0], w[0], sum), fma(x[1], w[1], ...), ...         x and w may lie any number of places apart
//
// `chain` is the definition. `chains` gives the same bits for several outputs of one x, computed side by side, because one chain waits for
// its own last addition and not for another's.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::kernels::generic {

/// Values that lie `step` places apart.
struct Values {
  const float* at = nullptr;
  std::int64_t step = 1;
};

inline float chain(float sum, Values x, Values w, std::int64_t depth) noexcept {
  for (std::int64_t k = 0; k < depth; ++k) sum = std::fma(x.at[k * x.step], w.at[k * w.step], sum);
  return sum;
}

/// `count` chains of `depth` products each: sum j goes on from sums[j * sum_step], with weights that begin `row_step` places behind those
/// of the one before.
struct Chains {
  Values x, w;
  std::int64_t depth = 0;
  std::int64_t count = 0;
  std::int64_t row_step = 0;
  float* sums = nullptr;
  std::int64_t sum_step = 1;
};

/// On the instruction set of this process, which does not change the bits.
void run(const Chains& chains) noexcept;

}  // namespace sluice::kernels::generic
