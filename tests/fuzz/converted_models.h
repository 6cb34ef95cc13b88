// Small models of every kind as files that are open: what fuzzers of a session run.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "tests/fault/small_models.h"

namespace sluice::test {

/// The models' files, which must stay while they are open.
struct Folder {
  Folder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/sluice-fuzz-XXXXXX";
};

inline std::vector<std::shared_ptr<const Model>> converted_models(const Folder& folder) {
  std::vector<std::shared_ptr<const Model>> made;
  for (const SmallModel& small : small_models()) {
    const std::string onnx = folder.path + "/m.onnx", path = folder.path + "/" + std::to_string(made.size()) + ".sluice";
    std::ofstream(onnx, std::ios::binary) << small.onnx;
    importer::ConvertReport report;
    if (!importer::convert(onnx, path, small.options, report)) std::abort();
    made.push_back(*Model::open(path));
  }
  return made;
}

}  // namespace sluice::test
