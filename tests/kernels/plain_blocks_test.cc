// Plain operators that work in blocks beside their readable form: attention, deformed convolutions, columns to images, broadcasts, pieces of
// padding, powers, remainders. Sizes 1 to 10 and odd ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "sluice/core/cpu.h"
#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/model/attributes.h"
#include "src/kernels/elementwise/runs.h"
#include "src/kernels/generic/attention.h"
#include "src/kernels/generic/chains.h"
#include "src/kernels/generic/power.h"
#include "src/kernels/movement/broadcast.h"
#include "src/kernels/movement/regions.h"
#include "src/kernels/plain/elements.h"
#include "tests/kernels/plain_values.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::plain;

namespace {

using test::bits;
using test::Lists;

struct Tensor {
  Shape shape;
  std::vector<float> values;
  DType dtype = DType::kF32;
  PlainTensor plain() { return {dtype, shape, reinterpret_cast<std::byte*>(values.data())}; }
};

Tensor random_tensor(const Shape& shape, unsigned seed, float most = 1.0f) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> real(-most, most);
  Tensor t{shape, std::vector<float>(static_cast<std::size_t>(shape.element_count()))};
  for (float& value : t.values) value = real(random);
  return t;
}

/// Inputs without elements are not given.
std::vector<float> run_plain(std::string_view name, std::vector<Tensor> inputs, const Lists& arguments) {
  std::vector<PlainTensor> tensors;
  for (Tensor& input : inputs) tensors.push_back(input.values.empty() ? PlainTensor{} : input.plain());
  std::vector<std::byte> made;
  const PlainTensor out = test::run_plain(name, tensors, arguments, 0, made);
  std::vector<float> values(static_cast<std::size_t>(out.count()));
  std::memcpy(values.data(), made.data(), made.size());
  return values;
}

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

struct AttentionCase {
  std::int64_t heads = 1, key_heads = 1, queries = 1, keys = 1, size = 1, width = 1, past = 0;
  bool causal = false, masked = false;
};

/// Query by query, key by key.
std::vector<float> attend(const AttentionCase& c, const std::vector<Tensor>& in) {
  std::vector<float> out;
  const std::int64_t all = c.past + c.keys;
  const auto row = [&](int input, std::int64_t head, std::int64_t t, std::int64_t size) {
    const std::size_t past = static_cast<std::size_t>(input) + 3;
    return t < c.past ? in[past].values.data() + (head * c.past + t) * size
                      : in[static_cast<std::size_t>(input)].values.data() + (head * c.keys + t - c.past) * size;
  };
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.size)));
  for (std::int64_t h = 0; h < c.heads; ++h)
    for (std::int64_t s = 0; s < c.queries; ++s) {
      const std::int64_t key_head = h / (c.heads / c.key_heads);
      const float* q = in[0].values.data() + (h * c.queries + s) * c.size;
      std::vector<float> scores;
      for (std::int64_t t = 0; t < all; ++t) {
        float score = scale * generic::chain(0.0f, {q}, {row(1, key_head, t, c.size)}, c.size);
        if (c.masked) score += in[3].values[static_cast<std::size_t>(s * all + t)];
        scores.push_back(c.causal && t > s + c.past ? -HUGE_VALF : score);
      }
      const float total = generic::weigh(scores.data(), all);
      for (std::int64_t i = 0; i < c.width; ++i) {
        float sum = 0;
        for (std::int64_t t = 0; t < all; ++t)
          if (scores[static_cast<std::size_t>(t)] != 0.0f)
            sum = std::fma(scores[static_cast<std::size_t>(t)], row(2, key_head, t, c.width)[i], sum);
        out.push_back(total == 0.0f ? 0.0f : sum / total);
      }
    }
  return out;
}

