// Runs a graph over the data with values inside it as outputs, and shows them.
//
//     graph, names --outputs replaced--> converted to a file beside the result --> Session --run--> visit(tensor, elements in ONNX order)
//
// Names are taken in groups whose tensors fit `memory` together; each group is a model of its own, which holds no more than leads to it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/quantiser/quantiser.h"
#include "src/importer/onnx_graph.h"

namespace sluice::quantiser {

/// What probes share: where their files go, how the graph is read.
struct ProbeSettings {
  std::string onnx_path;     // as errors call the graph
  std::string scratch_path;  // the start of the names of files that live as long as a probe
  importer::ConvertOptions convert;
  importer::ConvertReport* report = nullptr;
};

/// One converted graph, ready to run.
class Probe {
 public:
  static Result<std::unique_ptr<Probe>> make(const importer::OnnxGraph& graph, std::span<const std::string_view> names,
                                             const ProbeSettings& settings);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  const model::Graph& graph() const noexcept { return model_->graph(); }
  Bytes tensor_bytes() const noexcept;
  Status run(std::span<const importer::InputValue> inputs);
  /// Values of output `tensor` of the last run, from `first` on; ends where the output or `values` ends. How many they are.
  Result<std::size_t> read(std::size_t tensor, std::size_t first, std::span<float> values);

 private:
  explicit Probe(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

/// Values at which two graphs are compared are visited together.
using Visit = std::function<void(std::size_t name, std::int64_t first, std::span<const float> values, std::span<const float> others)>;
/// Called before the first visit of a name, with its shape.
using Shown = std::function<void(std::size_t name, const Shape& shape)>;

struct Observed {
  const importer::OnnxGraph* graph = nullptr;
  std::vector<std::string_view> names;
};

/// Runs `one` (and `other`, whose names stand for the same tensors, where it has a graph) over `items` items of the data.
Status observe(const Observed& one, const Observed& other, const ProbeSettings& settings, const Data& data, std::size_t items,
               const Options& options, std::string_view stage, const Shown& shown, const Visit& visit);

}  // namespace sluice::quantiser
