// Recorded measurements of variants of the families, and the models that were measured, without weights.
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/core/temporary_files.h"
#include "tests/prediction/families.h"

namespace sluice::test {

struct RecordedNet {
  std::string family;
  std::uint32_t number = 0;
  double first_ms = 0, second_ms = 0;  // two measurements

  double usual_ms() const noexcept { return 0.5 * (first_ms + second_ms); }
};

/// The nets of a file of `scripts/prediction-accuracy --csv`; none if it cannot be read.
inline std::vector<RecordedNet> recorded_nets(const std::string& path) {
  std::istringstream lines(read_text(path));
  std::vector<RecordedNet> nets;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    RecordedNet net;
    double predicted = 0;
    if (words >> net.family >> net.number >> predicted >> net.first_ms >> net.second_ms) nets.push_back(net);
  }
  return nets;
}

/// A variant as `sluice predict` opens its ONNX file. Its own file is gone when this returns; what it keeps is in memory.
inline Result<std::shared_ptr<const Model>> open_variant(const std::string& family, std::uint32_t number) {
  const TemporaryDirectory folder;
  write_text(folder.file("m.onnx"), variant_of(family, number));
  importer::ConvertReport report;
  importer::ConvertOptions convert;
  convert.without_weights = true;
  SLUICE_RETURN_IF_ERROR(importer::convert(folder.file("m.onnx"), folder.file("m.sluice"), convert, report));
  return Model::open(folder.file("m.sluice"));
}

}  // namespace sluice::test
