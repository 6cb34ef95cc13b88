// Attention, a head at a time: its keys are turned and its values gathered once, then blocks of queries meet all keys. Only the scores of
// one block exist, in the workspace:
//
//     workspace of a thread   | keys, turned [d][T] | values [T][e] | scores [rows of a block][T] |
//     of a step of one block  | keys, turned [d][64] | scores [rows][T] |     values are read where they lie
//     of one head             | keys, turned [d][T] | scores [rows of a block][T] |     there too: they lie together
//
//     a block of queries      scores = Q K^T, 64 keys at a time, which stay in the first cache for all rows of the block
//                             weights = exp(scale * scores - greatest), row by row
//                             out = weights V / total
//
// What is turned and gathered serves all blocks of a step. A step of one block, as in bands, has use for it once: it turns 64 keys after
// the other in the same place, and a band asks for little beside its rows.
//
// The order of operations is that of reference/attention.cc: a score and an output are one chain each, so neither blocks nor bands nor
// threads show in the bits. A causal row has a chain of its own length: what the rows of a tile share is done together, the rest apart.
#include "src/kernels/transformer/attention.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "src/kernels/reference/kernels.h"

namespace sluice::kernels::transformer {
namespace {

using elementwise::kMaxProductRows;
using elementwise::ProductTile;
using operators::AttentionParameters;

constexpr std::int64_t kVector = 16;    // floats; lines of the workspace are whole ones
constexpr std::int64_t kKeyBlock = 64;  // keys whose turned values stay in the first cache
constexpr std::int64_t kScoreFloats = 10 * 1024;
constexpr std::int64_t kMaxBlockRows = 8 * kMaxProductRows;

struct Sizes {
  std::int64_t heads, depth, width;
  std::int64_t queries, keys;  // of a batch
  std::int64_t key_pitch;      // of turned keys and of scores
  std::int64_t value_pitch;
  std::int64_t block_rows;
  bool one_block;           // of the step's rows
  std::int64_t score_rows;  // that exist at once

  Sizes(const AttentionParameters& a, RowRange rows) noexcept
      : heads(a.heads),
        depth(a.depth),
        width(a.width),
        queries(a.queries),
        keys(a.keys),
        key_pitch(ceil_div(keys, kVector) * kVector),
        value_pitch(ceil_div(width, kVector) * kVector),
        block_rows(std::clamp(kScoreFloats / key_pitch / kMaxProductRows * kMaxProductRows, std::int64_t{kMaxProductRows}, kMaxBlockRows)),
        one_block(rows.size() <= block_rows),
        score_rows(std::min(block_rows, rows.size())) {}

  std::int64_t turned_pitch() const noexcept { return one_block ? std::min(kKeyBlock, key_pitch) : key_pitch; }
  bool gathers() const noexcept { return !one_block && heads > 1; }
  std::int64_t value_floats() const noexcept { return gathers() ? keys * value_pitch : 0; }
  std::int64_t workspace_floats() const noexcept { return depth * turned_pitch() + value_floats() + score_rows * key_pitch; }
};

/// One thread's part of the workspace.
struct Room {
  float *keys, *values, *scores;
  Room(const Sizes& s, std::byte* workspace, int thread) noexcept
      : keys(reinterpret_cast<float*>(workspace) + thread * s.workspace_floats()),
        values(keys + s.depth * s.turned_pitch()),
        scores(values + s.value_floats()) {}
};

class HeadStep {
 public:
  HeadStep(const KernelCall& call, const AttentionTable& table, const Sizes& sizes, std::int64_t head, const Room& room) noexcept
      : call_(call),
        parameters_(call.parameters<AttentionParameters>()),
        s_(sizes),
        head_(head),
        room_(room),
        rows_(table.rows),
        product_(table.product) {}

