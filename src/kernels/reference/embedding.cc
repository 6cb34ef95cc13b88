#include "src/kernels/reference/embedding.h"

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {

/// A step holds the table's rows call.channels; it writes the output rows that ask for one of them.
void embedding(const KernelCall& call) noexcept {
  const auto& a = call.node->as<model::EmbeddingAttributes>();
  const RowView& out = call.outputs[0].view;
  const PanelReader table(call.weights[0], a.table_rows, 1, a.features);
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const std::int64_t index = table_row(call.inputs[0].view, out, row, pixel, a.table_rows);
    if (!call.channels.contains(index)) return;
    const float* lane = table.channel(index);
    for (std::int64_t c = 0; c < a.features; ++c) out.at<float>(row, pixel)[c] = lane[c * model::kPanelLanes];
  });
}

}  // namespace sluice::kernels::reference
