// A node of the long tail and the words of its definition: places in lists of numbers.
#include <bit>
#include <charconv>

#include "sluice/operators/generic/elements.h"

namespace sluice::operators {
namespace {

std::string_view until(std::string_view text, char stop) noexcept { return text.substr(0, text.find(stop)); }

}  // namespace

PlainArgument next_argument(std::string_view& list) noexcept {
  PlainArgument made;
  list.remove_prefix(std::min(list.size(), list.find_first_not_of(' ')));
  const std::string_view word = until(list, ' ');
  list.remove_prefix(word.size());
  if (word.empty() || word == "#") {
    made.type = word.empty() ? '\0' : '#';
    return made;
  }
  made.name = until(word, ':');
  std::string_view rest = word.substr(made.name.size() + 1);
  made.type = rest[0];
  rest.remove_prefix(1);
  if (!rest.empty() && rest[0] == '@') {
    rest.remove_prefix(1);
    std::from_chars(rest.data(), rest.data() + rest.size(), made.input);
    rest.remove_prefix(until(rest, '=').size());
  }
  if (!rest.empty() && rest[0] == '=') made.otherwise = rest.substr(1);
  return made;
}

bool has_late_arguments(const PlainOperator& op, std::uint32_t present) noexcept {
  std::string_view list = op.arguments;
  for (PlainArgument a = next_argument(list); a.type != '\0'; a = next_argument(list))
    if (a.input >= 0 && (present >> a.input & 1u) != 0) return true;
  return false;
}

bool PlainNode::late() const noexcept { return has_late_arguments(op_, form_.present); }

bool needs_bound(const PlainOperator& op, std::uint32_t present) noexcept { return op.sized_by_values || has_late_arguments(op, present); }

const PlainTensor& PlainNode::in(int input) const noexcept {
  const auto before = static_cast<std::size_t>(std::popcount(form_.present & ((1u << input) - 1u)));
  return inputs_[before];
}

std::size_t PlainNode::argument_count() const noexcept {
  std::size_t count = 0;
  const auto a = form_.arguments;
  for (std::size_t at = 0; at < a.size(); at += static_cast<std::size_t>(a[at]) + 1) ++count;
  return count;
}

std::span<const std::int64_t> PlainNode::list(std::size_t argument) const noexcept {
  const auto a = form_.arguments;
  std::size_t at = 0;
  for (; at < a.size() && argument > 0; --argument) at += static_cast<std::size_t>(a[at]) + 1;
  return at < a.size() ? a.subspan(at + 1, static_cast<std::size_t>(a[at])) : std::span<const std::int64_t>();
}

std::int64_t PlainNode::integer(std::size_t argument) const noexcept {
  const auto values = list(argument);
  return values.empty() ? 0 : values[0];
}

double PlainNode::real(std::size_t argument, std::size_t at) const noexcept {
  const auto values = list(argument);
  return at < values.size() ? std::bit_cast<double>(values[at]) : 0.0;
}

bool within(const Shape& extents, const Planned& planned) noexcept {
  if (extents.rank() != planned.shape.rank()) return false;
  for (int axis = 0; axis < extents.rank(); ++axis) {
    const bool may_be_shorter = (planned.bounded >> axis & 1u) != 0;
    if (extents[axis] > planned.shape[axis] || (extents[axis] < planned.shape[axis] && !may_be_shorter)) return false;
  }
  return true;
}

PlainRefusal infer_bound(const PlainNode& node, PlainTensor& out) noexcept {
  if (!node.op().sized_by_values && !node.late()) return infer_plain(node, out);
  std::uint8_t axes = 0;
  return node.op().bound == nullptr ? "an argument of it must be constant" : node.op().bound(node, out, axes);
}

}  // namespace sluice::operators
