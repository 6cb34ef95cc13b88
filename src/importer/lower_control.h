// What the lowerings of If, Loop and Scan share.
#pragma once

#include <algorithm>
#include <optional>

#include "src/importer/body.h"
#include "src/importer/lower_plain.h"

namespace sluice::importer {

inline constexpr std::int64_t kMaxIterations = 1 << 14;
// Nodes that an unrolled Loop or Scan may become where its body could run apart.
inline constexpr std::int64_t kWorthUnrolling = 1024;

inline const OnnxGraph& body_of(const NodeContext& c, std::string_view attribute) {
  const OnnxAttribute* a = c.attribute(attribute);
  if (a == nullptr || !a->graph) c.malformed("attribute " + std::string(attribute) + " holds no graph");
  return *a->graph;
}

inline bool all_valid(const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [](ValueId value) { return value.valid(); });
}

inline void set_outputs(NodeContext& c, const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) c.set_output(i, values[i]);
}

// Operators whose fast kernels make a great difference.
inline constexpr std::string_view kLayers[] = {"Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "Attention", "MatMul"};
// A product with a constant is as fast in a body (BodyDense).
inline constexpr auto kLayersButProducts = std::span(kLayers).first(std::size(kLayers) - 1);

// Operators that fail on some values: a condition may be there to keep those from them.
inline constexpr std::string_view kFailing[] = {
    "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "ReverseSequence", "MaxUnpool", "Col2Im", "Range"};

inline bool has_any(const ApartBody& body, std::span<const std::string_view> operators) {
  return std::any_of(body.draft.nodes.begin(), body.draft.nodes.end(), [&](const DraftNode& node) {
    const auto* attributes = std::get_if<model::PlainAttributes>(&node.attributes);
    const kernels::PlainOperator* op = attributes == nullptr ? nullptr : kernels::find_plain(attributes->op);
    return op != nullptr && std::find(operators.begin(), operators.end(), op->name) != operators.end();
  });
}

/// What a result is at the most.
struct Joined {
  DType dtype = DType::kF32;
  Shape most;
  std::uint8_t bounded = 0;
};

/// A value of a body that is like one outside.
inline Value like(const NodeContext& c, ValueId id) {
  Value value;
  value.dtype = c.run_time_type(id);
  value.shape = c.shape(id);
  return value;
}

/// Takes the results of a node that runs bodies out of what it has packed.
inline void set_results(NodeContext& c, ValueId packed, const std::vector<Joined>& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    if (c.wants_output(i)) c.set_output(i, add_result(c, packed, i, results[i].dtype, results[i].most, results[i].bounded));
}

/// Hands the node that was just made the weights of its bodies.
inline void give_weights(NodeContext& c, std::initializer_list<const EncodedBody*> bodies) {
  std::vector<BodyWeight>& weights = c.last_node().body_weights;
  for (const EncodedBody* body : bodies) weights.insert(weights.end(), body->weights.begin(), body->weights.end());
}

void lower_scan(NodeContext& c, BodyLowering& bodies);

}  // namespace sluice::importer
