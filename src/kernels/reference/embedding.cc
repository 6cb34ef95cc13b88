#include "src/kernels/reference/embedding.h"

#include <algorithm>
#include <atomic>

#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/panels.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// Threads that meet it at once say the same.
void report_outside(const KernelCall& call) noexcept {
  if (call.fault != nullptr) std::atomic_ref(call.fault->reason).store("an index lies outside the table", std::memory_order_relaxed);
}

/// A step holds the table's rows call.channels; it writes the output rows that ask for one of them. Those that ask for none that exists are
/// written by the step with the table's first row: zeros, and the run is an error.
/// `copy(row, to)` writes one.
template <class Copy>
void look_up(const KernelCall& call, const Copy& copy) noexcept {
  const auto& a = call.node->as<model::EmbeddingAttributes>();
  const RowView& out = call.outputs[0].view;
  for_pixels(call, [&](std::int64_t row, std::int64_t pixel) {
    const std::int64_t index = table_row(call.inputs[0].view, out, row, pixel, a.table_rows);
    float* const to = out.at<float>(row, pixel);
    if (call.channels.contains(index)) {
      copy(index, to);
    } else if (call.channels.begin == 0 && (index < 0 || index >= a.table_rows)) {
      std::fill_n(to, a.features, 0.0f);
      report_outside(call);
    }
  });
}

}  // namespace

/// [...] indices x panels [rows of the table, features] -> [..., features].
void embedding(const KernelCall& call) noexcept {
  const auto& a = call.node->as<model::EmbeddingAttributes>();
  const PanelReader table(call.weights[0], a.table_rows, 1, a.features);
  look_up(call, [&](std::int64_t index, float* to) {
    const float* lane = table.channel(index);
    for (std::int64_t c = 0; c < a.features; ++c) to[c] = lane[c * model::kPanelLanes];
  });
}

/// The same of a table in quantised panels.
void quantised_embedding(const KernelCall& call) noexcept {
  const WeightOperand& table = call.weights[0];
  const model::Weight& weight = *table.weight;
  const std::int64_t features = call.node->as<model::EmbeddingAttributes>().features;
  look_up(call, [&](std::int64_t index, float* to) {
    const std::int64_t panel = index / model::kPanelLanes - table.panels.begin;
    const std::byte* const at = table.data + panel * static_cast<std::int64_t>(weight.panel_bytes.count());
    for (std::int64_t c = 0; c < features; ++c) to[c] = quantised_value(weight.panel_layout, at, c, index % model::kPanelLanes);
  });
}

}  // namespace sluice::kernels::reference