void check_attention(const AttentionCase& c) {
  std::vector<Tensor> in{random_tensor({1, c.heads, c.queries, c.size}, 1),
                         random_tensor({1, c.key_heads, c.keys, c.size}, 2),
                         random_tensor({1, c.key_heads, c.keys, c.width}, 3),
                         {},
                         {},
                         {}};
  const std::int64_t all = c.past + c.keys;
  if (c.masked) {
    in[3] = random_tensor({c.queries, all}, 4);
    for (std::size_t i = 0; i < in[3].values.size(); i += 3) in[3].values[i] = -HUGE_VALF;
    if (c.queries > 1) std::fill_n(in[3].values.begin() + all, all, -HUGE_VALF);  // a query that sees nothing
  }
  if (c.past > 0) {
    in[4] = random_tensor({1, c.key_heads, c.past, c.size}, 5);
    in[5] = random_tensor({1, c.key_heads, c.past, c.width}, 6);
  }
  if (c.causal) in[2].values.back() = NAN;  // hidden from all queries but the last
  const std::vector<float> wanted = attend(c, in);
  const std::vector<float> got = run_plain("Attention", in, {{c.causal ? 1 : 0}, {0}, {0}, {0}, {}, {bits(0)}, {0}});
  CAPTURE(c.heads, c.queries, c.keys, c.size, c.width, c.past);
  REQUIRE(got.size() == wanted.size());
  bool same = true;
  for (std::size_t i = 0; i < got.size(); ++i)
    same = same && (same_bits(got[i], wanted[i]) || (got[i] != got[i] && wanted[i] != wanted[i]));
  CHECK(same);
}

}  // namespace

TEST_CASE("attention by blocks of queries is attention query by query") {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 67}) {
    check_attention({.heads = 2, .key_heads = 2, .queries = n, .keys = n, .size = 5, .width = 3, .causal = true});
    check_attention({.heads = 1, .key_heads = 1, .queries = 3, .keys = n, .size = n, .width = 4, .masked = true});
    check_attention({.heads = 4, .key_heads = 2, .queries = n, .keys = 9, .size = 4, .width = n, .past = 3, .masked = true});
    check_attention({.heads = 1, .key_heads = 1, .queries = 70, .keys = 2 * n + 60, .size = 3, .width = 2, .past = n, .causal = true});
  }
}

TEST_CASE("deformed convolutions sample and multiply") {
  for (const std::int64_t n : {1, 2, 3, 5, 7, 10, 19})
    for (const auto& [groups, depth] : {std::pair<std::int64_t, std::int64_t>{1, 2}, {2, 2}, {1, 9}, {1, 21}, {2, 16}}) {
      const std::int64_t channels = depth * groups, outputs = 3 * groups;
      const Tensor x = random_tensor({1, channels, n + 2, n + 1}, 1), w = random_tensor({outputs, depth, 3, 2}, 2);
      const Tensor offsets = random_tensor({1, 12 * groups, n, n}, 3, 2.0f), bias = random_tensor({outputs}, 4),
                   mask = random_tensor({1, 6 * groups, n, n}, 5);
      const auto got =
          run_plain("DeformConv", {x, w, offsets, bias, mask}, {{}, {1, 1}, {1, 1}, {0, 0, 0, 0}, {0}, {0}, {groups}, {groups}});
      REQUIRE(got.size() == static_cast<std::size_t>(outputs * n * n));
      double worst = 0;
      for (std::int64_t m = 0; m < outputs; ++m)
        for (std::int64_t at = 0; at < n * n; ++at) {
          const std::int64_t g = m / 3;
          double sum = bias.values[static_cast<std::size_t>(m)];
          for (std::int64_t c = 0; c < depth; ++c)
            for (std::int64_t tap = 0; tap < 6; ++tap) {
              const auto moved = [&](std::int64_t axis) {
                return offsets.values[static_cast<std::size_t>(((g * 6 + tap) * 2 + axis) * n * n + at)];
              };
              const double y = static_cast<double>(at / n + tap / 2) + moved(0), column = static_cast<double>(at % n + tap % 2) + moved(1);
              double value = 0;
              for (int corner = 0; corner < 4; ++corner) {
                const double r = std::floor(y) + corner / 2, k = std::floor(column) + corner % 2;
                if (r < 0 || k < 0 || r >= static_cast<double>(n + 2) || k >= static_cast<double>(n + 1)) continue;
                value += (1 - std::fabs(y - r)) * (1 - std::fabs(column - k)) *
                         x.values[static_cast<std::size_t>(((g * depth + c) * (n + 2) + static_cast<std::int64_t>(r)) * (n + 1) +
                                                           static_cast<std::int64_t>(k))];
              }
              sum += value * mask.values[static_cast<std::size_t>((g * 6 + tap) * n * n + at)] *
                     w.values[static_cast<std::size_t>((m * depth + c) * 6 + tap)];
            }
          worst = std::max(worst, std::fabs(sum - got[static_cast<std::size_t>(m * n * n + at)]));
        }
      CHECK(worst < 2e-5);
    }
}

