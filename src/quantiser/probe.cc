#include "src/quantiser/probe.h"

#include <unistd.h>

#include <algorithm>

#include "src/importer/convert_graph.h"

namespace sluice::quantiser {
namespace {

using importer::InputValue;
using importer::OnnxGraph;

constexpr std::size_t kPiece = 1u << 14;  // values that are read at once

/// The graph with these values as its outputs.
OnnxGraph with_outputs(const OnnxGraph& graph, std::span<const std::string_view> names) {
  OnnxGraph made = graph;
  made.outputs.clear();
  for (const std::string_view name : names) made.outputs.push_back({.name = name, .elem_type = 1, .has_shape = false, .dims = {}});
  return made;
}

/// Sums are exact and weights unchanged, so that the model's own values are observed.
importer::ConvertOptions plain_options(const importer::ConvertOptions& given) {
  importer::ConvertOptions options;
  options.dims = given.dims;
  for (const auto& [name, extents] : given.open_dims) options.dims[name] = *std::max_element(extents.begin(), extents.end());
  options.dim_sums = given.dim_sums;
  options.values = given.values;
  options.bounds = given.bounds;
  options.max_constants = given.max_constants;
  options.preprocess = given.preprocess;
  options.exact = true;
  return options;
}

}  // namespace

Result<std::unique_ptr<Probe>> Probe::make(const OnnxGraph& graph, std::span<const std::string_view> names, const ProbeSettings& settings) {
  static int number = 0;
  const std::string path = settings.scratch_path + "." + std::to_string(::getpid()) + "." + std::to_string(number++);
  std::unique_ptr<Probe> probe(new Probe(path));
  SLUICE_RETURN_IF_ERROR(
      importer::convert_graph(with_outputs(graph, names), settings.onnx_path, path, plain_options(settings.convert), *settings.report));
  SLUICE_ASSIGN_OR_RETURN(probe->model_, Model::open(path));
  return probe;
}

Probe::~Probe() {
  session_.reset();
  model_.reset();
  ::unlink(path_.c_str());
}

Bytes Probe::tensor_bytes() const noexcept {
  Bytes sum;
  for (const model::Port& port : graph().outputs) sum += graph().bytes_of(port);
  return sum;
}

Status Probe::run(std::span<const InputValue> inputs) {
  if (session_ == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(session_, Session::create(model_, {.repeat = true, .tuning = {.search_ms = 0}}));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) SLUICE_RETURN_IF_ERROR(session_->set_input(i, inputs[i].dtype, inputs[i].data));
  return session_->run();
}

Result<std::size_t> Probe::read(std::size_t tensor, std::size_t first, std::span<float> values) {
  const auto count = static_cast<std::size_t>(session_->output_shape(tensor).element_count());
  const std::size_t taken = std::min(values.size(), count - std::min(count, first));
  if (taken > 0) SLUICE_RETURN_IF_ERROR(session_->get_output_part(tensor, first, std::as_writable_bytes(values.first(taken))));
  return taken;
}

namespace {

/// One group of names, and the models that show them.
struct Group {
  std::size_t first = 0, end = 0;
  std::unique_ptr<Probe> one, other;
};

class Observation {
 public:
  Observation(const Observed& one, const Observed& other, const ProbeSettings& settings) : one_(one), other_(other), settings_(settings) {}

  Status open(Group& group) const {
    const auto names = [&](const Observed& of) { return std::span(of.names).subspan(group.first, group.end - group.first); };
    SLUICE_ASSIGN_OR_RETURN(group.one, Probe::make(*one_.graph, names(one_), settings_));
    if (other_.graph == nullptr) return {};
    SLUICE_ASSIGN_OR_RETURN(group.other, Probe::make(*other_.graph, names(other_), settings_));
    return {};
  }

  /// All names in one group where they fit, else in several.
  Result<std::vector<Group>> groups(Bytes memory) const {
    std::vector<Group> groups(1);
    groups[0].end = one_.names.size();
    SLUICE_RETURN_IF_ERROR(open(groups[0]));
    const Bytes limit(memory.count() / (other_.graph == nullptr ? 1 : 2));
    if (groups[0].one->tensor_bytes() <= limit) return groups;
    std::vector<Bytes> sizes;
    for (const model::Port& port : groups[0].one->graph().outputs) sizes.push_back(groups[0].one->graph().bytes_of(port));
    groups.clear();
    Bytes sum;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (groups.empty() || sum + sizes[i] > limit) {
        groups.emplace_back();
        groups.back().first = i;
        sum = Bytes();
      }
      sum += sizes[i];
      groups.back().end = i + 1;
    }
    return groups;
  }

  Status run(Group& group, std::span<const InputValue> inputs, const Visit& visit) {
    SLUICE_RETURN_IF_ERROR(group.one->run(inputs));
    if (group.other) SLUICE_RETURN_IF_ERROR(group.other->run(inputs));
    for (std::size_t name = group.first; name < group.end; ++name) {
      for (std::size_t at = 0;;) {
        SLUICE_ASSIGN_OR_RETURN(const std::size_t count, group.one->read(name - group.first, at, values_));
        if (count == 0) break;
        if (group.other) SLUICE_RETURN_IF_ERROR(group.other->read(name - group.first, at, std::span(others_).first(count)));
        visit(name, static_cast<std::int64_t>(at), std::span(values_).first(count), std::span(others_).first(group.other ? count : 0));
        at += count;
      }
    }
    return {};
  }

 private:
  const Observed& one_;
  const Observed& other_;
  const ProbeSettings& settings_;
  std::vector<float> values_ = std::vector<float>(kPiece), others_ = std::vector<float>(kPiece);
};

}  // namespace

Status observe(const Observed& one, const Observed& other, const ProbeSettings& settings, const Data& data, std::size_t items,
               const Options& options, std::string_view stage, const Shown& shown, const Visit& visit) {
  Observation observation(one, other, settings);
  SLUICE_ASSIGN_OR_RETURN(std::vector<Group> groups, observation.groups(options.tensor_memory));
  std::size_t done = 0;
  for (Group& group : groups) {
    if (group.one == nullptr) SLUICE_RETURN_IF_ERROR(observation.open(group));
    for (std::size_t name = group.first; name < group.end; ++name) shown(name, group.one->graph().outputs[name - group.first].onnx_shape);
    for (std::size_t item = 0; item < items; ++item) {
      const std::vector<InputValue> inputs = data.load(group.one->graph(), item);
      SLUICE_RETURN_IF_ERROR(observation.run(group, inputs, visit));
      if (options.progress) options.progress(stage, ++done, items * groups.size());
    }
    group.one.reset();
    group.other.reset();
  }
  return {};
}

}  // namespace sluice::quantiser
