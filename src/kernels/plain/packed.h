// What runs the subgraphs of a node, and its packed results (operators/generic/packed.h), as it writes them.
#pragma once

#include "sluice/kernels/call.h"
#include "sluice/operators/generic/packed.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/kernel.h"

namespace sluice::kernels::plain {

/// Where the results lie, from the first on.
class Packed {
 public:
  template <class Source>
  Packed(const Source& source, std::byte* bytes) noexcept : bytes_(bytes) {
    std::int64_t at = rounded(static_cast<std::int64_t>(source.results() * sizeof(std::int64_t)));
    for (std::size_t i = 0; i < source.results(); ++i) {
      Planned planned;
      source.result(i, planned);
      places()[i] = at;
      at += rounded(kExtentBytes + value_bytes(planned));
    }
  }
  std::byte* values(std::size_t i) const noexcept { return bytes_ + places()[i] + kExtentBytes; }
  void set_extents(std::size_t i, const Shape& shape) const noexcept {
    auto* const extents = reinterpret_cast<std::int64_t*>(bytes_ + places()[i]);
    for (int axis = 0; axis < shape.rank(); ++axis) extents[axis] = shape[axis];
  }
  void put(std::size_t i, const PlainTensor& value) const noexcept {
    set_extents(i, value.shape);
    copy_elements(values(i), value.data, value.count(), value.dtype);
  }

 private:
  std::int64_t* places() const noexcept { return reinterpret_cast<std::int64_t*>(bytes_); }
  std::byte* bytes_;
};

inline constexpr PlainRefusal kNoRunner = "it runs subgraphs, which only a step of a plan can";

inline BodyRunner* runner_of(const PlainNode& node) noexcept { return node.call() == nullptr ? nullptr : node.call()->bodies; }

inline PlainTensor value_of(const Operand& operand) noexcept {
  return {operand.view.dtype, operand.extents != nullptr ? *operand.extents : operand.shape, operand.view.data};
}

}  // namespace sluice::kernels::plain
