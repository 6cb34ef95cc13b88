// A library's error becomes a Python exception: `sluice.Error`, with the code's name, what was needed and what was found.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "sluice/core/error.h"

namespace sluice::python {

/// Raises sluice.Error, which the package defines (sluice/__init__.py). Must hold the interpreter's lock.
[[noreturn]] void raise(const Error& error);

template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void unwrap(Status status) {
  if (!status) raise(status.error());
}

/// "24MiB", a number of bytes, or None for no limit.
std::uint64_t bytes_of(const pybind11::object& size, const char* what);

}  // namespace sluice::python
