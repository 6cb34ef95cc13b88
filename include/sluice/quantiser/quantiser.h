// ONNX of floats in, ONNX or model file of integers out, with a report of what that cost (docs/quantisation.md, ADR 0032).
//
//     read --fold norms, equalise--> the same function in f32 --observe over the data--> ranges --> bytes --insert Q and DQ--> QDQ graph
//                                     `---------------- run beside it over the same data: noise of each layer, top class ------'
//
// What is observed comes from the model's own engine: the graph is converted with the tensors in question as outputs, as many at a time as
// `Options::tensor_memory` holds. Nothing here depends on time or threads: the same data gives the same file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/importer/importer.h"

namespace sluice::quantiser {

/// How the range of an activation follows from what was observed. Values outside are clipped.
enum class Method : std::uint8_t {
  kMinMax,      // all of it: nothing is cut
  kPercentile,  // all but a share of the largest values
  kError,       // the range with the least mean squared error
  kAuto,        // whichever of these gives the least noise at the outputs, measured
};
std::string_view name_of(Method method) noexcept;

/// What the model is shown. Items are loaded several times, one at a time.
struct Data {
  std::size_t items = 0;
  /// One tensor for each input of the graph, of its type and ONNX shape. What it throws ends `quantise`.
  std::function<std::vector<importer::InputValue>(const model::Graph& graph, std::size_t item)> load;
};

struct Options {
  importer::ConvertOptions convert;  // dimensions and bounds; all of it for a model file
  Method method = Method::kAuto;
  double percentile = 99.99;  // kPercentile keeps so much
  std::size_t keep_f32 = 0;   // so many layers, those that hurt most, stay as they are
  bool equalise = true;       // of nets with depthwise layers: channels of a tensor get like ranges, where that makes less noise
  bool correct_bias = true;   // a layer's mean error, which rounded weights cause, is taken from its bias; kAuto: if that makes less noise
  Bytes tensor_memory{256u << 20};  // of observed tensors that lie in the arena at once
  std::size_t trial_items = 32;     // items with which alternatives are compared
  std::function<void(std::string_view stage, std::size_t done, std::size_t all)> progress;
};

/// One layer with weights.
struct Layer {
  std::string node;
  std::string op;
  bool quantised = false;  // not: kept, or of a form that has no integer kernel, or its weights are not all numbers
  double noise_db = 0;     // signal to noise of its output, errors of the layers before included; infinite: equal
  double alone_db = 0;     // signal to noise of the model's outputs with this layer alone in integers; measured for keep_f32 only
  Bytes before;            // of its weights and bias
  Bytes after;
};

struct OutputNoise {
  std::string name;
  double noise_db = 0;
};

struct Report {
  std::vector<importer::Problem> problems;  // empty on success
  Method method = Method::kAuto;            // that was taken
  std::size_t items = 0;
  bool corrected = true;             // biases take back mean errors
  std::size_t equalised = 0;         // tensors whose channels got similar ranges
  std::size_t own_ranges = 0;        // activations whose range is by another method than `method`
  std::vector<Layer> layers;         // in the order of the graph
  std::vector<OutputNoise> outputs;  // the float outputs; if there are none, the last layer's
  std::int64_t rows = 0;             // of the first output: one class each
  std::int64_t agreeing = 0;         // whose largest value has the same index
  Bytes weights_before;
  Bytes weights_after;
};

/// Quantises `onnx_path` to `out_path`: QDQ ONNX where that ends with .onnx, else a model file. Errors: those of importer::convert, with
/// `report.problems`; kInvalidArgument without data; kUnsupported where no layer can be quantised, or what the file has cannot be written.
Status quantise(const std::string& onnx_path, const std::string& out_path, const Data& data, const Options& options, Report& report);

}  // namespace sluice::quantiser
