#include "src/kernels/plain/move.h"

#include "sluice/kernels/call.h"

namespace sluice::kernels::plain {

void move(const PlainNode& node, const movement::StridedCopy& copy) noexcept {
  movement::run(copy, node.call() == nullptr ? nullptr : node.call()->pool, active_isa());
}

void move_strided(const PlainNode& node, const PlainTensor& x, const PlainTensor& out, const Extents& strides,
                  std::int64_t first) noexcept {
  movement::StridedCopy copy = copy_between(x, out);
  copy.from += first * copy.element;
  const Extents to = strides_of(out.shape);
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    copy.add(out.shape[axis], strides[a] * copy.element, to[a] * copy.element);
  }
  move(node, copy);
}

void move_block(const PlainNode& node, const PlainTensor& x, const PlainTensor& out, const AxisView& block, AxisBlock from,
                AxisBlock to) noexcept {
  movement::StridedCopy copy = copy_between(x, out);
  const std::int64_t inner = block.inner * copy.element;
  copy.from += from.first * inner;
  copy.to += to.first * inner;
  copy.add(block.outer, from.extent * inner, to.extent * inner);
  copy.add(block.extent, inner, inner);
  copy.add(block.inner, copy.element, copy.element);
  move(node, copy);
}

}  // namespace sluice::kernels::plain
