// What every program's `main` does round its work: what gives up leaves with a line on stderr, `<program>: <text>`, and the exit status of
// docs/errors.md.
#pragma once

namespace sluice::cli {

/// Runs `work`, whose result is the exit status where nothing is thrown. Also prepares for the end of memory (memory_end.h).
int guarded_main(const char* program, int (*work)(int, char**), int argc, char** argv) noexcept;

}  // namespace sluice::cli
