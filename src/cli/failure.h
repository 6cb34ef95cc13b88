// How a command gives up: an exit status and a text for the person at the terminal.
//
// The library's errors are values; inside the command-line tool they become this exception at the point of call (`unwrap`), because every
// command does the same with them: stop, say `sluice: <text>`, leave with the status. main.cc catches; nothing else does.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/core/error.h"

namespace sluice::cli {

class Failure : public std::runtime_error {
 public:
  Failure(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// A code that leads to this exit status, of those that a program of ours may leave with; kInternal for any other.
ErrorCode code_of_status(int status) noexcept;

/// `program: text` on stderr. Words and names in it are others': what moves a terminal's cursor is shown as \x1b, and of a text as long as
/// a file its beginning and its end are. Allocates nothing.
void complain(const char* program, std::string_view text) noexcept;

/// The size in KiB or MiB, rounded up: a budget that is typed from this text is not refused.
std::string rounded_up(std::uint64_t bytes);

/// The text of an error as the tool prints it. A refused budget is told in bytes and MiB, so that it can be typed back.
std::string describe(const Error& error);

[[noreturn]] inline void raise(const Error& error) { throw Failure(error.code, describe(error)); }

template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void unwrap(Status status) {
  if (!status) raise(status.error());
}

}  // namespace sluice::cli
