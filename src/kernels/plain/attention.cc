// Attention in all its forms, one query row at a time, and what goes with it. The fast form of the common case is kAttention.
#include "sluice/operators/generic/attention.h"

#include "sluice/core/units.h"
#include "src/kernels/elementwise/product.h"
#include "src/kernels/generic/attention.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"
#include "src/kernels/transformer/rows.h"

namespace sluice::kernels::plain {
using namespace operators::generic::attention;
namespace {

const float* key_row(const PlainNode& node, const Geometry& g, int input, std::int64_t b, std::int64_t h, std::int64_t t) noexcept {
  const Heads& now = input == 1 ? g.k : g.v;
  if (t >= g.past) return now.row(node.in(input).as<const float>(), b, h, t - g.past);
  return node.in(input + 3).as<const float>() + ((b * now.heads + h) * g.past + t) * now.size;
}

/// Keys (input 1) or values (input 2) of one head: those of the past, then those of now.
struct Rows {
  struct Part {
    const float* first = nullptr;
    std::int64_t count = 0, step = 0;  // rows, and how far they lie apart
  };
  std::array<Part, 2> parts;
};

Rows rows_of(const PlainNode& node, const Geometry& g, int input, std::int64_t b, std::int64_t h) noexcept {
  const Heads& now = input == 1 ? g.k : g.v;
  Rows rows;
  if (g.past > 0) rows.parts[0] = {key_row(node, g, input, b, h, 0), g.past, now.size};
  rows.parts[1] = {key_row(node, g, input, b, h, g.past), now.rows, now.flat ? now.heads * now.size : now.size};
  return rows;
}

enum ScoreStage : std::int64_t { kProduct = 0, kCapped = 1, kMasked = 2, kSoftmaxed = 3 };

float scale_of_scores(const PlainNode& node, const Geometry& g) noexcept {
  return static_cast<float>(node.given(4) && node.real(4) != 0 ? node.real(4) : 1 / std::sqrt(static_cast<double>(g.q.size)));
}

/// Adds the mask to the scores of one query row. What it hides, or what ends before the keys, is minus infinity.
void add_mask(const PlainTensor& mask, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t keys, float* scores) noexcept {
  const int rank = mask.shape.rank();
  const std::int64_t columns = mask.shape.back(), index[] = {b, h, s};
  std::int64_t at = 0;
  for (int axis = 0; axis + 1 < rank; ++axis) at = at * mask.shape[axis] + (mask.shape[axis] == 1 ? 0 : index[axis + 4 - rank]);
  const std::int64_t step = columns == 1 ? 0 : 1, known = columns == 1 ? keys : columns;
  if (mask.dtype == DType::kBool) {
    const auto* row = mask.as<const std::uint8_t>() + at * columns;
    for (std::int64_t t = 0; t < known; ++t) scores[t] += row[t * step] != 0 ? 0.0f : -HUGE_VALF;
  } else {
    const auto* row = mask.as<const float>() + at * columns;
    for (std::int64_t t = 0; t < known; ++t) scores[t] += row[t * step];
  }
  for (std::int64_t t = known; t < keys; ++t) scores[t] += -HUGE_VALF;
}

/// How many keys a query row sees, whatever its mask.
std::int64_t seen_keys(const PlainNode& node, const Geometry& g, std::int64_t b, std::int64_t s) noexcept {
  const std::int64_t valid = node.has(6) ? std::clamp<std::int64_t>(integer_at(node.in(6), b), 0, g.keys()) : g.keys();
  const std::int64_t offset = node.has(6) ? valid - g.q.rows : g.past;
  return node.integer(0) != 0 ? std::clamp<std::int64_t>(s + offset + 1, 0, valid) : valid;
}

/// What `stage` makes of the products of one query row with all keys.
void finish_scores(const PlainNode& node, const Geometry& g, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t stage,
                   float* scores) noexcept {
  const std::int64_t keys = g.keys();
  const float scale = scale_of_scores(node, g);
  const auto cap = static_cast<float>(node.real(5));
  for (std::int64_t t = 0; t < keys; ++t) scores[t] *= scale;
  if (stage == kProduct) return;
  if (cap != 0)
    for (std::int64_t t = 0; t < keys; ++t) scores[t] = cap * std::tanh(scores[t] / cap);
  if (stage == kCapped) return;
  if (node.has(3)) add_mask(node.in(3), b, h, s, keys, scores);
  std::fill(scores + seen_keys(node, g, b, s), scores + keys, -HUGE_VALF);
}

/// The scores of one query row, as they are after `stage`.
void score_row(const PlainNode& node, const Geometry& g, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t stage,
               float* scores) noexcept {
  const std::int64_t keys = g.keys();
  const float* q = g.q.row(node.in(0).as<const float>(), b, h, s);
  std::fill_n(scores, keys, 0.0f);
  float* to = scores;
  for (const Rows::Part& part : rows_of(node, g, 1, b, h / (g.q.heads / g.k.heads)).parts) {
    generic::run({.x = {q}, .w = {part.first}, .depth = g.q.size, .count = part.count, .row_step = part.step, .sums = to});
    to += part.count;
  }
  finish_scores(node, g, b, h, s, stage, scores);
  if (stage != kSoftmaxed) return;
  const float total = generic::weigh(scores, keys);
  for (std::int64_t t = 0; t < keys; ++t) scores[t] = total == 0.0f ? 0.0f : scores[t] / total;
}

/// y += the values, each times its weight. What a mask hides has no weight and may be anything, NaN too: it is not read.
void add_values(const Rows& rows, const float* weights, std::int64_t size, float* y) noexcept {
  for (const Rows::Part& part : rows.parts) {
    for (std::int64_t t = 0; t < part.count;) {
      std::int64_t end = t;
      while (end < part.count && weights[end] != 0.0f) ++end;
      generic::run(
          {.x = {weights + t}, .w = {part.first + t * part.step, part.step}, .depth = end - t, .count = size, .row_step = 1, .sums = y});
      t = end + 1;
    }
    weights += part.count;
  }
}

/// Queries that share the keys of one head, some rows at a time, by the inner loops of the kernel of the common case:
///
///     workspace   | keys, turned [d][T], or [d][64] where all queries are one block | scores [rows of a block][T] |
///
/// Bits are those of score_row, generic::weigh and add_values: chains do not show who computes them. A weight of zero adds nothing to a
/// chain of finite values; where a row's outputs are no numbers, it is computed again without the values that are hidden from it.
class HeadOfKeys {
 public:
  HeadOfKeys(const PlainNode& node, const Geometry& g, const PlainTensor& out, std::byte* scratch) noexcept
      : node_(node), g_(g), room_(g), out_(g.q), to_(out.as<float>()), turned_(reinterpret_cast<float*>(scratch)) {
    out_.size = g.v.size;
    scores_ = turned_ + g.q.size * room_.turned_pitch;
  }
  static std::uint64_t scratch_bytes(const Geometry& g) noexcept {
    const Room room(g);
    // As many as any geometry up to this one takes: fewer keys are more rows at once.
    const std::int64_t most = std::max(kScoreFloats, elementwise::kMaxProductRows * room.pitch);
    return static_cast<std::uint64_t>(g.q.size * room.turned_pitch + std::min(std::min(room.queries, kMostRows) * room.pitch, most)) *
           sizeof(float);
  }

