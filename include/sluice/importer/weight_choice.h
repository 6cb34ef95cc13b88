// Which form each weight takes for one budget, disk and device: `convert --weights auto` (docs/quantisation.md).
//
//     ONNX file --measure--> bytes and noise of each weight in each form --sweep--> forms --price--> reading hidden behind computing?
//
// Noise is the squared error of rounding by the squared values: what a layer's output gets of it where inputs are alike. The sweep is that
// of a Lagrange multiplier: each weight goes from the form with the least noise along the lower convex hull of {bytes, noise}, and the
// steps of all weights are taken in the order of what a byte saved costs in noise, until the price says that reading is hidden, or as short
// as it gets. Then steps that gain nothing are taken back.
//
// The caller prices each choice (this module may not include the planner): it is given a model file without weights.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/importer/importer.h"

namespace sluice::importer {

/// What a run is predicted to cost with one choice of storage for each weight.
struct WeightPrice {
  double period_ms = 0;
  double compute_ms = 0;
  Bytes streamed;  // read in each run
};

/// `model` is a model file without weights. kBudgetTooSmall: the budget does not hold it.
using PriceWeights = std::function<Result<WeightPrice>(const std::string& model)>;

struct ChosenWeight {
  std::string name;
  std::int64_t values = 0;
  kernels::PanelStorage storage = kernels::PanelStorage::kF32;
  Bytes bytes;  // of its panels
  Bytes f32_bytes;
  double noise = 0;  // squared error by squared values
};

struct WeightChoice {
  std::vector<ChosenWeight> weights;  // those that may be rounded, in the order of the graph
  double noise = 0;                   // of all weights together: their sum
  bool held = true;                   // whether the budget holds the model as it was given; `given` means nothing where not
  WeightPrice given;                  // with the least noise
  WeightPrice chosen;
  int plans = 0;  // that were priced
};

/// Finds the forms for `options.weight_forms` of a later convert. `scratch_path` is where models without weights lie in turn. Errors: those
/// of convert, with `report.problems`; of `price`, where the budget holds no choice.
Status choose_weights(const std::string& onnx_path, const std::string& scratch_path, const ConvertOptions& options,
                      const PriceWeights& price, WeightChoice& choice, ConvertReport& report);

}  // namespace sluice::importer
