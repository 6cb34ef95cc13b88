#include "src/kernels/plain/table.h"

#include <algorithm>
#include <array>

namespace sluice::kernels {
namespace {

using Family = std::span<const PlainOperator> (*)() noexcept;
constexpr Family kFamilies[] = {
    plain::unary_operators,    plain::binary_operators,  plain::cast_operators,      plain::reduce_operators,    plain::select_operators,
    plain::gather_operators,   plain::scatter_operators, plain::normalize_operators, plain::loss_operators,      plain::quantize_operators,
    plain::matrix_operators,   plain::pool_operators,    plain::convolve_operators,  plain::recurrent_operators, plain::attention_operators,
    plain::resize_operators,   plain::image_operators,   plain::signal_operators,    plain::extents_operators,   plain::sized_operators,
    plain::suppress_operators, plain::control_operators, plain::scan_operators,
};

constexpr std::size_t kMaxOperators = 400;

struct Table {
  std::array<const PlainOperator*, kMaxOperators> lines{};
  std::size_t count = 0;

  Table() noexcept {
    for (const Family family : kFamilies)
      for (const PlainOperator& line : family()) lines[count++] = &line;
    std::sort(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count),
              [](const PlainOperator* a, const PlainOperator* b) { return a->number < b->number; });
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
  const auto lines = plain_operators();
  const auto found =
      std::lower_bound(lines.begin(), lines.end(), number, [](const PlainOperator* line, std::uint16_t n) { return line->number < n; });
  return found != lines.end() && (*found)->number == number ? *found : nullptr;
}

const PlainOperator* find_plain(std::string_view name) noexcept {
  for (const PlainOperator* line : plain_operators())
    if (line->name == name) return line;
  return nullptr;
}

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
