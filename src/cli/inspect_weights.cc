#include "src/cli/inspect_weights.h"

#include <algorithm>
#include <optional>

#include "src/cli/host_tensor.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

/// What the stretches of a weight are.
struct Stored {
  Bytes bytes;  // in the file
  std::size_t coded = 0;
  bool encrypted = false;
};

Stored stored_of(const model::Graph& graph, const model::Weight& weight) {
  Stored stored;
  for (const model::Stretch& stretch : graph.stretches_of(weight)) {
    stored.bytes += stretch.stored_size;
    stored.coded += has_form(stretch.form, model::StretchForm::kCoded);
    stored.encrypted = stored.encrypted || has_form(stretch.form, model::StretchForm::kEncrypted);
  }
  return stored;
}

/// The share of a sparse weight's blocks that are zero and not stored; nothing: the weight is not sparse.
std::optional<double> zero_blocks_of(const model::Weight& weight) {
  const model::PanelLayout& layout = weight.panel_layout;
  if (layout.layout != model::WeightLayout::kSparse) return std::nullopt;
  const std::uint64_t block = model::kPanelLanes * size_of(layout.dtype), panels = static_cast<std::uint64_t>(weight.panels);
  const std::uint64_t all = values_of_lane(weight) * panels;
  const std::uint64_t bitmaps =
      weight.panel_bytes.count() * panels - align_up(values_of_lane(weight) * block, model::kWeightAlignment) * panels;
  const std::uint64_t blocks = (weight.bytes.count() - std::min(bitmaps, weight.bytes.count())) / block;
  return 1 - static_cast<double>(std::min(blocks, all)) / static_cast<double>(std::max<std::uint64_t>(1, all));
}

/// "raw", "coded", "3 of 40 coded, encrypted": in the order in which forms are applied.
std::string form_of(const model::Weight& weight, const Stored& stored) {
  std::string form = "raw";
  if (stored.coded == weight.stretch_count) form = "coded";
  if (stored.coded > 0 && stored.coded < weight.stretch_count) form = fmt::format("{} of {} coded", stored.coded, weight.stretch_count);
  if (const std::optional<double> zeros = zero_blocks_of(weight)) form = fmt::format("sparse, {:.0f}% zero, {}", *zeros * 100, form);
  return stored.encrypted ? form + ", encrypted" : form;
}

}  // namespace

Json json_of_weights(const model::Graph& graph) {
  Json list = Json::array();
  for (const model::Weight& weight : graph.weights) {
    const Stored stored = stored_of(graph, weight);
    list.push_back({{"name", weight.name},
                    {"shape", json_of(weight.shape)},
                    {"dtype", name_of(weight.panel_layout.dtype)},
                    {"form", form_of(weight, stored)},
                    {"bytes", weight.bytes.count()},
                    {"stored_bytes", stored.bytes.count()},
                    {"stretches", weight.stretch_count},
                    {"always_resident", weight.always_resident},
                    {"zero_blocks", zero_blocks_of(weight).value_or(0.0)}});
  }
  return list;
}

void print_weights(const model::Graph& graph) {
  fmt::print("\n  {:<40} {:<20} {:<5} {:<24} {:>11} {:>11} {:>6}\n", "weight", "shape", "type", "stored", "bytes", "in the file", "share");
  for (const model::Weight& weight : graph.weights) {
    const Stored stored = stored_of(graph, weight);
    fmt::print("  {:<40} {:<20} {:<5} {:<24} {:>11} {:>11} {:>5.1f}%\n", visible(weight.name), weight.shape.to_string(),
               name_of(weight.panel_layout.dtype), form_of(weight, stored), weight.bytes.count(), stored.bytes.count(),
               100 * static_cast<double>(stored.bytes.count()) / static_cast<double>(weight.bytes.count()));
  }
  const auto sparse = [](const model::Weight& weight) { return zero_blocks_of(weight).has_value(); };
  if (std::any_of(graph.weights.begin(), graph.weights.end(), sparse))
    fmt::print(
        "\n  sparse: blocks of 16 outputs x 1 input that are zero are neither stored nor multiplied; convert stores a weight so where\n"
        "  they are at least a quarter of its blocks, of a convolution with Winograd's sums 70 %\n");
}

}  // namespace sluice::cli
