#include <unistd.h>

#include <cerrno>

#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/sibling.h"

namespace sluice::cli {

void start_tool(const char* name, char** arguments) {
  const std::string program = sibling_program(name);
  std::string first = name;
  arguments[0] = first.data();
  ::execv(program.c_str(), arguments);
  raise(make_io_error(program, "the program cannot be started; it belongs beside this one", errno));
}

}  // namespace sluice::cli
