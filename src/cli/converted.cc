#include "src/cli/converted.h"

#include "src/cli/child.h"
#include "src/cli/sibling.h"

namespace sluice::cli {

ConvertedModel::ConvertedModel(const std::string& onnx, const ConvertWords& words)
    : folder_("sluice-convert"), path_(folder_.file("model.sluice")) {
  std::vector<std::string> typed = {onnx, "-o", path_, "--quiet"};
  if (words.without_weights) typed.push_back("--without-weights");
  if (!words.numerics.empty()) typed.insert(typed.end(), {"--numerics", words.numerics});
  if (!words.sparse.empty()) typed.insert(typed.end(), {"--sparse", words.sparse});
  if (!words.weights.empty()) typed.insert(typed.end(), {"--weights", words.weights});
  for (const std::string& dim : words.dims) typed.insert(typed.end(), {"--dim", dim});
  check_succeeded(run_program(sibling_program("sluice-convert"), "sluice-convert", typed));
}

}  // namespace sluice::cli
