#include "src/cli/guarded_main.h"

#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "src/cli/failure.h"
#include "src/cli/memory_end.h"

namespace sluice::cli {

int guarded_main(const char* program, int (*work)(int, char**), int argc, char** argv) noexcept {
  constexpr int kInternalStatus = 7;
  end_where_memory_ends(program);
  try {
    return work(argc, argv);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", program, failure.what());
    return exit_status(failure.code());
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
  } catch (const std::system_error& error) {  // what fmt throws when stdout is full or closed
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return exit_status(ErrorCode::kIo);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\n", program, error.what());
  }
  return kInternalStatus;
}

}  // namespace sluice::cli
