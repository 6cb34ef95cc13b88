#include "src/engine/port_copy.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "sluice/core/half.h"

namespace sluice::engine {
namespace {

struct Case {
  Shape onnx;
  std::array<std::int8_t, Shape::kMaxRank> perm;
  std::int64_t pixel_gap;  // channels of a neighbour between pixels
  std::int64_t row_gap;
};

Shape permuted(const Case& c) {
  Shape physical = c.onnx;
  for (int axis = 0; axis < c.onnx.rank(); ++axis) physical[axis] = c.onnx[c.perm[static_cast<std::size_t>(axis)]];
  return physical;
}

/// The element number of a physical index in the ONNX order, written out.
std::int64_t onnx_index(const Case& c, const Shape& physical, std::int64_t element) {
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (int axis = physical.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(c.perm[static_cast<std::size_t>(axis)])] = element % physical[axis];
    element /= physical[axis];
  }
  std::int64_t onnx = 0;
  for (int axis = 0; axis < c.onnx.rank(); ++axis) onnx = onnx * c.onnx[axis] + index[static_cast<std::size_t>(axis)];
  return onnx;
}

}  // namespace

TEST_CASE("a port's values land where the permutation and the pitches say, and come back the same") {
  const Case c = GENERATE(Case{{2, 3, 5, 7}, {0, 2, 3, 1}, 0, 0}, Case{{1, 20, 4, 3}, {0, 2, 3, 1}, 4, 8}, Case{{4, 6}, {0, 1}, 0, 0},
                          Case{{4, 6}, {1, 0}, 0, 16}, Case{{2, 3, 4}, {0, 2, 1}, 0, 0}, Case{{2, 3, 4, 5}, {0, 1, 2, 3}, 0, 0},
                          Case{{2, 3, 4, 5}, {0, 1, 2, 3}, 0, 8}, Case{{2, 3, 4, 5}, {0, 1, 2, 3}, 2, 0}, Case{{3, 1, 5}, {1, 0, 2}, 0, 4},
                          Case{{9}, {0}, 0, 0}, Case{{}, {}, 0, 0}, Case{{2, 3, 2, 2, 3}, {4, 0, 3, 1, 2}, 0, 4},
                          Case{{1, 3, 0, 2}, {0, 2, 3, 1}, 0, 0});
  const DType dtype = GENERATE(DType::kF32, DType::kI64, DType::kU8, DType::kF16);
  const Shape physical = permuted(c);
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  CAPTURE(c.onnx.to_string(), physical.to_string(), size);

  model::Graph graph;
  graph.tensors.push_back({"t", dtype, physical, WeightId()});
  const auto copy = PortCopy::make(graph, {"port", TensorId(0), c.onnx, c.perm});
  REQUIRE(copy);
  const std::int64_t count = physical.element_count();
  REQUIRE(copy->bytes() == Bytes(static_cast<std::uint64_t>(count * size)));

  std::vector<std::byte> onnx(copy->bytes().count());
  for (std::size_t i = 0; i < onnx.size(); ++i) onnx[i] = static_cast<std::byte>(i * 7 + i / 256);
  RowView view = dense_view(nullptr, physical, dtype);
  view.pixel_pitch += c.pixel_gap * size;
  view.row_pitch = view.pixels * view.pixel_pitch + c.row_gap * size;
  std::vector<std::byte> arena(static_cast<std::size_t>(view.rows * view.row_pitch) + 1, std::byte{0xEE});
  view.data = arena.data();
  copy->to_arena(dtype, onnx, view);

  bool right = true;
  std::int64_t element = 0;
  for (std::int64_t row = 0; row < view.rows; ++row)
    for (std::int64_t pixel = 0; pixel < view.pixels; ++pixel)
      for (std::int64_t channel = 0; channel < view.channels; ++channel, ++element) {
        const std::byte* stored = view.at<std::byte>(row, pixel) + channel * size;
        right = right && std::equal(stored, stored + size, onnx.data() + onnx_index(c, physical, element) * size);
      }
  CHECK(right);
  const auto untouched = std::count(arena.begin(), arena.end(), std::byte{0xEE});
  const auto same = std::count(onnx.begin(), onnx.end(), std::byte{0xEE});
  CHECK(untouched == static_cast<std::int64_t>(arena.size()) - count * size + same);

  std::vector<std::byte> back(onnx.size());
  copy->from_arena(dtype, view, 0, back);
  CHECK(back == onnx);

  std::fill(back.begin(), back.end(), std::byte{});
  const std::size_t part = 5 * size_of(dtype);  // begins and ends within runs of the last axis
  for (std::size_t at = 0; at < back.size(); at += part) {
    copy->from_arena(dtype, view, static_cast<std::int64_t>(at / size_of(dtype)),
                     std::span(back).subspan(at, std::min(part, back.size() - at)));
  }
  CHECK(back == onnx);
}

