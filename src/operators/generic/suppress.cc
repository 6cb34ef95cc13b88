// NonMaxSuppression: of boxes that overlap, the one with the best score.
#include "sluice/operators/generic/suppress.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace suppress;
namespace {

/// At most `most` boxes of each class of each batch; late, all of them.
PlainRefusal infer_suppress(const PlainNode& node, PlainTensor& out) noexcept {
  Counts counts;
  if (const PlainRefusal refusal = read_counts(node, counts)) return refusal;
  const bool late = node.has(2) && !node.given(kMost);
  const std::int64_t most = late ? counts.boxes : std::clamp<std::int64_t>(node.integer(kMost), 0, counts.boxes);
  std::int64_t rows = 0;
  if (__builtin_mul_overflow(counts.batches * most, counts.classes, &rows)) return kWrongShape;
  out = {DType::kI64, Shape{rows, 3}};
  return nullptr;
}

PlainRefusal bound_suppress(const PlainNode& node, PlainTensor& out, std::uint8_t& axes) noexcept {
  axes = 1;
  return infer_suppress(node, out);
}

constexpr PlainOperator kSuppressOperators[] = {
    {550, "NonMaxSuppression", "most:i@2 overlap:f@3 score:f@4 center_point_box:i=0", infer_suppress, nullptr, 1, bound_suppress, true},
};

}  // namespace

std::span<const PlainOperator> suppress_operators() noexcept { return kSuppressOperators; }

}  // namespace sluice::operators::generic
