// `convert` in two parts, so that the quantiser can change the graph between them: read the ONNX file, then lower, rewrite and pack it.
#pragma once

#include <functional>
#include <string>

#include "sluice/importer/importer.h"
#include "src/importer/emit.h"
#include "src/importer/onnx_graph.h"

namespace sluice::importer {

/// Reads the file at `path`; what is wrong with it goes into `report.problems`. Errors: those of `convert`.
Status read_onnx(const std::string& path, OnnxGraph& graph, ConvertReport& report, AbsentData absent = AbsentData::kRefused);

/// The rest of `convert`. `onnx_path` is how errors call the graph. Errors: those of `convert`; a failed allocation is an exception here.
Status convert_graph(const OnnxGraph& onnx, const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options,
                     ConvertReport& report);

/// Shows the weights of the graph (where dimensions are open, of their bounds) and how their bytes come about. Errors: as convert_graph.
Status visit_weights(const OnnxGraph& onnx, const std::string& onnx_path, const ConvertOptions& options, ConvertReport& report,
                     const std::function<void(const model::Weight&, const Recipe&)>& visit);

}  // namespace sluice::importer
