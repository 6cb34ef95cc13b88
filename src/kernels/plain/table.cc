#include "src/kernels/plain/table.h"

#include <algorithm>
#include <array>

#include "src/core/build_list.h"

namespace sluice::kernels {
namespace {

using Family = std::span<const GenericKernel> (*)() noexcept;

/// Null: left out of this build, as the operators are (src/operators/generic/table.cc).
#define SLUICE_FAMILY(family) has_family(#family) ? plain::family##_kernels : nullptr
constexpr Family kFamilies[] = {
    SLUICE_FAMILY(unary),    SLUICE_FAMILY(binary),  SLUICE_FAMILY(cast),      SLUICE_FAMILY(reduce),    SLUICE_FAMILY(select),
    SLUICE_FAMILY(gather),   SLUICE_FAMILY(scatter), SLUICE_FAMILY(normalize), SLUICE_FAMILY(loss),      SLUICE_FAMILY(quantize),
    SLUICE_FAMILY(matrix),   SLUICE_FAMILY(pool),    SLUICE_FAMILY(convolve),  SLUICE_FAMILY(recurrent), SLUICE_FAMILY(attention),
    SLUICE_FAMILY(resize),   SLUICE_FAMILY(image),   SLUICE_FAMILY(signal),    SLUICE_FAMILY(extents),   SLUICE_FAMILY(sized),
    SLUICE_FAMILY(suppress), SLUICE_FAMILY(control), SLUICE_FAMILY(scan),
};
#undef SLUICE_FAMILY

constexpr std::size_t kMaxOperators = 400;

/// The kernels in the order of their operators, which is that of the numbers.
struct Table {
  std::array<const GenericKernel*, kMaxOperators> kernels{};

  Table() noexcept {
    const auto operators = plain_operators();
    for (const Family family : kFamilies) {
      if (family == nullptr) continue;
      for (const GenericKernel& kernel : family()) {
        const auto is_its = [&](const PlainOperator* op) { return op->name == kernel.name; };
        kernels[static_cast<std::size_t>(std::find_if(operators.begin(), operators.end(), is_its) - operators.begin())] = &kernel;
      }
    }
  }
};

}  // namespace

const GenericKernel& generic_kernel(const PlainOperator& op) noexcept {
  static const Table table;
  const auto operators = plain_operators();
  const auto found = std::lower_bound(operators.begin(), operators.end(), op.number,
                                      [](const PlainOperator* line, std::uint16_t number) { return line->number < number; });
  return *table.kernels[static_cast<std::size_t>(found - operators.begin())];
}

}  // namespace sluice::kernels
