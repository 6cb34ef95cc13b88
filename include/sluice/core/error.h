// Errors are values. Every fallible function returns `Result<T>`, or `Status` when there is nothing to return.
//
// `Error` is trivially copyable and holds numbers and a short name, not prose, so that it can be made without allocating, from a loader
// thread or when memory has run out. `to_string` makes the text when somebody wants to read it:
//     budget too small: resnet152.sluice: the smallest budget that works is 11534336 B, 8388608 B were given
//
// Untrusted input becomes an Error. A broken contract of a caller becomes a SLUICE_CHECK (core/check.h). No exception leaves the library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace sluice {

/// The kinds of failure. `exit_status` says what the command-line tool returns for it.
enum class ErrorCode : std::uint16_t {
  kInvalidArgument,     // a call or an option makes no sense                             exit 1
  kInvalidModel,        // an ONNX or model file is malformed                             exit 2
  kChecksumMismatch,    // bytes of a model file are not those that were written          exit 2
  kUnsupportedVersion,  // a model or plan file of a format this build does not know      exit 2
  kInvalidPlan,         // a plan breaks an invariant or belongs to another model         exit 2
  kUnsupported,         // well-formed, but an operator, type or form we do not run       exit 3
  kBudgetTooSmall,      // needed: the smallest budget that works; available: what was given  exit 4
  kIo,                  // the operating system refused; os_error is its errno            exit 5
  kFileChanged,         // the file was replaced or cut while in use                      exit 5
  kCancelled,           // the caller asked to stop                                       exit 5
  kOutputMismatch,      // outputs differ from the expected ones                          exit 6
  kOutOfMemory,         // the system gave no memory                                      exit 7
  kInternal,            // our own mistake                                                exit 7
  kWrongKey,            // an encrypted model, and its key was not given or is another    exit 8
};

/// The words for a code, such as "budget too small".
std::string_view name_of(ErrorCode code) noexcept;
int exit_status(ErrorCode code) noexcept;

/// One failure: what, where, how much.
struct Error {
  static constexpr std::size_t kSubjectCapacity = 120;

  ErrorCode code = ErrorCode::kInternal;
  std::int32_t os_error = 0;    // errno of a failed system call, else 0
  const char* reason = "";      // a string literal: which rule was broken, in a full clause
  std::uint64_t needed = 0;     // with `has_numbers`: the number that was required
  std::uint64_t available = 0;  // with `has_numbers`: the number that was found
  bool has_numbers = false;
  bool at_most = false;                               // `needed` is the most that there may be
  std::array<char, kSubjectCapacity> subject_text{};  // the file, node, tensor or option concerned; cut if longer

  std::string_view subject() const noexcept { return std::string_view(subject_text.data()); }
  /// "<code>: <subject>: <reason> (needed N, found M): <errno text>", parts that are absent left out; of a budget as above, of a limit
  /// "(at most N, found M)".
  std::string to_string() const;
};

/// Makes an error. `reason` must be a string literal (it is kept by pointer).
Error make_error(ErrorCode code, std::string_view subject, const char* reason) noexcept;
/// Makes the same error with two numbers: what was needed and what was found.
Error make_error(ErrorCode code, std::string_view subject, const char* reason, std::uint64_t needed, std::uint64_t available) noexcept;
/// Makes the same error with two numbers: the most that is allowed and what was found.
Error make_limit_error(ErrorCode code, std::string_view subject, const char* reason, std::uint64_t most, std::uint64_t found) noexcept;
/// An I/O error with the errno of the failed call.
Error make_io_error(std::string_view subject, const char* reason, int os_error) noexcept;

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// An error on its way to a caller: `Result`s of all types are made from it, which copies the error once.
struct PassedError {
  const Error& error;
  operator const Error&() const noexcept { return error; }
};

inline tl::unexpected<Error> fail(const Error& error) noexcept { return tl::unexpected<Error>(error); }
inline tl::unexpected<Error> fail(ErrorCode code, std::string_view subject, const char* reason) noexcept {
  return tl::unexpected<Error>(make_error(code, subject, reason));
}

}  // namespace sluice

/// Returns the error of a `Result` or `Status` expression from the enclosing function, if it has one.
#define SLUICE_RETURN_IF_ERROR(expression)                                                          \
  do {                                                                                              \
    if (auto sluice_status = (expression); !sluice_status) {                                        \
      return ::tl::unexpected<::sluice::PassedError>(::sluice::PassedError{sluice_status.error()}); \
    }                                                                                               \
  } while (false)

#define SLUICE_CONCAT_(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_(a, b)
/// `SLUICE_ASSIGN_OR_RETURN(auto x, f());` declares x from the value of f() or returns its error.
#define SLUICE_ASSIGN_OR_RETURN(declaration, expression)                                                                    \
  auto SLUICE_CONCAT(sluice_result_, __LINE__) = (expression);                                                              \
  if (!SLUICE_CONCAT(sluice_result_, __LINE__))                                                                             \
    return ::tl::unexpected<::sluice::PassedError>(::sluice::PassedError{SLUICE_CONCAT(sluice_result_, __LINE__).error()}); \
  declaration = std::move(*SLUICE_CONCAT(sluice_result_, __LINE__))
