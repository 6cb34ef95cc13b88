#include <algorithm>
#include <optional>

#include "sluice/core/units.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

/// One spatial axis of a convolution.
struct TapAxis {
  std::int64_t in, out, kernel, stride, dilation, pad_before, pad_after;
};

/// Does any output meet an input, not padding, with this tap?
bool meets_input(const TapAxis& axis, std::int64_t tap) {
  const std::int64_t offset = tap * axis.dilation - axis.pad_before;  // of the input that output 0 meets
  if (offset >= axis.in) return false;
  const std::int64_t first = offset >= 0 ? 0 : ceil_div(-offset, axis.stride);
  const std::int64_t last = std::min(axis.out - 1, (axis.in - 1 - offset) / axis.stride);
  return first <= last;
}

/// How many taps in front and behind never meet an input. Nothing where all taps are busy, or none is.
struct IdleTaps {
  std::int64_t before = 0, after = 0;
};
std::optional<IdleTaps> idle_taps(const TapAxis& axis) {
  IdleTaps idle;
  while (idle.before < axis.kernel && !meets_input(axis, idle.before)) ++idle.before;
  if (idle.before == axis.kernel) return std::nullopt;
  while (!meets_input(axis, axis.kernel - 1 - idle.after)) ++idle.after;
  // What pads them goes with them.
  if (idle.before * axis.dilation > axis.pad_before || idle.after * axis.dilation > axis.pad_after) return std::nullopt;
  return idle.before + idle.after == 0 ? std::nullopt : std::optional(idle);
}

/// Narrows axis `axis` of the kernel, which is a view: nothing is copied.
void narrow(Constant& kernel, int axis, const IdleTaps& idle) {
  kernel.data += idle.before * kernel.strides[static_cast<std::size_t>(axis)] * size_of(kernel.dtype);
  kernel.shape[axis] -= idle.before + idle.after;
}

bool fits(const Constant& kernel) {
  return kernel.shape[2] == 1 || kernel.shape[3] == 1 || kernel.strides[2] == kernel.shape[3] * kernel.strides[3] ||
         kernel.elements() <= kMaxFoldedElements;
}

}  // namespace

void drop_idle_taps(Draft& draft) {
  for (DraftNode& node : draft.nodes) {
    if (node.op != model::OpKind::kConv || node.integers || !node.panels || node.panels->values.quantised) continue;
    model::Window& w = std::get<model::ConvAttributes>(node.attributes).window;
    const auto rows = idle_taps({w.in_h, w.out_h, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom});
    const auto columns = idle_taps({w.in_w, w.out_w, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right});
    Constant kernel = node.panels->values;
    if (rows) narrow(kernel, 2, *rows);
    if (columns) narrow(kernel, 3, *columns);
    if ((!rows && !columns) || !fits(kernel)) continue;
    node.panels->values = with_even_taps(kernel);
    w.kernel_h = kernel.shape[2];
    w.kernel_w = kernel.shape[3];
    if (rows) {
      w.pad_top -= rows->before * w.dilation_h;
      w.pad_bottom -= rows->after * w.dilation_h;
    }
    if (columns) {
      w.pad_left -= columns->before * w.dilation_w;
      w.pad_right -= columns->after * w.dilation_w;
    }
  }
}

}  // namespace sluice::importer
