#include "src/core/static_program.h"

#include <link.h>
#include <sys/auxv.h>

#include <algorithm>

namespace sluice {

bool statically_linked() noexcept {
  // A program that the system hands to a dynamic linker names it in a header of its own.
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const unsigned long count = getauxval(AT_PHNUM);
  if (headers == nullptr) return false;
  return std::none_of(headers, headers + count, [](const ElfW(Phdr) & header) { return header.p_type == PT_INTERP; });
}

}  // namespace sluice