  /// False: the run is to end.
  bool run(std::int64_t b, std::int64_t head, Glances& glances) noexcept {
    keys_ = rows_of(node_, g_, 1, b, head);
    values_ = rows_of(node_, g_, 2, b, head);
    const std::int64_t shared = g_.q.heads / g_.k.heads, queries = shared * g_.q.rows;
    if (!room_.one_block()) turn(0, g_.keys());
    for (std::int64_t first = 0; first < queries; first += room_.block_rows) {
      const std::int64_t count = std::min(room_.block_rows, queries - first);
      if (glances.over(count * g_.keys() * (2 + (g_.q.size + g_.v.size) / 16))) return false;
      for (std::int64_t i = 0; i < count; ++i)
        places_[static_cast<std::size_t>(i)] = {b, head * shared + (first + i) / g_.q.rows, (first + i) % g_.q.rows};
      score(count);
      for (std::int64_t i = 0; i < count; i += elementwise::kMaxProductRows)
        mix(i, std::min<std::int64_t>(count, i + elementwise::kMaxProductRows));
    }
    return true;
  }

 private:
  static constexpr std::int64_t kKeyBlock = 64, kVector = 16, kScoreFloats = 10 * 1024, kMostRows = 8 * elementwise::kMaxProductRows;

  struct Room {
    std::int64_t queries, pitch, block_rows, turned_pitch;
    explicit Room(const Geometry& g) noexcept : queries(g.q.heads / g.k.heads * g.q.rows), pitch(ceil_div(g.keys(), kVector) * kVector) {
      constexpr std::int64_t kRows = elementwise::kMaxProductRows;
      block_rows = std::min(queries, std::clamp(kScoreFloats / std::max(pitch, kVector) / kRows * kRows, kRows, kMostRows));
      turned_pitch = one_block() ? std::min(pitch, kKeyBlock) : pitch;
    }
    bool one_block() const noexcept { return block_rows == queries; }
  };
  struct Place {
    std::int64_t b, h, s;
  };

