// NonMaxSuppression: of boxes that overlap, the one with the best score.
#include "sluice/operators/generic/suppress.h"

#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/plain/vectors.h"

namespace sluice::kernels::plain {
using namespace operators::generic::suppress;
namespace {

std::uint64_t suppress_scratch(const PlainNode& node) noexcept {
  Counts counts;
  if (read_counts(node, counts) != nullptr) return 0;
  return sizeof(std::int64_t) * static_cast<std::uint64_t>(std::max<std::int64_t>(counts.boxes, 1));
}

struct Box {
  float top, left, bottom, right;
  float area() const noexcept { return (bottom - top) * (right - left); }
};

/// Corners in either order, or centre and size.
Box box_at(const float* b, bool centre) noexcept {
  if (centre) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

/// The part of their union that two boxes share.
float overlap(const Box& a, const Box& b) noexcept {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return 0;
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

PlainRefusal run_suppress(const PlainNode& node, PlainTensor& out, std::byte* scratch) noexcept {
  Counts counts;
  if (const PlainRefusal refusal = read_counts(node, counts)) return refusal;
  const std::int64_t most = std::clamp<std::int64_t>(node.integer(kMost), 0, counts.boxes), room = out.shape[0];
  const auto limit = static_cast<float>(node.real(kOverlap)), least = static_cast<float>(node.real(kScore));
  const bool centre = node.integer(kCentre) != 0;
  auto* const order = reinterpret_cast<std::uint64_t*>(scratch);
  auto* const rows = out.as<std::int64_t>();
  // NaN is never a candidate, and nothing is better than a NaN.
  const std::int32_t above = !node.given(kScore) ? kNoKey + 1 : std::isnan(least) ? INT32_MAX : key_of_value(least);
  const VectorTable& vectors = vector_table(active_isa());
  std::int64_t selected = 0;
  Glances glances;
  for (std::int64_t list = 0; list < counts.batches * counts.classes; ++list) {
    const float* const scores = node.in(1).as<const float>() + list * counts.boxes;
    const float* const boxes = node.in(0).as<const float>() + list / counts.classes * counts.boxes * 4;
    Scan scan{.values = scores, .end = counts.boxes, .above = above, .found = order, .room = counts.boxes};
    vectors.scan(scan);
    if (glances.over(counts.boxes)) return kRunEnded;
    // A heap with the best on top: of many candidates few are looked at before enough are selected.
    std::int64_t candidates = scan.count;
    std::make_heap(order, order + candidates);
    const std::int64_t first = selected;
    for (; candidates > 0 && selected - first < most; --candidates) {
      const std::int64_t best = place_of(order[0]);
      std::pop_heap(order, order + candidates);
      const Box box = box_at(boxes + best * 4, centre);
      bool keep = true;
      if (glances.over(16 + 2 * (selected - first))) return kRunEnded;
      for (std::int64_t s = first; s < selected && keep; ++s) keep = !(overlap(box, box_at(boxes + rows[s * 3 + 2] * 4, centre)) > limit);
      if (!keep) continue;
      if (selected == room) return kOverBound;
      rows[selected * 3] = list / counts.classes;
      rows[selected * 3 + 1] = list % counts.classes;
      rows[selected * 3 + 2] = best;
      ++selected;
    }
  }
  out.shape = Shape{selected, 3};
  return nullptr;
}

constexpr GenericKernel kSuppressKernels[] = {
    {"NonMaxSuppression", nullptr, suppress_scratch, run_suppress},
};

}  // namespace

std::span<const GenericKernel> suppress_kernels() noexcept { return kSuppressKernels; }

}  // namespace sluice::kernels::plain