  /// Query rows [begin, end) of one batch.
  void run(std::int64_t batch, RowRange rows) noexcept {
    find_values(batch);
    // No row sees more keys than the last.
    if (!s_.one_block) gather(batch, seen(rows.end - 1 - batch * s_.queries));
    for (std::int64_t row = rows.begin; row < rows.end; row += s_.block_rows) {
      if (call_.pool != nullptr && call_.pool->stopped()) return;
      const RowRange block{row, std::min(rows.end, row + s_.block_rows)};
      score(batch, block, seen(block.end - 1 - batch * s_.queries));
      for (std::int64_t r = block.begin; r < block.end; r += kMaxProductRows)
        mix(block.begin, {r, std::min(block.end, r + kMaxProductRows)}, batch * s_.queries);
    }
  }

 private:
  /// How many keys the query of that place in its batch sees.
  std::int64_t seen(std::int64_t query) const noexcept { return parameters_.causal ? s_.keys - s_.queries + query + 1 : s_.keys; }

  void find_values(std::int64_t batch) noexcept {
    const RowView& v = call_.inputs[2].view;
    values_ = s_.gathers() ? room_.values : v.at<const float>(batch * s_.keys) + head_ * s_.width;
    value_pitch_ = s_.gathers() ? s_.value_pitch : v.row_pitch / std::int64_t{sizeof(float)};
  }

  void gather(std::int64_t batch, std::int64_t keys) noexcept {
    turn(batch, {0, keys});
    if (!s_.gathers()) return;
    const RowView& v = call_.inputs[2].view;
    for (std::int64_t t = 0; t < keys; ++t) {
      std::memcpy(room_.values + t * s_.value_pitch, v.at<const float>(batch * s_.keys + t) + head_ * s_.width,
                  static_cast<std::size_t>(s_.width) * sizeof(float));
    }
  }

  /// Keys of the batch, from the beginning of their place on.
  void turn(std::int64_t batch, RowRange keys) noexcept {
    const RowView& k = call_.inputs[1].view;
    rows_.transpose(k.at<const float>(batch * s_.keys + keys.begin) + head_ * s_.depth, k.row_pitch / std::int64_t{sizeof(float)},
                    keys.size(), s_.depth, room_.keys, s_.turned_pitch());
    clear_padding(keys.size());
  }

  // Whole vectors of keys are multiplied. Bytes that another step left after the last key would give scores that are not read, but bytes of
  // integer layers are subnormal floats, whose products take a hundred times as long.
  void clear_padding(std::int64_t keys) const noexcept {
    const std::int64_t pitch = s_.turned_pitch(), end = std::min(pitch, ceil_div(keys, kKeyBlock) * kKeyBlock);
    for (std::int64_t k = 0; k < s_.depth; ++k) std::fill(room_.keys + k * pitch + keys, room_.keys + k * pitch + end, 0.0f);
  }

  float* scores_of(std::int64_t block_row) const noexcept { return room_.scores + block_row * s_.key_pitch; }

  void score(std::int64_t batch, RowRange block, std::int64_t keys) noexcept {
    for (std::int64_t t = 0; t < keys; t += kKeyBlock) {
      if (s_.one_block) turn(batch, {t, std::min(keys, t + kKeyBlock)});
      for (std::int64_t r = block.begin; r < block.end; r += kMaxProductRows) {
        ProductTile tile{.right = room_.keys + (s_.one_block ? 0 : t),
                         .right_pitch = s_.turned_pitch(),
                         .depth = s_.depth,
                         .n = std::min(kKeyBlock, s_.key_pitch - t)};
        for (; tile.rows < std::min<std::int64_t>(kMaxProductRows, block.end - r); ++tile.rows) {
          tile.left[tile.rows] = call_.inputs[0].view.at<const float>(r + tile.rows) + head_ * s_.depth;
          tile.out[tile.rows] = scores_of(r - block.begin + tile.rows) + t;
        }
        product_(tile);
      }
    }
  }

