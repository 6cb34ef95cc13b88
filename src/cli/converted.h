// Converts an ONNX file to a temporary model file, by `sluice-convert` from the same folder. All commands that take ONNX files
// come here, so that they all say alike what the converter refused.
#pragma once

#include <string>
#include <vector>

#include "src/cli/scratch_folder.h"

namespace sluice::cli {

/// Options for the converter; empty: its defaults.
struct ConvertWords {
  std::vector<std::string> dims;
  std::string numerics;
  std::string sparse;
  std::string weights;
  bool without_weights = false;
};

/// A model file in a folder of its own, which goes with this object.
class ConvertedModel {
 public:
  /// Throws Failure with the converter's own text and status.
  explicit ConvertedModel(const std::string& onnx, const ConvertWords& words = {});

  const std::string& path() const noexcept { return path_; }

 private:
  ScratchFolder folder_;
  std::string path_;
};

}  // namespace sluice::cli