  /// Keys [begin, end) to the beginning of their place, behind them zeros up to whole vectors.
  void turn(std::int64_t begin, std::int64_t end) noexcept {
    std::int64_t first = 0, to = 0;
    for (const Rows::Part& part : keys_.parts) {
      const std::int64_t from = std::max(begin, first), until = std::min(end, first + part.count);
      if (from < until) {
        rows_.transpose(part.first + (from - first) * part.step, part.step, until - from, g_.q.size, turned_ + to, room_.turned_pitch);
        to += until - from;
      }
      first += part.count;
    }
    const std::int64_t whole = std::min(room_.turned_pitch, ceil_div(to, kVector) * kVector);
    for (std::int64_t k = 0; k < g_.q.size; ++k)
      std::fill(turned_ + k * room_.turned_pitch + to, turned_ + k * room_.turned_pitch + whole, 0.0f);
  }

  void score(std::int64_t count) noexcept {
    std::int64_t seen = 0;  // by any row: scores behind are overwritten
    for (std::int64_t i = 0; i < count; ++i) {
      const Place& at = places_[static_cast<std::size_t>(i)];
      seen = std::max(seen, seen_keys(node_, g_, at.b, at.s));
    }
    for (std::int64_t t = 0; t < seen; t += kKeyBlock) {
      if (room_.one_block()) turn(t, std::min(g_.keys(), t + kKeyBlock));
      for (std::int64_t i = 0; i < count; i += elementwise::kMaxProductRows) {
        elementwise::ProductTile tile{.right = turned_ + (room_.one_block() ? 0 : t),
                                      .right_pitch = room_.turned_pitch,
                                      .depth = g_.q.size,
                                      .n = std::min(kKeyBlock, room_.pitch - t)};
        for (; tile.rows < std::min<std::int64_t>(elementwise::kMaxProductRows, count - i); ++tile.rows) {
          const Place& at = places_[static_cast<std::size_t>(i + tile.rows)];
          tile.left[tile.rows] = g_.q.row(node_.in(0).as<const float>(), at.b, at.h, at.s);
          tile.out[tile.rows] = scores_ + (i + tile.rows) * room_.pitch + t;
        }
        product_(tile);
      }
    }
  }

  float* output(const Place& at) const noexcept { return const_cast<float*>(out_.row(to_, at.b, at.h, at.s)); }

  /// Weights and outputs of some rows.
  void mix(std::int64_t begin, std::int64_t end) noexcept {
    elementwise::ProductTile tile{.n = g_.v.size};
    float totals[elementwise::kMaxProductRows];
    const std::int64_t keys = g_.keys();
    std::int64_t seen = 0;  // by any of them
    for (std::int64_t i = begin; i < end; ++i, ++tile.rows) {
      const Place& at = places_[static_cast<std::size_t>(i)];
      float* const scores = scores_ + i * room_.pitch;
      finish_scores(node_, g_, at.b, at.h, at.s, kMasked, scores);
      const bool any = std::any_of(scores, scores + keys, [](float score) { return score != -HUGE_VALF; });
      totals[tile.rows] = any ? rows_.weigh(1.0f, scores, keys) : 0.0f;
      if (!any) std::fill_n(scores, keys, 0.0f);
      for (std::int64_t t = keys; t > seen; --t)
        if (scores[t - 1] != 0.0f) seen = t;
      tile.left[tile.rows] = scores;
      tile.out[tile.rows] = output(at);
    }
    for (const Rows::Part& part : values_.parts) {
      tile.depth = std::min(part.count, seen);
      tile.right = part.first;
      tile.right_pitch = part.step;
      if (tile.depth > 0) product_(tile);
      tile.adds = tile.adds || tile.depth > 0;
      seen -= tile.depth;
      for (int r = 0; r < tile.rows; ++r) tile.left[r] += part.count;
    }
    for (int r = 0; r < tile.rows; ++r) finish(scores_ + (begin + r) * room_.pitch, totals[r], tile.out[r]);
  }

