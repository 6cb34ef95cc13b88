// Assertions for two kinds of broken contract.
//
// SLUICE_CHECK guards what a caller of the library must keep (cheap, always on). It calls a handler that a program may replace; the
// default writes one line to stderr and aborts, because going on would corrupt memory that is not ours.
// SLUICE_DCHECK guards our own reasoning and costs nothing in release builds. Both take the reason as a literal: an assertion without a
// reason is not understood when it fires.
// Untrusted input (model files, plans, ONNX) never reaches either: it is validated into an `Error` first.
#pragma once

namespace sluice {

/// Receives a broken contract. Must not return; if it does, the process aborts.
using CheckHandler = void (*)(const char* file, int line, const char* condition, const char* reason);

/// Replaces the handler for the whole process and returns the former one. `nullptr` restores the default. Thread-safe.
CheckHandler set_check_handler(CheckHandler handler) noexcept;

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* reason) noexcept;
}  // namespace detail

}  // namespace sluice

#define SLUICE_CHECK(condition, reason)                                         \
  do {                                                                          \
    if (!(condition)) [[unlikely]] {                                            \
      ::sluice::detail::check_failed(__FILE__, __LINE__, #condition, (reason)); \
    }                                                                           \
  } while (false)

#if defined(NDEBUG) && !defined(SLUICE_FORCE_DCHECK)
#define SLUICE_DCHECK(condition, reason) \
  do {                                   \
  } while (false)
#else
#define SLUICE_DCHECK(condition, reason) SLUICE_CHECK(condition, reason)
#endif
