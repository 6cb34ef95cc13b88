// Attention of heads: softmax(scale * Q K^T) V. What order its sums have, for each row and head:
//
//     score[t]  one chain of fused multiply-adds over the head's channels, then * scale
//     weight[t] exp(score[t] - greatest score)
//     total     of the weights, as a softmax sums (lane_sum.h)
//     out[c]    one chain of fused multiply-adds over the keys, then / total
#include <cmath>
#include <limits>

#include "sluice/operators/parameters/transformer.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/reference/functions.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/lane_sum.h"
#include "src/kernels/reference/walk.h"

namespace sluice::kernels::reference {
namespace {

/// One head of one row: its query, and the keys and values of its batch that it sees.
struct HeadRow {
  const float* query = nullptr;
  const RowView* keys = nullptr;
  const RowView* values = nullptr;
  std::int64_t first_key = 0;  // a row of both views
  std::int64_t key_count = 0;
  std::int64_t key_channel = 0, depth = 0;    // of the head in queries and keys
  std::int64_t value_channel = 0, width = 0;  // of the head in values and output
  float scale = 1.0f;

  float score(std::int64_t t) const noexcept {
    const float* key = keys->at<const float>(first_key + t) + key_channel;
    return generic::chain(0.0f, {query}, {key}, depth) * scale;
  }

  /// Scores are computed twice, so that they need no room.
  void run(float* out) const noexcept {
    float greatest = -std::numeric_limits<float>::infinity();
    for (std::int64_t t = 0; t < key_count; ++t) {
      const float s = score(t);
      greatest = greatest < s ? s : greatest;
    }
    for (std::int64_t c = 0; c < width; ++c) out[c] = 0.0f;
    LaneSum sum;
    for (std::int64_t t = 0; t < key_count; ++t) {
      const float weight = exp(score(t) - greatest);
      sum.add(t, weight);
      const float* value = values->at<const float>(first_key + t) + value_channel;
      for (std::int64_t c = 0; c < width; ++c) out[c] = std::fma(weight, value[c], out[c]);
    }
    const float total = sum.total();
    for (std::int64_t c = 0; c < width; ++c) out[c] /= total;
  }
};

}  // namespace

void attention(const KernelCall& call) noexcept {
  const auto& a = call.parameters<operators::AttentionParameters>();
  const Operand &queries = call.inputs[0], &keys = call.inputs[1], &values = call.inputs[2];
  const RowView& out = call.outputs[0].view;
  const int rank = queries.shape.rank();
  const std::int64_t query_rows = queries.shape[rank - 2], key_rows = keys.shape[rank - 2];
  for_rows(call, [&](std::int64_t row) {
    HeadRow head{.keys = &keys.view, .values = &values.view, .first_key = row / query_rows * key_rows, .scale = a.scale};
    head.key_count = a.causal ? key_rows - query_rows + row % query_rows + 1 : key_rows;
    head.depth = queries.view.channels / a.heads;
    head.width = out.channels / a.heads;
    for (std::int64_t h = 0; h < a.heads; ++h) {
      head.key_channel = h * head.depth;
      head.value_channel = h * head.width;
      head.query = queries.view.at<const float>(row) + head.key_channel;
      head.run(out.at<float>(row) + head.value_channel);
    }
  });
}

}  // namespace sluice::kernels::reference
