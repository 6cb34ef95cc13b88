// The toy network as a model file on disk.
#pragma once

#include <unistd.h>

#include <cstring>
#include <string>

#include "sluice/model/model_writer.h"
#include "sluice/operators/validate.h"
#include "tests/executor/toy.h"

namespace sluice::toy {

/// Gives the writer the panels that a ToyModel holds in memory.
class ToyProducer final : public model::WeightProducer {
 public:
  explicit ToyProducer(const ToyModel& model) : model_(model) {}
  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override {
    const model::Weight& weight = model_.graph.weight(id);
    std::memcpy(out.data(), model_.file.data() + model::panel_range(weight, p).offset.count(), out.size());
    return {};
  }

 private:
  const ToyModel& model_;
};

/// A path in the working directory of the test, removed at the end.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& name) : path_(name + "." + std::to_string(getpid()) + ".tmp") {}
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() { unlink(path_.c_str()); }
  const std::string& str() const noexcept { return path_; }

 private:
  std::string path_;
};

inline Status write_toy_file(const ToyModel& model, const std::string& path, const model::Variants* variants = nullptr) {
  model::Graph graph = model.graph;
  graph.stretches.clear();
  ToyProducer producer(model);
  return model::write_model(graph, producer, path, operators::validate_node, {.progress = {}, .before_commit = {}, .variants = variants});
}

}  // namespace sluice::toy
