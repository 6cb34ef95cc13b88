// Names for things that are numbered. Each is its own type, so that a NodeId cannot be passed where a TensorId belongs.
//
// An id is an index into the vector that owns the things of its kind (`Graph::nodes`, `Plan::buffers`, ...). `invalid()` is the one
// value that is no index; `index()` may only be called on a valid id.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "sluice/core/check.h"

namespace sluice {

/// An index that knows what it counts. `Tag` is never defined; it only makes the type distinct.
template <class Tag>
class Id {
 public:
  constexpr Id() noexcept = default;
  constexpr explicit Id(std::size_t index) noexcept : value_(static_cast<std::uint32_t>(index)) {}

  static constexpr Id invalid() noexcept { return Id(); }
  constexpr bool valid() const noexcept { return value_ != kInvalid; }
  constexpr std::size_t index() const noexcept {
    SLUICE_DCHECK(valid(), "an invalid id names nothing and cannot be an index");
    return value_;
  }
  /// The number as it is stored in files; `0xffffffff` if invalid.
  constexpr std::uint32_t raw() const noexcept { return value_; }

  friend constexpr bool operator==(Id, Id) noexcept = default;
  friend constexpr auto operator<=>(Id, Id) noexcept = default;

 private:
  static constexpr std::uint32_t kInvalid = 0xffffffffu;
  std::uint32_t value_ = kInvalid;
};

using NodeId = Id<struct NodeTag>;      // a node of a Graph
using TensorId = Id<struct TensorTag>;  // a tensor of a Graph
using WeightId = Id<struct WeightTag>;  // a weight of a Graph
using BufferId = Id<struct BufferTag>;  // a buffer of a Plan
using StepId = Id<struct StepTag>;      // a step of a Plan
using LoadId = Id<struct LoadTag>;      // a load of a Plan

/// The code that runs a step. The numbers are stored in plan files: never reuse one, append only. `kernels/kernel_ids.h` names them; to
/// `plan` and `planner` a number means nothing.
enum class KernelId : std::uint16_t { kNone = 0 };

}  // namespace sluice

template <class Tag>
struct std::hash<sluice::Id<Tag>> {
  std::size_t operator()(sluice::Id<Tag> id) const noexcept { return id.raw(); }
};
