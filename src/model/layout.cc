#include "src/model/layout.h"

#include <algorithm>
#include <limits>

namespace sluice::model {
namespace {

Status assign_sizes(Graph& graph) {
  std::uint64_t total = 0;
  std::uint64_t stretches = 0;
  for (Weight& weight : graph.weights) {
    if (weight.panel_layout.layout == WeightLayout::kPlain) {
      // Rounding up must not wrap; sizes of that kind fail below.
      if (weight.panel_bytes < kMaxFileBytes) weight.panel_bytes = align_up(weight.panel_bytes, kWeightAlignment);
      weight.panel_bytes = std::max(weight.panel_bytes, Bytes(kWeightAlignment));
    }
    const auto invalid = [&](const char* reason) { return fail(ErrorCode::kInvalidArgument, weight.name, reason); };
    if (weight.panels < 1) return invalid("a weight has no panels");
    if (weight.panel_bytes == Bytes() || weight.panel_bytes.count() % kWeightAlignment != 0) {
      return invalid("the size of a panel is not a multiple of 64");
    }
    if (weight.panel_bytes > kMaxPanelBytes) return invalid("a panel is larger than a stretch can be");
    const auto bytes = checked_mul(static_cast<std::uint64_t>(weight.panels), weight.panel_bytes.count());
    const auto sum = bytes ? checked_add(total, *bytes) : std::nullopt;
    if (!sum || *sum >= kMaxFileBytes.count()) return invalid("the weights are larger than a file can be");
    total = *sum;
    weight.bytes = weight.panel_ends.empty() ? Bytes(*bytes) : Bytes(weight.panel_ends.back() * kWeightAlignment);
    weight.always_resident = weight.bytes < kAlwaysResidentBelow;
    stretches += static_cast<std::uint64_t>(ceil_div(weight.panels, panels_per_stretch(weight.panel_bytes)));
    if (stretches > std::numeric_limits<std::uint32_t>::max()) return invalid("the weights have more stretches than can be numbered");
  }
  return {};
}

void append_stretches(Graph& graph, Weight& weight) {
  const std::int64_t step = panels_per_stretch(weight.panel_bytes);
  weight.first_stretch = static_cast<std::uint32_t>(graph.stretches.size());
  for (std::int64_t panel = 0; panel < weight.panels; panel += step) {
    const FileRange range = panel_range(weight, {panel, std::min(panel + step, weight.panels)});
    graph.stretches.push_back({range.offset, range.size, range.size, 0});
  }
  weight.stretch_count = static_cast<std::uint32_t>(graph.stretches.size()) - weight.first_stretch;
}

}  // namespace

std::vector<WeightId> weights_in_file_order(const Graph& graph) {
  std::vector<WeightId> order;
  std::vector<WeightId> read;
  std::vector<bool> seen(graph.weights.size());
  const auto append = [&](WeightId id) {
    if (!seen[id.index()]) order.push_back(id);
    seen[id.index()] = true;
  };
  for (const Node& node : graph.nodes) {
    read.clear();
    weights_read_by(graph, node, read);
    for (const WeightId id : read) append(id);
  }
  for (std::size_t i = 0; i < graph.weights.size(); ++i) append(WeightId(i));
  std::stable_partition(order.begin(), order.end(), [&](WeightId id) { return graph.weight(id).always_resident; });
  return order;
}

Result<Bytes> assign_layout(Graph& graph, Bytes header_end) {
  SLUICE_RETURN_IF_ERROR(assign_sizes(graph));
  graph.stretches.clear();
  graph.tags.clear();
  Bytes end = align_up(header_end, kSegmentAlignment);
  bool in_resident_segment = true;
  for (const WeightId id : weights_in_file_order(graph)) {
    Weight& weight = graph.weights[id.index()];
    if (in_resident_segment && !weight.always_resident) {
      in_resident_segment = false;
      end = align_up(end, kSegmentAlignment);
    }
    weight.offset = end;
    append_stretches(graph, weight);
    end += weight.bytes;
  }
  // Whole blocks to the end, so that direct reads never meet a cut one.
  return align_up(end, kSegmentAlignment);
}

}  // namespace sluice::model
