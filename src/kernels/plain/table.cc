#include "src/kernels/plain/table.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {
namespace {

struct Family {
  std::span<const PlainOperator> (*operators)() noexcept;
  std::span<const GenericKernel> (*kernels)() noexcept;
};
constexpr Family kFamilies[] = {
    {plain::unary_operators, plain::unary_kernels},         {plain::binary_operators, plain::binary_kernels},
    {plain::cast_operators, plain::cast_kernels},           {plain::reduce_operators, plain::reduce_kernels},
    {plain::select_operators, plain::select_kernels},       {plain::gather_operators, plain::gather_kernels},
    {plain::scatter_operators, plain::scatter_kernels},     {plain::normalize_operators, plain::normalize_kernels},
    {plain::loss_operators, plain::loss_kernels},           {plain::quantize_operators, plain::quantize_kernels},
    {plain::matrix_operators, plain::matrix_kernels},       {plain::pool_operators, plain::pool_kernels},
    {plain::convolve_operators, plain::convolve_kernels},   {plain::recurrent_operators, plain::recurrent_kernels},
    {plain::attention_operators, plain::attention_kernels}, {plain::resize_operators, plain::resize_kernels},
    {plain::image_operators, plain::image_kernels},         {plain::signal_operators, plain::signal_kernels},
    {plain::extents_operators, plain::extents_kernels},     {plain::sized_operators, plain::sized_kernels},
    {plain::suppress_operators, plain::suppress_kernels},   {plain::control_operators, plain::control_kernels},
    {plain::scan_operators, plain::scan_kernels},
};

constexpr std::size_t kMaxOperators = 400;

struct Table {
  std::array<const PlainOperator*, kMaxOperators> lines{};
  std::array<const GenericKernel*, kMaxOperators> kernels{};  // of the lines, in their order
  std::size_t count = 0;

  Table() noexcept {
    for (const Family& family : kFamilies)
      for (const PlainOperator& line : family.operators()) lines[count++] = &line;
    std::sort(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count),
              [](const PlainOperator* a, const PlainOperator* b) { return a->number < b->number; });
    for (const Family& family : kFamilies)
      for (const GenericKernel& kernel : family.kernels()) kernels[place_of(kernel.name)] = &kernel;
  }

  std::size_t place_of(std::string_view name) const noexcept {
    std::size_t place = 0;
    while (place < count && lines[place]->name != name) ++place;
    return place;
  }
  std::size_t place_of(std::uint16_t number) const noexcept {
    const auto first = lines.begin(), last = first + static_cast<std::ptrdiff_t>(count);
    return static_cast<std::size_t>(
        std::lower_bound(first, last, number, [](const PlainOperator* line, std::uint16_t n) { return line->number < n; }) - first);
  }
};

const Table& table() noexcept {
  static const Table made;
  return made;
}

/// The number of arguments in a list such as "axis:i=0 keepdims:i=1".
std::size_t words(std::string_view text) noexcept {
  std::size_t count = 0;
  bool inside = false;
  for (const char c : text) {
    count += c != ' ' && !inside ? 1 : 0;
    inside = c != ' ';
  }
  return count;
}

}  // namespace

std::span<const PlainOperator* const> plain_operators() noexcept { return {table().lines.data(), table().count}; }

const PlainOperator* find_plain(std::uint16_t number) noexcept {
  const std::size_t place = table().place_of(number);
  return place < table().count && table().lines[place]->number == number ? table().lines[place] : nullptr;
}

const PlainOperator* find_plain(std::string_view name) noexcept {
  const std::size_t place = table().place_of(name);
  return place < table().count ? table().lines[place] : nullptr;
}

const GenericKernel& generic_kernel(const PlainOperator& op) noexcept { return *table().kernels[table().place_of(op.number)]; }

PlainRefusal infer_plain(const PlainNode& node, PlainTensor& out) noexcept {
  if (node.argument_count() != words(node.op().arguments)) return "its arguments are not those of the operator";
  if (node.result() >= node.op().outputs) return "it has no such output";
  const PlainRefusal refusal = node.op().infer(node, out);
  if (refusal != nullptr) return refusal;
  const auto made = Shape::make(out.shape.dims());
  if (!made) return "its output's shape is negative or overflows";
  return nullptr;
}

}  // namespace sluice::kernels
