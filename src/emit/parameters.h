// The parameters of a stage as C initialisers, and the constants that they point at. They are printed from the same values that the
// engine's kernels read (operators/parameters), so that both compute the same.
#pragma once

#include <string>

#include "sluice/emit/memory_plan.h"
#include "sluice/emit/network.h"
#include "sluice/model/model_file.h"

namespace sluice::emit {

class ParameterWriter {
 public:
  ParameterWriter(const model::ModelFile& model, const Network& network, const MemoryPlan& plan)
      : model_(&model), graph_(model.graph()), network_(network), plan_(plan) {}
  /// Emits a graph whose weights have no values: all layers read the same stand-ins, since their time does not depend on the values.
  ParameterWriter(const model::Graph& graph, const Network& network, const MemoryPlan& plan)
      : graph_(graph), network_(network), plan_(plan) {}

  /// Appends the constants of a stage and "static const TYPE parameters_I = {...};" to `text`. Errors: those of reading weights.
  Status write(std::size_t stage);
  /// The same without the line of the parameters: returns their initialiser, or nothing if the kernel has none.
  Result<std::string> initialiser(std::size_t stage);

  /// The constants that all stages of a graph without values point at.
  std::string stand_ins() const;

  std::string text;
  std::uint64_t weight_bytes = 0;    // of products
  std::uint64_t constant_bytes = 0;  // all others

 private:
  Result<std::string> initialiser(std::size_t stage, const model::Node& node);
  Result<std::string> conv_u8(std::size_t stage, const model::Node& node);
  Result<std::string> conv_f32(std::size_t stage, const model::Node& node);
  Result<std::string> table_u8(std::size_t stage, const model::Node& node);
  Result<std::string> softmax_u8(std::size_t stage, const model::Node& node);
  Result<std::string> unary_f32(std::size_t stage, const model::Node& node);
  Result<std::string> binary(std::size_t stage, const model::Node& node);
  Result<std::string> layer_norm(std::size_t stage, const model::Node& node);
  Result<std::string> operand(std::size_t stage, const model::Node& node, std::size_t input);
  std::string pool(std::size_t stage, const model::Node& node);
  std::string border(const model::Node& node, bool begins);
  std::string concat(std::size_t stage, const model::Node& node);
  std::string join(std::size_t stage, const model::Node& node);
  std::string resize(std::size_t stage, const model::Node& node);
  std::string resize_between(std::size_t stage, const model::Node& node);
  std::string pad(std::size_t stage, const model::Node& node);
  std::string attention(const model::Node& node);
  std::string copy(std::size_t stage, const model::Node& node);
  std::string matmul(std::size_t stage, const model::Node& node);

  template <class T>
  Result<std::string> plain_weight(std::size_t stage, const model::Node& node, std::size_t weight, const char* what, std::int64_t count);
  template <class T>
  Result<std::string> panels(std::size_t stage, const model::Node& node, std::int64_t outputs, std::int64_t taps, std::int64_t depth);
  template <class T>
  std::string stand_in(std::int64_t count);
  template <class T>
  std::string array(std::size_t stage, const char* what, const std::vector<T>& values);

  const model::ModelFile* model_ = nullptr;  // null: weights have no values
  const model::Graph& graph_;
  const Network& network_;
  const MemoryPlan& plan_;
  std::int64_t stand_in_floats_ = 0, stand_in_sums_ = 0;  // that are pointed at
};

}  // namespace sluice::emit
