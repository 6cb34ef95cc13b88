// Any processor: products one by one, in vectors as the compiler likes.
#include "src/kernels/integer/tables.h"
#include "src/kernels/integer/target.h"

namespace sluice::kernels::integer {
namespace {

#include "src/kernels/integer/portable-inl.h"

struct V : Portable {
  static constexpr int kRows = 4;

  struct Values {
    std::int32_t of[4];
  };
  using Weights = I8x16;
  static SLUICE_INLINE Weights weights(const std::int8_t* from) { return load_as<Weights>(from); }
  static SLUICE_INLINE Values values(const std::uint8_t* from) { return {{from[0], from[1], from[2], from[3]}}; }
  /// Products are below 2^15 and sums wrap round, which only unsigned ones may.
  static SLUICE_INLINE Sums wrap(Sums sums, const std::int32_t (&products)[4]) {
    for (int lane = 0; lane < 4; ++lane)
      sums[lane] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[lane]) + static_cast<std::uint32_t>(products[lane]));
    return sums;
  }
  static SLUICE_INLINE Sums dot(Sums sums, const Values& values, Weights weights) {
    std::int32_t products[4] = {};
    for (int i = 0; i < 16; ++i) products[i / 4] += values.of[i % 4] * weights[i];
    return wrap(sums, products);
  }
  static SLUICE_INLINE ByteVector values_of(ByteVector fours) { return fours; }
  static SLUICE_INLINE Sums dot_exact(Sums sums, ByteVector values, Weights weights) {
    std::int32_t products[4] = {};
    for (int i = 0; i < 16; ++i) products[i / 4] += values[i] * weights[i];
    return wrap(sums, products);
  }
};

#include "src/kernels/integer/inner-inl.h"

}  // namespace

extern const TileTable kScalarTable = table_for(DotIsa::kScalar);

}  // namespace sluice::kernels::integer
