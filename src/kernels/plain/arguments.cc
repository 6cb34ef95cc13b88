// The words of PlainOperator::arguments, and arguments that come at run time.
#include <algorithm>
#include <bit>
#include <charconv>

#include "src/kernels/plain/elements.h"

namespace sluice::kernels {
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

bool LateArguments::add(std::int64_t value) noexcept {
  if (count_ == values_.size()) return false;
  values_[count_++] = value;
  return true;
}

PlainRefusal LateArguments::read(const PlainNode& node) noexcept {
  std::string_view list = node.op().arguments;
  std::size_t at = 0;
  for (PlainArgument a = next_argument(list); a.type != '\0'; a = next_argument(list), ++at) {
    if (a.input < 0 || !node.has(a.input)) {
      const auto stated = node.list(at);
      bool fits = add(static_cast<std::int64_t>(stated.size()));
      for (const std::int64_t value : stated) fits = fits && add(value);
      if (!fits) return "it has more arguments than a run takes";
      continue;
    }
    const PlainTensor& from = node.in(a.input);
    bool fits = add(from.count());
    const bool real = a.type == 'f' || a.type == 'F' || a.type == 'r';
    for (std::int64_t i = 0; fits && i < from.count(); ++i)
      fits = add(real ? std::bit_cast<std::int64_t>(plain::real_at(from, i)) : plain::integer_at(from, i));
    if (!fits) return "it has more arguments than a run takes";
  }
  return nullptr;
}

}  // namespace sluice::kernels
