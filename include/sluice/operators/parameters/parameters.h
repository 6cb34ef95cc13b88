// Parameters: what a kernel must know of its node, as one plain value. `resolve` (kernels/kernel.h) fills it from the graph once; inner
// loops, which see no graph, read it at every step; `emit` prints the same values as code.
//
// Each kind of kernel has a struct of its own, in the header of its family: weighted.h, elementwise.h, movement.h, transformer.h, plain.h.
//
// Invariants: they include `core` only; they are trivially copyable and own nothing (PlainParameters points at the arguments of its node,
// so a graph outlives what was resolved from it); their size is bounded, because tables count in a budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sluice/core/check.h"

namespace sluice::operators {

/// The size of the largest kind, in whole words.
inline constexpr std::size_t kMostParameterBytes = 216;

template <class T>
inline constexpr bool kIsParameters = std::is_trivially_copyable_v<T>&& std::is_standard_layout_v<T> && sizeof(T) <= kMostParameterBytes &&
                                      alignof(T) <= alignof(std::int64_t);

/// A value of any one kind.
class Parameters {
 public:
  Parameters() noexcept = default;
  template <class T>
  requires(!std::is_same_v<T, Parameters>) explicit Parameters(const T& value) noexcept : size_(sizeof(T)) {
    static_assert(kIsParameters<T>);
    std::memcpy(bytes_, &value, sizeof value);
  }

  template <class T>
  const T& as() const noexcept {
    SLUICE_DCHECK(sizeof(T) <= size_, "a kernel reads the kind of parameters that its resolve made");
    return *reinterpret_cast<const T*>(bytes_);
  }
  const std::byte* data() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return size_; }

 private:
  alignas(std::int64_t) std::byte bytes_[kMostParameterBytes];
  std::size_t size_ = 0;
};

}  // namespace sluice::operators
