#include <unistd.h>

#include <array>
#include <cerrno>

#include "src/cli/commands.h"
#include "src/cli/failure.h"

namespace sluice::cli {

void convert(char** arguments) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  std::string program(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  program.erase(program.rfind('/') + 1);
  program += "sluice-convert";
  std::string name = "sluice-convert";
  arguments[0] = name.data();
  ::execv(program.c_str(), arguments);
  raise(make_io_error(program, "the importer cannot be started; it belongs beside this program", errno));
}

}  // namespace sluice::cli
