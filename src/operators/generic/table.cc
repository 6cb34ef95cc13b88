#include "src/operators/generic/table.h"

#include <algorithm>
#include <array>

namespace sluice::operators {
namespace {

using Family = std::span<const PlainOperator> (*)() noexcept;
constexpr Family kFamilies[] = {
    generic::unary_operators,    generic::binary_operators,    generic::cast_operators,      generic::reduce_operators,
    generic::select_operators,   generic::gather_operators,    generic::scatter_operators,   generic::normalize_operators,
    generic::loss_operators,     generic::quantize_operators,  generic::matrix_operators,    generic::pool_operators,
    generic::convolve_operators, generic::recurrent_operators, generic::attention_operators, generic::resize_operators,
    generic::image_operators,    generic::signal_operators,    generic::extents_operators,   generic::sized_operators,
    generic::suppress_operators, generic::control_operators,   generic::scan_operators,
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

}  // namespace sluice::operators
