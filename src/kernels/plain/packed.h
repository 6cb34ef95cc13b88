// The results of a node that runs bodies (control.cc, scan.cc). A node has one result, and these have several: they are packed into bytes,
// and a TakeResult node each takes one out.
//
//     [results x place][result 0: 8 extents, values][result 1 ...]       each begins at a multiple of 64
//
// `Source` says what there is: results(), and result(i, planned), the most that result i can be; false where it has no shape.
#pragma once

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/kernel.h"

namespace sluice::kernels::plain {

inline constexpr std::size_t kMaxResults = 256;
inline constexpr std::int64_t kExtentBytes = Shape::kMaxRank * static_cast<std::int64_t>(sizeof(std::int64_t));

constexpr std::int64_t rounded(std::int64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

inline std::int64_t value_bytes(const Planned& planned) noexcept {
  return planned.shape.element_count() * static_cast<std::int64_t>(size_of(planned.dtype));
}

/// Type and shape of the packed results.
template <class Source>
PlainRefusal infer_packed(const Source& source, PlainTensor& out) noexcept {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (source.results() > kMaxResults) return "it has more results than are taken";
  std::int64_t bytes = rounded(static_cast<std::int64_t>(source.results() * sizeof(std::int64_t)));
  for (std::size_t i = 0; i < source.results(); ++i) {
    Planned planned;
    if (!source.result(i, planned)) return "its results have no common shape";
    std::int64_t values = 0;
    if (__builtin_mul_overflow(planned.shape.element_count(), static_cast<std::int64_t>(size_of(planned.dtype)), &values))
      return kWrongShape;
    if (values > kMost || bytes > kMost) return kWrongShape;
    bytes += rounded(kExtentBytes + values);
  }
  out = {DType::kU8, Shape{bytes}};
  return nullptr;
}

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

inline constexpr PlainRefusal kWrongWeights = "its weights are not those of its bodies";

/// Is the tensor one that the plan foresees?
inline bool is_planned(const Planned& planned, const PlainTensor& t) noexcept {
  return planned.dtype == t.dtype && within(t.shape, planned);
}

}  // namespace sluice::kernels::plain