  void finish(const float* weights, float total, float* y) const noexcept {
    if (total == 0.0f) {
      std::fill_n(y, g_.v.size, 0.0f);
      return;
    }
    if (std::any_of(y, y + g_.v.size, [](float value) { return value != value; })) {
      std::fill_n(y, g_.v.size, 0.0f);
      add_values(values_, weights, g_.v.size, y);
    }
    rows_.divide(y, total, g_.v.size);
  }

  const PlainNode& node_;
  const Geometry& g_;
  const Room room_;
  Heads out_;
  float* const to_;
  float* const turned_;  // keys
  float* scores_ = nullptr;
  Rows keys_, values_;
  std::array<Place, static_cast<std::size_t>(kMostRows)> places_;
  const transformer::RowTable& rows_ = transformer::row_table(active_isa());
  const elementwise::ProductRun product_ = elementwise::product_run(active_isa());
};

std::uint64_t attention_scratch(const PlainNode& node) noexcept {
  Geometry g;
  return geometry_of(node, g) && node.result() == 0 ? HeadOfKeys::scratch_bytes(g) : 0;
}

/// Keys or values with those of the past.
void join_rows(const PlainNode& node, const Geometry& g, float* to) noexcept {
  const Heads& now = node.result() == 1 ? g.k : g.v;
  Glances glances;
  for (std::int64_t b = 0; b < now.batches; ++b)
    for (std::int64_t h = 0; h < now.heads; ++h)
      for (std::int64_t t = 0; t < g.keys() && !glances.over(now.size); ++t, to += now.size)
        std::copy_n(key_row(node, g, node.result(), b, h, t), now.size, to);
}

PlainRefusal run_attention(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Geometry g;
  geometry_of(node, g);
  if (node.result() == 1 || node.result() == 2) {
    join_rows(node, g, out.as<float>());
    return nullptr;
  }
  Glances glances;
  if (node.result() == 0) {
    HeadOfKeys run(node, g, out, scratch);
    for (std::int64_t b = 0; b < g.k.batches; ++b)
      for (std::int64_t h = 0; h < g.k.heads; ++h)
        if (!run.run(b, h, glances)) return kRunEnded;
    return nullptr;
  }
  for (std::int64_t b = 0; b < g.q.batches; ++b)
    for (std::int64_t h = 0; h < g.q.heads; ++h)
      for (std::int64_t s = 0; s < g.q.rows; ++s) {
        if (glances.over(g.keys() * (8 + g.q.size / 4))) return kRunEnded;
        score_row(node, g, b, h, s, node.integer(3), out.as<float>() + ((b * g.q.heads + h) * g.q.rows + s) * g.keys());
      }
  return nullptr;
}

PlainRefusal run_rotary(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  Heads x;
  heads_of(node.in(0).shape, node.integer(1), x);
  const std::int64_t turned = node.integer(2) == 0 ? x.size : node.integer(2), half = turned / 2;
  const bool interleaved = node.integer(0) != 0;
  for (std::int64_t b = 0; b < x.batches; ++b)
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const std::int64_t at = node.has(3) ? integer_at(node.in(3), b * x.rows + r) : b * x.rows + r;
      if (at < 0 || (node.has(3) && at >= node.in(1).shape[0])) return kWrongIndex;
      const float *cosines = node.in(1).as<const float>() + at * half, *sines = node.in(2).as<const float>() + at * half;
      for (std::int64_t h = 0; h < x.heads; ++h) {
        const float* from = x.row(node.in(0).as<const float>(), b, h, r);
        float* to = const_cast<float*>(x.row(out.as<float>(), b, h, r));
        std::copy(from + turned, from + x.size, to + turned);
        for (std::int64_t i = 0; i < half; ++i) {
          const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
          to[first] = from[first] * cosines[i] - from[second] * sines[i];
          to[second] = from[first] * sines[i] + from[second] * cosines[i];
        }
      }
    }
  return nullptr;
}

/// One state, and one correction.
std::uint64_t linear_scratch(const PlainNode& node) noexcept {
  LinearGeometry g;
  if (!linear_geometry(node, g)) return 0;
  return static_cast<std::uint64_t>((g.k.size + 1) * g.v.size) * sizeof(double);
}

PlainRefusal run_linear(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  LinearGeometry g;
  linear_geometry(node, g);
  const std::int64_t dk = g.k.size, dv = g.v.size, shared = g.q.heads / g.k.heads;
  const double scale = node.given(3) && node.real(3) != 0 ? node.real(3) : 1 / std::sqrt(static_cast<double>(dk));
  auto* state = reinterpret_cast<double*>(scratch);
  double* delta = state + dk * dv;
  Glances glances;
  for (std::int64_t b = 0; b < g.k.batches; ++b)
    for (std::int64_t h = 0; h < g.k.heads; ++h) {
      const std::int64_t at = (b * g.k.heads + h) * dk * dv;
      for (std::int64_t i = 0; i < dk * dv; ++i) state[i] = node.has(3) ? node.in(3).as<const float>()[at + i] : 0.0;
      for (std::int64_t t = 0; t < g.k.rows; ++t) {
        if (glances.over((3 + shared) * dk * dv)) return kRunEnded;
        const float *k = g.k.row(node.in(1).as<const float>(), b, h, t), *v = g.v.row(node.in(2).as<const float>(), b, h, t);
        if (decays(node)) {
          const bool whole_head = node.in(4).shape[2] == g.k.heads && dk != 1;
          for (std::int64_t i = 0; i < dk; ++i) {
            const std::int64_t place = (b * g.k.rows + t) * g.k.heads + h;
            const double factor = std::exp(static_cast<double>(node.in(4).as<const float>()[whole_head ? place : place * dk + i]));
            for (std::int64_t j = 0; j < dv; ++j) state[i * dv + j] *= factor;
          }
        }
        for (std::int64_t j = 0; j < dv; ++j) {
          delta[j] = v[j];
          if (!corrects(node)) continue;
          for (std::int64_t i = 0; i < dk; ++i) delta[j] -= state[i * dv + j] * k[i];
          const std::int64_t row = b * g.k.rows + t;
          delta[j] *= node.in(5).as<const float>()[node.in(5).shape[2] == 1 ? row : row * g.k.heads + h];
        }
        for (std::int64_t i = 0; i < dk; ++i)
          for (std::int64_t j = 0; j < dv; ++j) state[i * dv + j] += k[i] * delta[j];
        for (std::int64_t s = 0; node.result() == 0 && s < shared; ++s) {
          const std::int64_t head = h * shared + s;
          const float* q = g.q.row(node.in(0).as<const float>(), b, head, t);
          float* y = out.as<float>() + ((b * g.q.rows + t) * g.q.heads + head) * dv;
          for (std::int64_t j = 0; j < dv; ++j) {
            double sum = 0;
            for (std::int64_t i = 0; i < dk; ++i) sum += q[i] * state[i * dv + j];
            y[j] = static_cast<float>(scale * sum);
          }
        }
      }
      for (std::int64_t i = 0; node.result() == 1 && i < dk * dv; ++i) out.as<float>()[at + i] = static_cast<float>(state[i]);
    }
  return nullptr;
}

PlainRefusal run_causal(const PlainNode& node, const PlainTensor& out, std::byte*) noexcept {
  const Shape& x = node.in(0).shape;
  const std::int64_t times = x[2], kernel = node.in(1).shape[2], before = kernel - 1;
  Glances glances;
  for (std::int64_t row = 0; row < x[0] * x[1]; ++row) {
    const std::int64_t c = row % x[1];
    // Time counts from the first value of the state.
    const auto value = [&](std::int64_t t) {
      if (t >= before) return node.in(0).as<const float>()[row * times + t - before];
      return node.has(3) ? node.in(3).as<const float>()[row * before + t] : 0.0f;
    };
    for (std::int64_t t = 0; node.result() == 0 && t < times && !glances.over(kernel); ++t) {
      double sum = node.has(2) ? node.in(2).as<const float>()[c] : 0.0f;
      for (std::int64_t k = 0; k < kernel; ++k) sum += static_cast<double>(value(t + k)) * node.in(1).as<const float>()[c * kernel + k];
      out.as<float>()[row * times + t] = static_cast<float>(node.integer(0) != 0 ? sum / (1 + std::exp(-sum)) : sum);
    }
    for (std::int64_t t = 0; node.result() == 1 && t < before; ++t) out.as<float>()[row * before + t] = value(times + t);
  }
  return nullptr;
}

constexpr GenericKernel kAttentionKernels[] = {
    {"Attention", run_attention, attention_scratch},
    {"RotaryEmbedding", run_rotary},
    {"LinearAttention", run_linear, linear_scratch},
    {"CausalConvWithState", run_causal},
};

}  // namespace

std::span<const GenericKernel> attention_kernels() noexcept { return kAttentionKernels; }

}  // namespace sluice::kernels::plain
