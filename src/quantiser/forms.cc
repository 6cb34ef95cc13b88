#include "src/quantiser/forms.h"

#include <algorithm>

#include "sluice/core/units.h"
#include "sluice/model/code.h"
#include "sluice/model/weight.h"
#include "src/importer/coding/encoder.h"
#include "src/model/layout.h"

namespace sluice::quantiser {
namespace {

constexpr std::uint64_t kPanel = 16;  // outputs
constexpr double kMargin = 1.003;     // of whole words and of what panels pad

/// The forms of a layer that some price a byte makes the best, from the largest to the smallest.
std::vector<std::size_t> hull_of(const std::vector<Form>& forms) {
  std::vector<std::size_t> order(forms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return forms[a].noise < forms[b].noise || (forms[a].noise == forms[b].noise && forms[a].bytes < forms[b].bytes);
  });
  std::vector<std::size_t> hull;
  const auto slope = [&](std::size_t from, std::size_t to) {
    return (forms[to].noise - forms[from].noise) / (forms[from].bytes - forms[to].bytes);
  };
  for (const std::size_t next : order) {
    if (!hull.empty() && forms[next].bytes >= forms[hull.back()].bytes) continue;
    while (hull.size() > 1 && slope(hull.back(), next) <= slope(hull[hull.size() - 2], hull.back())) hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

/// The remaining bytes go to the layers whose noise they lower the most.
void spend(std::span<const std::vector<Form>> layers, std::vector<std::size_t>& chosen, double left) {
  for (;;) {
    double most = 0;
    std::size_t layer = 0, form = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Form& now = layers[l][chosen[l]];
      for (std::size_t f = 0; f < layers[l].size(); ++f) {
        const Form& other = layers[l][f];
        if (other.bytes - now.bytes > left || !(now.noise - other.noise > most)) continue;
        most = now.noise - other.noise;
        layer = l;
        form = f;
      }
    }
    if (most == 0) return;
    left -= layers[layer][form].bytes - layers[layer][chosen[layer]].bytes;
    chosen[layer] = form;
  }
}

}  // namespace

double coded_bytes(const Shrunk& shrunk) {
  importer::coding::Counts counts{};
  const auto count = [&](auto values) { importer::coding::count_symbols(model::CodePlane::kBytes, std::as_bytes(values), counts); };
  const auto outputs = static_cast<std::uint64_t>(shrunk.codes.rows()), length = static_cast<std::uint64_t>(shrunk.codes.cols());
  count(std::span(shrunk.codes.data(), static_cast<std::size_t>(shrunk.codes.size())));
  count(std::span(shrunk.scales));
  counts[0] += (align_up(outputs, kPanel) - outputs) * (length + sizeof(float));
  // A stretch is whole panels, and begins a block.
  const Bytes panel(kPanel * (length + sizeof(float)));
  const std::int64_t step = model::panels_per_stretch(panel);
  const std::int64_t stretches = ceil_div(static_cast<std::int64_t>(align_up(outputs, kPanel) / kPanel), step);
  const std::int64_t blocks = stretches * ceil_div(step * static_cast<std::int64_t>(panel.count()), std::int64_t{model::kCodeBlockBytes});
  return kMargin * importer::coding::coded_bytes(importer::coding::make_code(model::CodePlane::kBytes, counts), counts) +
         static_cast<double>(static_cast<std::uint64_t>(blocks) * (model::kCodeSizeBytes + model::kCodeStateBytes) +
                             model::kWeightAlignment);
}

std::optional<std::vector<std::size_t>> choose_forms(std::span<const std::vector<Form>> layers, double most) {
  struct Step {
    double price;
    std::size_t layer, to;
    double saves;
  };
  std::vector<std::size_t> chosen;
  std::vector<Step> steps;
  double bytes = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::vector<Form>& forms = layers[l];
    const std::vector<std::size_t> hull = hull_of(forms);
    chosen.push_back(hull.front());
    bytes += forms[hull.front()].bytes;
    for (std::size_t i = 1; i < hull.size(); ++i) {
      const Form &from = forms[hull[i - 1]], &to = forms[hull[i]];
      steps.push_back({(to.noise - from.noise) / (from.bytes - to.bytes), l, hull[i], from.bytes - to.bytes});
    }
  }
  // Prices rise along a hull, so that a layer's steps stay in their order.
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.price < b.price; });
  for (const Step& step : steps) {
    if (bytes <= most) break;
    chosen[step.layer] = step.to;
    bytes -= step.saves;
  }
  if (bytes > most) return std::nullopt;
  spend(layers, chosen, most - bytes);
  return chosen;
}

}  // namespace sluice::quantiser
