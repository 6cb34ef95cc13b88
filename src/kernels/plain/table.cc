#include "src/kernels/plain/table.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {
namespace {

using Family = std::span<const GenericKernel> (*)() noexcept;
constexpr Family kFamilies[] = {
    plain::unary_kernels,    plain::binary_kernels,  plain::cast_kernels,      plain::reduce_kernels,    plain::select_kernels,
    plain::gather_kernels,   plain::scatter_kernels, plain::normalize_kernels, plain::loss_kernels,      plain::quantize_kernels,
    plain::matrix_kernels,   plain::pool_kernels,    plain::convolve_kernels,  plain::recurrent_kernels, plain::attention_kernels,
    plain::resize_kernels,   plain::image_kernels,   plain::signal_kernels,    plain::extents_kernels,   plain::sized_kernels,
    plain::suppress_kernels, plain::control_kernels, plain::scan_kernels,
};

constexpr std::size_t kMaxOperators = 400;

/// The kernels in the order of their operators, which is that of the numbers.
struct Table {
  std::array<const GenericKernel*, kMaxOperators> kernels{};

  Table() noexcept {
    const auto operators = plain_operators();
    for (const Family family : kFamilies)
      for (const GenericKernel& kernel : family()) {
        const auto is_its = [&](const PlainOperator* op) { return op->name == kernel.name; };
        kernels[static_cast<std::size_t>(std::find_if(operators.begin(), operators.end(), is_its) - operators.begin())] = &kernel;
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
