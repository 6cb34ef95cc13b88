// The model that a command names, opened at the extents that the command line gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"

namespace sluice::cli {

/// `dims` as `--dim` takes them, `key` as `--key` does. Throws Failure with the codes of Model::open; an ONNX file is told how it becomes a
/// model file.
std::shared_ptr<const Model> open_model(const std::string& path, const std::vector<std::string>& dims = {}, const std::string& key = {});

/// By its name or its first bytes.
bool is_onnx(const std::string& path);
/// Throws Failure where `path` is an ONNX file and not a model file.
void refuse_onnx(const std::string& path);

}  // namespace sluice::cli
