// An ONNX file as a model file of a moment: `sluice-convert`, which lies beside this program, makes it.
#pragma once

#include <string>
#include <vector>

#include "src/cli/scratch_folder.h"

namespace sluice::cli {

/// A model file in a folder of its own, which goes with this object.
class ConvertedModel {
 public:
  /// Throws Failure with the status of the converter, which has said on stderr what was wrong.
  ConvertedModel(const std::string& onnx, const std::vector<std::string>& dims);

  const std::string& path() const noexcept { return path_; }

 private:
  ScratchFolder folder_;
  std::string path_;
};

}  // namespace sluice::cli
