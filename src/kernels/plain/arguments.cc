// Arguments that come at run time.
#include <bit>

#include "src/kernels/plain/elements.h"

namespace sluice::kernels {

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
