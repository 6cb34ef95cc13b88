// Small ONNX models that between them go through all of the importer's and planner's kinds of work, each converted in milliseconds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/importer/importer.h"
#include "sluice/model/graph.h"

namespace sluice::test {

struct SmallModel {
  std::string name;
  std::string onnx;  // the file's bytes
  importer::ConvertOptions options;
};

std::vector<SmallModel> small_models();

/// Values that every input of the graph takes, the same each time: reals about zero, whole numbers of 0 and 1.
std::vector<std::vector<std::byte>> inputs_for(const model::Graph& graph);

}  // namespace sluice::test
