#include "src/cli/guarded_main.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "src/cli/failure.h"
#include "src/cli/memory_end.h"
#include "src/core/stack.h"

namespace sluice::cli {
namespace {

/// A file that is opened where a standard stream is closed gets that stream's number, and what the program prints would go into the file.
/// Results for a closed stdout fail as before, and that is told; warnings for a closed stderr are not wanted, and no error.
void occupy_standard_streams() noexcept {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));  // gets the lowest number that is free
}

}  // namespace

int guarded_main(const char* program, int (*work)(int, char**), int argc, char** argv) noexcept {
  constexpr int kInternalStatus = 7;
  // Commands take less than 64 KiB (`report` of any model ends well with a stack of that size); a run asks for more by itself.
  constexpr Bytes kLeastStackOfPrograms{80 * 1024};
  occupy_standard_streams();
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is a write that fails, which is told
  end_where_memory_ends(program);
  try {
    if (!stack_has(kLeastStackOfPrograms.count()))
      throw Failure(ErrorCode::kInvalidArgument, "the stack is limited to less than 80 KiB, which this program wants (ulimit -s)");
    return work(argc, argv);
  } catch (const Failure& failure) {
    complain(program, failure.what());
    return exit_status(failure.code());
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
  } catch (const std::system_error& error) {  // what fmt throws when stdout is full or closed
    complain(program, error.what());
    return exit_status(ErrorCode::kIo);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\n", program, error.what());
  }
  return kInternalStatus;
}

}  // namespace sluice::cli