TEST_CASE("runs of operands that broadcast are their elements one by one") {
  std::mt19937 random(7);
  for (int turn = 0; turn < 400; ++turn) {
    const int rank = 1 + static_cast<int>(random() % 5);
    std::vector<std::int64_t> out, a, b;
    for (int axis = 0; axis < rank; ++axis) {
      constexpr std::int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 9, 10, 33, 300};
      const std::int64_t extent = kExtents[random() % (axis + 1 == rank ? 10 : 8)];
      out.push_back(extent);
      a.push_back(random() % 3 == 0 ? 1 : extent);
      b.push_back(random() % 3 == 0 ? 1 : extent);
    }
    const auto shape_of = [](const std::vector<std::int64_t>& dims) { return *Shape::make(dims); };
    const Shape shape = shape_of(out);
    const Tensor x = random_tensor(shape_of(a), 1), y = random_tensor(shape_of(b), 2);
    const std::array<Extents, 2> strides{broadcast_strides(x.shape, shape), broadcast_strides(y.shape, shape)};
    std::array<movement::BroadcastOperand, 2> operands;
    for (std::size_t n = 0; n < 2; ++n) {
      operands[n].data = reinterpret_cast<const std::byte*>((n == 0 ? x : y).values.data());
      std::copy(strides[n].begin(), strides[n].end(), operands[n].strides.begin());
    }
    const std::int64_t begin = static_cast<std::int64_t>(random()) % shape.element_count();
    std::vector<float> got(static_cast<std::size_t>(2 * shape.element_count()), NAN);
    std::int64_t next = begin;
    movement::BroadcastRuns(shape, operands, active_isa())
        .run(begin, shape.element_count(), [&](std::int64_t first, std::int64_t count, const auto& values) {
          CHECK(first == next);
          next += count;
          for (std::int64_t i = 0; i < count; ++i)
            for (std::size_t n = 0; n < 2; ++n)
              got[static_cast<std::size_t>(2 * (first + i)) + n] = values[n].template as<float>()[i * values[n].step];
          return true;
        });
    CHECK(next == shape.element_count());
    bool same = true;
    walk(shape, strides, [&](std::int64_t i, const auto& at) {
      if (i < begin) return;
      same = same && got[static_cast<std::size_t>(2 * i)] == x.values[static_cast<std::size_t>(at[0])] &&
             got[static_cast<std::size_t>(2 * i + 1)] == y.values[static_cast<std::size_t>(at[1])];
    });
    CHECK(same);
  }
}

TEST_CASE("pieces of an axis are found without asking for each place") {
  const auto check = [](std::int64_t extent, std::int64_t source, const auto& place) {
    movement::Pieces pieces;
    if (!pieces.find(extent, source, place)) return;
    std::int64_t next = 0;
    for (int p = 0; p < pieces.count(); ++p) {
      const movement::Piece& piece = pieces[p];
      CHECK(piece.first == next);
      next += piece.count;
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::int64_t at = place(piece.first + i);
        CHECK(piece.outside == (at < 0 || at >= source));
        if (!piece.outside) CHECK(piece.source + i * piece.step == at);
      }
    }
    CHECK(next == extent);
  };
  for (const std::int64_t extent : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 63, 64, 65, 200})
    for (const std::int64_t before : {-3, -1, 0, 1, 2, 5, 70})
      for (const std::int64_t after : {-1, 0, 1, 4, 65}) {
        const std::int64_t out = extent + before + after;
        if (out < 1) continue;
        check(out, extent, [&](std::int64_t i) { return i - before; });
        check(out, extent, [&](std::int64_t i) { return std::clamp<std::int64_t>(i - before, 0, extent - 1); });
        check(out, extent, [&](std::int64_t i) { return ((i - before) % extent + extent) % extent; });
        if (before >= extent || after >= extent) continue;
        check(out, extent, [&](std::int64_t i) {
          return i < before ? before - i : i - before >= extent ? 2 * (extent - 1) - (i - before) : i - before;
        });
      }
}

