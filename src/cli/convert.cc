#include "src/cli/convert.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "src/cli/failure.h"

namespace sluice::cli {

std::string tool_path(const char* name) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  program.erase(program.rfind('/') + 1);
  return program + name;
}

void become_tool(std::string name, char** arguments) {
  const std::string program = tool_path(name.c_str());
  arguments[0] = name.data();
  ::execv(program.c_str(), arguments);
  raise(make_io_error(program, "the program cannot be started; it belongs beside this one", errno));
}

}  // namespace sluice::cli
