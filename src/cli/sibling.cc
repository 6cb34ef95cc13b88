#include "src/cli/sibling.h"

#include <unistd.h>

#include <array>

namespace sluice::cli {

std::string sibling_program(const std::string& name) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  program.erase(program.rfind('/') + 1);
  return program + name;
}

}  // namespace sluice::cli
