// An OnnxGraph as a file again.
//
// Values of tensors are copied from their source to the file a part at a time; only the rest of the file is held in memory.
#pragma once

#include <string>

#include "sluice/core/error.h"
#include "src/importer/onnx_graph.h"

namespace sluice::quantiser {

/// Under a temporary name first. Errors: kIo; kUnsupported for what the graph holds and its reader did not keep: tensors of other types,
/// attributes of other kinds, bodies.
Status write_onnx(const importer::OnnxGraph& graph, const std::string& path);

}  // namespace sluice::quantiser
