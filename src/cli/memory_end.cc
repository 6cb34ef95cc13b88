#include "src/cli/memory_end.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <typeinfo>

#include "sluice/core/error.h"

namespace sluice::cli {
namespace {

const char* program_name = "sluice";  // until `main` says which

/// Without a stream, which would want a buffer; -1 where the system does not say.
long resident_pages() noexcept {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[128];
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return -1;
  text[length] = '\0';
  char* second = text;
  std::strtol(text, &second, 10);  // the first is of addresses
  return std::strtol(second, nullptr, 10);
}

[[noreturn]] void leave() {
  say_out_of_memory();
  ::_exit(exit_status(ErrorCode::kOutOfMemory));
}

std::terminate_handler handler_before = &std::abort;

/// Memory ran out where nothing may be thrown, such as in a destructor of a JSON value, or for the exception itself, which then does not
/// exist.
[[noreturn]] void terminated() {
  const std::type_info* const thrown = abi::__cxa_current_exception_type();
  if (thrown == nullptr || *thrown == typeid(std::bad_alloc)) leave();
  handler_before();
  std::abort();
}

/// Before any other static initialiser (101 is the first priority that is not the system's): those of the option parser allocate, and what
/// they throw no `main` catches.
[[gnu::constructor(101)]] void begin() noexcept { handler_before = std::set_terminate(&terminated); }

}  // namespace

void end_where_memory_ends(const char* program) noexcept {
  program_name = program;
#if defined(SLUICE_NO_EXCEPTIONS)
  std::set_new_handler(&leave);
#endif
}

void say_out_of_memory() noexcept {
  char text[160];
  const long held = resident_pages();
  int length = 0;
  if (held < 0) {
    length = std::snprintf(text, sizeof text, "%s: out of memory\n", program_name);
  } else {
    length = std::snprintf(text, sizeof text, "%s: out of memory: the system gave no more to this process, which holds %ld KiB\n",
                           program_name, held * (::sysconf(_SC_PAGESIZE) / 1024));
  }
  if (length > 0) static_cast<void>(::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) == 0);
}

}  // namespace sluice::cli
