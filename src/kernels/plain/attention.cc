// Attention in all its forms, one query row at a time, and what goes with it. The fast form of the common case is kAttention.
#include "sluice/operators/generic/attention.h"

#include "src/kernels/generic/attention.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/plain/elements.h"
#include "src/kernels/plain/table.h"

namespace sluice::kernels::plain {
using namespace operators::generic::attention;
namespace {

std::uint64_t attention_scratch(const PlainNode& node) noexcept {
  Geometry g;
  return geometry_of(node, g) ? static_cast<std::uint64_t>(g.keys()) * sizeof(float) : 0;
}

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

/// What the mask adds to the score of key t. A mask that ends before the keys hides the rest.
float mask_at(const PlainTensor& mask, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) noexcept {
  const int rank = mask.shape.rank();
  if (t >= mask.shape.back()) return mask.shape.back() == 1 ? mask_at(mask, b, h, s, 0) : -HUGE_VALF;
  const std::int64_t index[] = {b, h, s};
  std::int64_t at = 0;
  for (int axis = 0; axis + 1 < rank; ++axis) at = at * mask.shape[axis] + (mask.shape[axis] == 1 ? 0 : index[axis + 4 - rank]);
  at = at * mask.shape.back() + t;
  if (mask.dtype == DType::kBool) return mask.as<const std::uint8_t>()[at] != 0 ? 0.0f : -HUGE_VALF;
  return mask.as<const float>()[at];
}

enum ScoreStage : std::int64_t { kProduct = 0, kCapped = 1, kMasked = 2, kSoftmaxed = 3 };

/// The scores of one query row, as they are after `stage`.
void score_row(const PlainNode& node, const Geometry& g, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t stage,
               float* scores) noexcept {
  const std::int64_t keys = g.keys(), key_head = h / (g.q.heads / g.k.heads);
  const auto scale = static_cast<float>(node.given(4) && node.real(4) != 0 ? node.real(4) : 1 / std::sqrt(static_cast<double>(g.q.size)));
  const auto cap = static_cast<float>(node.real(5));
  const float* q = g.q.row(node.in(0).as<const float>(), b, h, s);
  std::fill_n(scores, keys, 0.0f);
  float* to = scores;
  for (const Rows::Part& part : rows_of(node, g, 1, b, key_head).parts) {
    generic::run({.x = {q}, .w = {part.first}, .depth = g.q.size, .count = part.count, .row_step = part.step, .sums = to});
    to += part.count;
  }
  for (std::int64_t t = 0; t < keys; ++t) scores[t] *= scale;
  if (stage == kProduct) return;
  if (cap != 0)
    for (std::int64_t t = 0; t < keys; ++t) scores[t] = cap * std::tanh(scores[t] / cap);
  if (stage == kCapped) return;
  const std::int64_t valid = node.has(6) ? std::clamp<std::int64_t>(integer_at(node.in(6), b), 0, keys) : keys;
  const std::int64_t offset = node.has(6) ? valid - g.q.rows : g.past;
  for (std::int64_t t = 0; t < keys; ++t) {
    if (node.has(3)) scores[t] += mask_at(node.in(3), b, h, s, t);
    if (t >= valid || (node.integer(0) != 0 && t > s + offset)) scores[t] = -HUGE_VALF;
  }
  if (stage == kMasked) return;
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

PlainRefusal run_attention(const PlainNode& node, const PlainTensor& out, std::byte* scratch) noexcept {
  Geometry g;
  geometry_of(node, g);
  auto* to = out.as<float>();
  Glances glances;
  if (node.result() == 1 || node.result() == 2) {
    const Heads& now = node.result() == 1 ? g.k : g.v;
    for (std::int64_t b = 0; b < now.batches; ++b)
      for (std::int64_t h = 0; h < now.heads; ++h)
        for (std::int64_t t = 0; t < g.keys() && !glances.over(now.size); ++t, to += now.size)
          std::copy_n(key_row(node, g, node.result(), b, h, t), now.size, to);
    return nullptr;
  }
  auto* scores = reinterpret_cast<float*>(scratch);
  Heads place = g.q;
  place.size = g.v.size;
  for (std::int64_t b = 0; b < g.q.batches; ++b)
    for (std::int64_t h = 0; h < g.q.heads; ++h)
      for (std::int64_t s = 0; s < g.q.rows; ++s) {
        if (glances.over(g.keys() * (8 + (g.q.size + g.v.size) / 4))) return kRunEnded;
        if (node.result() == 3) {
          score_row(node, g, b, h, s, node.integer(3), to + ((b * g.q.heads + h) * g.q.rows + s) * g.keys());
          continue;
        }
        score_row(node, g, b, h, s, kMasked, scores);
        const float total = generic::weigh(scores, g.keys());
        float* y = const_cast<float*>(place.row(to, b, h, s));
        std::fill_n(y, g.v.size, 0.0f);
        if (total == 0.0f) continue;
        add_values(rows_of(node, g, 2, b, h / (g.q.heads / g.k.heads)), scores, g.v.size, y);
        for (std::int64_t i = 0; i < g.v.size; ++i) y[i] /= total;
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
