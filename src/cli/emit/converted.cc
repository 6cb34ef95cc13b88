#include "src/cli/emit/converted.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>

#include "src/cli/failure.h"
#include "src/cli/sibling.h"

extern char** environ;

namespace sluice::cli {
namespace {

/// Runs a program to its end and gives its exit status.
int run_program(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ); error != 0)
    raise(make_io_error(program, "the program cannot be started; it belongs beside this one", error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) raise(make_io_error(program, "its end cannot be waited for", errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : exit_status(ErrorCode::kInternal);
}

}  // namespace

ConvertedModel::ConvertedModel(const std::string& onnx, const std::vector<std::string>& dims)
    : folder_("sluice-emit"), path_(folder_.file("model.sluice")) {
  // No kernel of emitted code forms sums as winograd4 does, or skips zeros.
  std::vector<std::string> words = {"sluice-convert", onnx, "-o", path_, "--numerics", "exact", "--sparse", "none", "--quiet"};
  for (const std::string& dim : dims) {
    words.push_back("--dim");
    words.push_back(dim);
  }
  const int status = run_program(sibling_program("sluice-convert"), std::move(words));
  if (status != 0) throw Failure(code_of_status(status), onnx + ": was not converted");
}

}  // namespace sluice::cli
