#include "src/operators/generic/table.h"

#include <algorithm>
#include <array>

#include "sluice/core/sort.h"
#include "sluice/operators/plain_family.h"
#include "src/core/build_list.h"

namespace sluice::operators {
namespace {

struct Family {
  std::string_view name;
  std::span<const PlainOperator> (*lines)() noexcept;
};

/// Without lines: left out of this build.
#define SLUICE_FAMILY(family) \
  Family { #family, has_family(#family) ? generic::family##_operators : nullptr }
constexpr Family kFamilies[] = {
    SLUICE_FAMILY(unary),    SLUICE_FAMILY(binary),  SLUICE_FAMILY(cast),      SLUICE_FAMILY(reduce),    SLUICE_FAMILY(select),
    SLUICE_FAMILY(gather),   SLUICE_FAMILY(scatter), SLUICE_FAMILY(normalize), SLUICE_FAMILY(loss),      SLUICE_FAMILY(quantize),
    SLUICE_FAMILY(matrix),   SLUICE_FAMILY(pool),    SLUICE_FAMILY(convolve),  SLUICE_FAMILY(recurrent), SLUICE_FAMILY(attention),
    SLUICE_FAMILY(resize),   SLUICE_FAMILY(image),   SLUICE_FAMILY(signal),    SLUICE_FAMILY(extents),   SLUICE_FAMILY(sized),
    SLUICE_FAMILY(suppress), SLUICE_FAMILY(control), SLUICE_FAMILY(scan),
};
#undef SLUICE_FAMILY

constexpr std::size_t kMaxOperators = 400;

struct Table {
  std::array<const PlainOperator*, kMaxOperators> lines{};
  std::size_t count = 0;

  Table() noexcept {
    for (const Family& family : kFamilies)
      if (family.lines != nullptr)
        for (const PlainOperator& line : family.lines()) lines[count++] = &line;
    sluice::sort(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count),
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

std::string_view family_of(const PlainOperator& op) noexcept {
  for (const Family& family : kFamilies) {
    if (family.lines == nullptr) continue;
    const std::span<const PlainOperator> lines = family.lines();
    if (&op >= lines.data() && &op < lines.data() + lines.size()) return family.name;
  }
  return {};
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