TEST_CASE("powers are those of generic::power on every instruction set, and near those of the standard library") {
  std::vector<float> x{0.0f, -0.0f, 1.0f, -1.0f, -2.0f, HUGE_VALF, -HUGE_VALF, NAN, 1e-40f, 3e38f, 1e-30f, 7.0f}, y;
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) x.push_back(std::exp(std::uniform_real_distribution<float>(-30, 30)(random)));
  constexpr float kExponents[] = {2, 3, -1, 0.5f, -0.5f, 1.7f, 0, 1, 12.25f, -3, 1e-3f, 200, HUGE_VALF, NAN};
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(kExponents[random() % 14]);
  for (const Isa isa : {Isa::kScalar, active_isa()})
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{10}, x.size()}) {
      std::vector<float> got(n);
      elementwise::run_table(isa).binary(BinaryFunction::kPow, {x.data()}, {y.data()}, {}, got.data(), static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i) {
        const float wanted = generic::power(x[i], y[i]);
        const double exact = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
        CAPTURE(x[i], y[i]);
        CHECK((same_bits(got[i], wanted) || (got[i] != got[i] && wanted != wanted)));
        if (std::fabs(exact) > 1e-37 && std::fabs(exact) < 3e38) CHECK(std::fabs(wanted - exact) <= 1.2e-7 * std::fabs(exact));
      }
    }
  std::vector<float> cubes(x.size());
  const float three = 3;
  elementwise::run_table(active_isa())
      .binary(BinaryFunction::kPow, {x.data()}, {&three, 0}, {}, cubes.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK((same_bits(cubes[i], generic::power(x[i], 3)) || cubes[i] != cubes[i]));
}

TEST_CASE("remainders are those of std::fmod") {
  for (const std::int64_t n : {1, 2, 3, 5, 9, 10, 63, 65, 700}) {
    Tensor x = random_tensor({n, 2}, 1, 1e3f), y = random_tensor({n, 2}, 2);
    constexpr float kStrange[] = {0.0f, -0.0f, HUGE_VALF, NAN, 1e-30f, 3e37f};
    for (std::size_t i = 0; i < 6 && i < x.values.size(); ++i) y.values[i] = kStrange[i];
    if (n > 60) x.values[20] = HUGE_VALF, x.values[21] = -0.0f, x.values[22] = 5e37f;
    const auto got = run_plain("ModC", {x, y}, {});
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float wanted = std::fmod(x.values[i], y.values[i]);
      CHECK((same_bits(got[i], wanted) || (got[i] != got[i] && wanted != wanted)));
    }
  }
}

TEST_CASE("columns are added to their image tap by tap") {
  for (const std::int64_t n : {1, 2, 3, 5, 8, 11})
    for (const std::int64_t stride : {1, 2, 3}) {
      const std::int64_t rows = (n - 1) * stride + 3, columns = (n - 1) * stride + 2;
      const Tensor x = random_tensor({1, 2 * 4 * 3, n * n}, 1);
      std::vector<float> wanted(static_cast<std::size_t>(2 * (rows - 1) * columns), 0.0f);
      for (std::int64_t c = 0; c < 2; ++c)
        for (std::int64_t tap = 0; tap < 12; ++tap)
          for (std::int64_t at = 0; at < n * n; ++at) {
            const std::int64_t r = at / n * stride + tap / 3 - 1, k = at % n * stride + tap % 3 - 1;
            if (r < 0 || k < 0 || r >= rows - 1 || k >= columns) continue;
            wanted[static_cast<std::size_t>((c * (rows - 1) + r) * columns + k)] +=
                x.values[static_cast<std::size_t>((c * 12 + tap) * n * n + at)];
          }
      const auto got = run_plain("Col2Im", {x}, {{}, {stride, stride}, {}, {1, 1, 1, 0}, {0}, {0}, {rows - 1, columns}, {4, 3}});
      CHECK(got == wanted);
    }
}
