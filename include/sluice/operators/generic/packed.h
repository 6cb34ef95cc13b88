// The results of a node that runs subgraphs (control.h). A node has one result, and these have several: they are packed into bytes,
// and a TakeResult node each takes one out.
//
//     [results x place][result 0: 8 extents, values][result 1 ...]       each begins at a multiple of 64
//
// `Source` says what there is: results(), and result(i, planned), the most that result i can be; false where it has no shape.
#pragma once

#include "sluice/operators/generic/elements.h"

namespace sluice::operators::generic {

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

/// Is the tensor one that the plan foresees?
inline bool is_planned(const Planned& planned, const PlainTensor& t) noexcept {
  return planned.dtype == t.dtype && within(t.shape, planned);
}

}  // namespace sluice::operators::generic
