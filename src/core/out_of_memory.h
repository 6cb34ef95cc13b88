// The border for failed allocations: inside the library `operator new` throws and frames unwind; at the entry points that becomes an error.
//
//     Result<Plan> load_plan(const std::string& path) {
//       return or_out_of_memory(path, [&] { return load_inside(path); });
//     }
//
// The functions of engine, importer, planner, plan files, models and executor that a user of the library calls are such entry points
// (docs/adr/0014-failed-allocations.md), so an error of an inner one comes out of an outer one as it is. A body must leave all as it was
// when it throws: what it changes, it changes after its last allocation, or undoes.
//
// A build without SLUICE_EXCEPTIONS has no border: there `operator new` must end the process where it fails, as src/cli/memory_end.h does.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "sluice/core/error.h"

namespace sluice {

/// The error of a failed allocation.
Error out_of_memory(std::string_view subject) noexcept;
/// Behaves as if an allocation had failed here: one failed in another thread, or one that does not throw.
[[noreturn]] inline void raise_out_of_memory() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  std::terminate();
#endif
}

/// `body()`, or the error of the allocation that failed in it. `subject` is seen after `body` is over.
template <class Body>
auto or_out_of_memory(std::string_view subject, Body&& body) -> decltype(body()) {
#if defined(__cpp_exceptions)
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory(subject));
  }
#else
  static_cast<void>(subject);
  return std::forward<Body>(body)();
#endif
}

}  // namespace sluice
