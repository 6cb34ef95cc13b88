// The model that a command names, opened at the extents that the command line gives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"

namespace sluice::cli {

/// `dims` as `--dim` takes them, `key` as `--key` does. Throws Failure with the codes of Model::open; whoever names an ONNX file or a plan
/// is told what to do with it.
std::shared_ptr<const Model> open_model(const std::string& path, const std::vector<std::string>& dims = {}, const std::string& key = {});

struct VisitedGraphs {
  std::size_t all = 0;  // choices of extents
  std::size_t visited = 0;
};
/// Opens the graphs of a model's choices of extents: all, or, where most are made when they are opened, kMaxPoints at even distances.
/// Throws Failure naming the first that is not sound.
VisitedGraphs visit_graphs(const Model& model, const std::function<void(const model::Graph&)>& visit);

/// By its name or its first bytes.
bool is_onnx(const std::string& path);
/// Throws Failure where `path` is an ONNX file or a plan, and says what to do with it.
void refuse_other_kinds(const std::string& path);

}  // namespace sluice::cli