TEST_CASE("f16, bf16 and f64 of the caller are f32 in the arena, and come back rounded once") {
  model::Graph graph;
  graph.tensors.push_back({"t", DType::kF32, {1, 2, 2, 3}, WeightId()});
  const auto copy = PortCopy::make(graph, {"port", TensorId(0), {1, 3, 2, 2}, {0, 2, 3, 1}});
  REQUIRE(copy);
  std::vector<float> arena(12);
  RowView view = dense_view(reinterpret_cast<std::byte*>(arena.data()), graph.tensors[0].shape, DType::kF32);
  // Element k of the ONNX order, channel k / 4, lies at pixel k % 4.
  const auto at = [&](std::size_t k) -> float& { return arena[k % 4 * 3 + k / 4]; };

  std::vector<std::uint16_t> halves(12);
  for (std::size_t k = 0; k < 12; ++k) halves[k] = f16_of_float(0.1f * static_cast<float>(k) - 0.5f);
  CHECK(copy->bytes_as(DType::kF16) == Bytes(24));
  copy->to_arena(DType::kF16, std::as_bytes(std::span(halves)), view);
  for (std::size_t k = 0; k < 12; ++k) CHECK(at(k) == float_of_f16(halves[k]));

  at(7) = 1.0f + 0x1p-8f + 0x1p-20f;  // just above the middle of two bf16
  std::vector<std::uint16_t> brains(5);
  copy->from_arena(DType::kBF16, view, 4, std::as_writable_bytes(std::span(brains)));
  CHECK(brains[3] == bf16_of_float(1.0f + 0x1p-7f));
  CHECK(brains[0] == bf16_of_float(at(4)));

  std::vector<double> doubles(12, 1.0 + 0x1p-30);
  copy->to_arena(DType::kF64, std::as_bytes(std::span(doubles)), view);
  CHECK(at(11) == 1.0f);
  copy->from_arena(DType::kF64, view, 0, std::as_writable_bytes(std::span(doubles)));
  CHECK(doubles == std::vector<double>(12, 1.0));

  const float plain[] = {1.5f, -2.0f};
  copy->from_dense(DType::kF16, reinterpret_cast<const std::byte*>(plain), 1, std::as_writable_bytes(std::span(halves).first(1)));
  CHECK(halves[0] == f16_of_float(-2.0f));
}

TEST_CASE("threads share the copy of a large input, whatever its order, type and extents") {
  const auto pool = make_thread_pool(3);
  REQUIRE(pool);
  const Case c =
      GENERATE(Case{{1, 256, 31, 33}, {0, 2, 3, 1}, 0, 0}, Case{{3, 5, 131, 67}, {0, 2, 3, 1}, 4, 8}, Case{{70001}, {0}, 0, 0},
               Case{{313, 257}, {1, 0}, 0, 16}, Case{{7, 101, 103}, {0, 2, 1}, 0, 0}, Case{{1, 70000, 1, 1}, {0, 2, 3, 1}, 0, 0});
  const DType outside = GENERATE(DType::kF32, DType::kF64);
  const Shape physical = permuted(c);
  model::Graph graph;
  graph.tensors.push_back({"t", DType::kF32, physical, WeightId()});
  const auto copy = PortCopy::make(graph, {"port", TensorId(0), c.onnx, c.perm});
  REQUIRE(copy);
  std::vector<std::byte> onnx(copy->bytes_as(outside).count());
  for (std::size_t i = 0; i < onnx.size(); ++i) onnx[i] = static_cast<std::byte>(i * 7 % 61 + i / 256 % 3);
  RowView view = dense_view(nullptr, physical, DType::kF32);
  view.pixel_pitch += c.pixel_gap * 4;
  view.row_pitch = view.pixels * view.pixel_pitch + c.row_gap * 4;
  std::vector<std::byte> alone(static_cast<std::size_t>(view.rows * view.row_pitch), std::byte{0xEE}), shared = alone;
  view.data = alone.data();
  copy->to_arena(outside, onnx, view);
  view.data = shared.data();
  copy->to_arena(outside, onnx, view, pool->get());
  CHECK(shared == alone);
}

TEST_CASE("a tensor without elements takes no time, however many rows it has") {
  model::Graph graph;
  graph.tensors.push_back({"t", DType::kF32, {1 << 20, 1 << 20, 0, 3}, WeightId()});
  const auto copy = PortCopy::make(graph, {"port", TensorId(0), {1 << 20, 3, 1 << 20, 0}, {0, 2, 3, 1}});
  REQUIRE(copy);
  CHECK(copy->bytes() == Bytes());
  const RowView view = dense_view(nullptr, graph.tensors[0].shape, DType::kF32);
  copy->to_arena(DType::kF32, {}, view);  // 3 * 2^40 steps would not end
  copy->from_arena(DType::kF32, view, 0, {});
}

TEST_CASE("a port that is not its tensor, permuted, is refused") {
  model::Graph graph;
  graph.tensors.push_back({"t", DType::kF32, {1, 4, 5, 3}, WeightId()});
  const auto refused = [&](const Shape& onnx, std::array<std::int8_t, Shape::kMaxRank> perm) {
    return !PortCopy::make(graph, {"port", TensorId(0), onnx, perm});
  };
  CHECK_FALSE(refused({1, 3, 4, 5}, {0, 2, 3, 1}));
  CHECK(refused({1, 3, 4}, {0, 2, 1}));
  CHECK(refused({1, 3, 5, 4}, {0, 2, 3, 1}));
  CHECK(refused({1, 3, 4, 5}, {0, 2, 3, 9}));
  CHECK(refused({1, 3, 4, 5}, {0, 2, 3, -1}));
  graph.tensors[0].shape = {3, 3};
  CHECK(refused({3, 3}, {0, 0}));
}

}  // namespace sluice::engine