  /// Weights and outputs of a tile's rows.
  void mix(std::int64_t block_begin, RowRange rows, std::int64_t first_query) noexcept {
    const std::int64_t shared = seen(rows.begin - first_query);
    ProductTile tile{.right = values_, .right_pitch = value_pitch_, .depth = shared, .n = s_.width};
    float totals[kMaxProductRows];
    for (std::int64_t row = rows.begin; row < rows.end; ++row, ++tile.rows) {
      float* scores = scores_of(row - block_begin);
      totals[tile.rows] = rows_.weigh(parameters_.scale, scores, seen(row - first_query));
      tile.left[tile.rows] = scores;
      tile.out[tile.rows] = call_.outputs[0].view.at<float>(row) + head_ * s_.width;
    }
    product_(tile);
    for (int i = 0; i < tile.rows; ++i) {
      if (const std::int64_t rest = seen(rows.begin + i - first_query) - shared; rest > 0) {
        ProductTile own{.rows = 1, .right = values_ + shared * value_pitch_, .right_pitch = value_pitch_, .depth = rest};
        own.n = s_.width;
        own.left[0] = tile.left[i] + shared;
        own.out[0] = tile.out[i];
        own.adds = true;
        product_(own);
      }
      rows_.divide(tile.out[i], totals[i], s_.width);
    }
  }

  const KernelCall& call_;
  const AttentionParameters& parameters_;
  const Sizes& s_;
  const std::int64_t head_;
  const Room room_;
  const RowTable& rows_;
  const elementwise::ProductRun product_;
  const float* values_ = nullptr;  // of the head
  std::int64_t value_pitch_ = 0;
};

/// Rows of a ring that has turned do not lie at one distance.
bool turned(const RowView& view) noexcept { return view.ring_rows != 0 && view.ring_rows < view.rows; }

/// Into how many parts the queries of each head are cut so that threads have even shares. A part turns the keys for itself, which is little
/// beside this many queries.
std::int64_t parts_of_head(std::int64_t heads, std::int64_t rows, int threads) noexcept {
  constexpr std::int64_t kLeastRows = 2 * kMaxProductRows;
  if (heads % threads == 0 || heads >= 8 * threads) return 1;
  return std::clamp<std::int64_t>(rows / kLeastRows, 1, threads / std::gcd(heads, std::int64_t{threads}));
}

}  // namespace

Bytes attention_workspace(const AttentionParameters& parameters, const StepExtent& extent) noexcept {
  return Bytes(static_cast<std::uint64_t>(Sizes(parameters, extent.rows).workspace_floats() * extent.threads) * sizeof(float));
}

void attention_step(const KernelCall& call, const AttentionTable& table) noexcept {
  if (turned(call.inputs[1].view) || turned(call.inputs[2].view)) return reference::attention(call);
  const Sizes sizes(call.parameters<AttentionParameters>(), call.rows);
  const std::int64_t first = call.rows.begin / sizes.queries, batches = ceil_div(call.rows.end, sizes.queries) - first;
  const int threads = call.pool == nullptr ? 1 : call.pool->thread_count();
  const std::int64_t parts = parts_of_head(batches * sizes.heads, std::min(sizes.queries, call.rows.size()), threads);
  const auto task = [&](std::int64_t index, int thread) {
    const std::int64_t batch = first + index / (sizes.heads * parts), head = index / parts % sizes.heads, part = index % parts;
    const RowRange rows{std::max(call.rows.begin, batch * sizes.queries), std::min(call.rows.end, (batch + 1) * sizes.queries)};
    const RowRange own{rows.begin + rows.size() * part / parts, rows.begin + rows.size() * (part + 1) / parts};
    HeadStep(call, table, sizes, head, Room(sizes, call.workspace, thread)).run(batch, own);
  };
  if (call.pool != nullptr) return parallel_for(*call.pool, batches * sizes.heads * parts, task);
  for (std::int64_t index = 0; index < batches * sizes.heads; ++index) task(index, 0);
}

}  // namespace sluice::kernels::transformer
