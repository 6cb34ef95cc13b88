// What the lowerings of If, Loop and Scan share.
#pragma once

#include <algorithm>
#include <optional>

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

// Operators whose nodes, unrolled, a band, a slice or a load may run through: where a few turns are unrolled, these are.
inline constexpr std::string_view kLayers[] = {"Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "Attention", "MatMul"};
// A product with a constant streams as well in a body.
inline constexpr auto kLayersButProducts = std::span(kLayers).first(std::size(kLayers) - 1);

// Operators that fail on some values: a condition may be there to keep those from them.
inline constexpr std::string_view kFailing[] = {
    "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "ReverseSequence", "MaxUnpool", "Col2Im", "Range"};

bool has_any(const ApartBody& body, std::span<const std::string_view> operators);

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

/// A body, complete: the draft that the node gets, and what it captures from outside.
struct MadeBody {
  std::shared_ptr<Draft> draft;
  std::vector<ValueId> captured;
};
/// Outputs get bytes of their own, and what nobody reads goes.
MadeBody finish_body(ApartBody body);

/// A node that runs bodies, `op` of the long tail: `own` are the inputs that its operator knows, behind which what the bodies capture
/// follows; the results are its last argument. Gives each result that is wanted.
void add_runner(NodeContext& c, std::string_view op, std::vector<ValueId> own, std::vector<std::vector<std::int64_t>> arguments,
                const std::vector<MadeBody>& bodies, const std::vector<Joined>& results);

/// The type that a value has when the model runs.
inline DType run_type(const Value& value) { return is_float(value.dtype) ? DType::kF32 : value.dtype; }

void lower_scan(NodeContext& c, BodyLowering& bodies);

}  // namespace sluice::importer
