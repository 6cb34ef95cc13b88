// Plain operators that walk lines, several rows at once or strided copies, against loops over single elements: sizes 1 to 10, odd and
// larger than what is done at once; element types of every size; results bit by bit.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "tests/kernels/plain_values.h"

using namespace sluice;
using namespace sluice::kernels;
using namespace sluice::kernels::plain;
using namespace sluice::kernels::test;

TEST_CASE("reductions over any axes add values in their order") {
  for (const std::int64_t size : kSizes)
    for (const auto& axes : Lists{{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}})
      for (const std::string_view name : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1"}) {
        const Values x = random_values(DType::kF32, Shape{9, 3, size}, 1, true);
        const Values y = run_plain(name, {x}, {axes, {1}, {0}});
        std::vector<double> sums(static_cast<std::size_t>(y.shape.element_count()), name == "ReduceMax"   ? -HUGE_VAL
                                                                                    : name == "ReduceMin" ? HUGE_VAL
                                                                                                          : 0.0);
        for (std::int64_t i = 0; i < x.shape.element_count(); ++i) {
          auto index = index_of(x.shape, i);
          for (const std::int64_t axis : axes) index[static_cast<std::size_t>(axis)] = 0;
          double& sum = sums[static_cast<std::size_t>(offset_of(y.shape, index))];
          const double v = x.at<float>(i);
          if (name == "ReduceMax") sum = v > sum || v != v ? v : sum;
          if (name == "ReduceMin") sum = v < sum || v != v ? v : sum;
          if (name == "ReduceSum") sum += v;
          if (name == "ReduceSumSquare") sum += v * v;
          if (name == "ReduceL1") sum += v < 0 ? -v : v;
        }
        INFO(name << " of " << size);
        bool same = true;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const auto want = static_cast<float>(sums[i]), got = y.at<float>(static_cast<std::int64_t>(i));
          same = same && (want == got ? std::signbit(want) == std::signbit(got) : want != want && got != got);
        }
        CHECK(same);
      }
}

TEST_CASE("extremes are the first of equals, or the last") {
  for (const std::int64_t size : kSizes)
    for (const bool largest : {false, true})
      for (const bool last : {false, true}) {
        const Values x = random_values(DType::kF32, Shape{2, 7, size}, 2);
        const Values y = run_plain(largest ? "ArgMax" : "ArgMin", {x}, {{1}, {0}, {last ? 1 : 0}});
        bool same = true;
        for (std::int64_t o = 0; o < 2; ++o)
          for (std::int64_t i = 0; i < size; ++i) {
            std::int64_t best = 0;
            const auto at = [&](std::int64_t k) { return x.at<float>((o * 7 + k) * size + i); };
            for (std::int64_t k = 1; k < 7; ++k)
              if ((largest ? at(k) > at(best) : at(k) < at(best)) || (last && at(k) == at(best))) best = k;
            same = same && y.at<std::int64_t>(o * size + i) == best;
          }
        CHECK(same);
      }
}

TEST_CASE("the k best come in order, NaN last, of equals the first") {
  for (const std::int64_t size : kSizes)
    for (std::int64_t k = 0; k <= std::min<std::int64_t>(size, 12); ++k)
      for (const bool largest : {false, true}) {
        const Values x = random_values(DType::kF32, Shape{3, size, 2}, 3, true);
        if (k == 0) continue;
        const Values places = run_plain("TopK", {x}, {{k}, {1}, {largest ? 1 : 0}, {1}}, 1);
        for (std::int64_t o = 0; o < 3; ++o)
          for (std::int64_t i = 0; i < 2; ++i) {
            const auto at = [&](std::int64_t p) { return x.at<float>((o * size + p) * 2 + i); };
            std::vector<std::int64_t> order(static_cast<std::size_t>(size));
            for (std::int64_t p = 0; p < size; ++p) order[static_cast<std::size_t>(p)] = p;
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
              if (at(a) != at(a) || at(b) != at(b)) return at(a) == at(a) && at(b) != at(b);
              return largest ? at(a) > at(b) : at(a) < at(b);
            });
            bool same = true;
            for (std::int64_t p = 0; p < k; ++p)
              same = same && places.at<std::int64_t>((o * k + p) * 2 + i) == order[static_cast<std::size_t>(p)];
            INFO(k << " of " << size);
            CHECK(same);
          }
      }
}

TEST_CASE("scattered elements meet their places one after the other, rows of one index at once") {
  for (const std::int64_t size : kSizes)
    for (const int axis : {0, 1})
      for (const std::int64_t reduction : {0, 1, 2, 3, 4})
        for (const bool rows : {false, true}) {
          Values y = random_values(DType::kF32, Shape{9, size}, 7);
          const Values updates = random_values(DType::kF32, Shape{7, size}, 8);
          Values places = random_values(DType::kI64, Shape{7, size}, 9);
          for (std::int64_t i = 0; i < 7 * size; ++i)
            set_integer({DType::kI64, places.shape, places.bytes.data()}, i, (rows ? i / size * 5 : i * 5) % (axis == 0 ? 9 : size));
          const Values got = run_plain("ScatterElements", {y, places, updates}, {{axis}, {reduction}});
          auto* const to = reinterpret_cast<float*>(y.bytes.data());
          for (std::int64_t i = 0; i < 7 * size; ++i) {
            const std::int64_t place = places.at<std::int64_t>(i);
            float& at = to[axis == 0 ? place * size + i % size : i / size * size + place];
            const float u = updates.at<float>(i);
            at = reduction == 0   ? u
                 : reduction == 1 ? at + u
                 : reduction == 2 ? at * u
                 : reduction == 3 ? std::max(at, u)
                                  : std::min(at, u);
          }
          INFO(size << " along " << axis << " by " << reduction);
          CHECK(got.bytes == y.bytes);
        }
}

TEST_CASE("bicubic samples stay beside the border up to half a pixel outside") {
  for (const float x : {-0.75f, -0.5f, -0.25f, 0.0f, 0.4f, 3.2f, 3.5f, 3.75f}) {
    Values image{DType::kF32, Shape{1, 1, 1, 4}, {}}, grid{DType::kF32, Shape{1, 1, 1, 2}, {}};
    const float values[] = {1, -2, 5, 3}, place[] = {(2 * x + 1) / 4 - 1, 0};
    image.bytes.assign(reinterpret_cast<const std::byte*>(values), reinterpret_cast<const std::byte*>(values + 4));
    grid.bytes.assign(reinterpret_cast<const std::byte*>(place), reinterpret_cast<const std::byte*>(place + 2));
    const Values got = run_plain("GridSample", {image, grid}, {{0}, {4}, {1}});
    const double at = x < -0.5f ? 0.0 : x > 3.5f ? 3.0 : static_cast<double>(x), floor = std::floor(at);
    double wanted = 0;
    for (int k = -1; k <= 2; ++k) {
      const double d = std::fabs(at - floor - k), a = -0.75;
      const double weight = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      wanted += weight * static_cast<double>(values[std::clamp(static_cast<int>(floor) + k, 0, 3)]);
    }
    INFO(x);
    CHECK(got.at<float>(0) == Approx(wanted).margin(1e-5));
  }
}

TEST_CASE("comparisons and choices broadcast") {
  for (const std::int64_t size : kSizes)
    for (const DType dtype : kTypes)
      for (const Shape& other : {Shape{2, 3, size}, Shape{size}, Shape{3, 1}, Shape{1}}) {
        const Values x = random_values(dtype, Shape{2, 3, size}, 4, true), y = random_values(dtype, other, 5, true);
        const auto beside = [&](const Shape& shape, std::int64_t i) {
          auto index = index_of(x.shape, i);
          index.erase(index.begin(), index.begin() + (3 - shape.rank()));
          for (int axis = 0; axis < shape.rank(); ++axis)
            if (shape[axis] == 1) index[static_cast<std::size_t>(axis)] = 0;
          return offset_of(shape, index);
        };
        const Values less = run_plain("Less", {x, y}, {}), equal = run_plain("Equal", {x, y}, {});
        const Values condition = random_values(DType::kBool, other, 6), chosen = run_plain("Where", {condition, x, y}, {});
        bool same = true;
        for (std::int64_t i = 0; i < x.shape.element_count(); ++i) {
          const std::int64_t k = beside(other, i);
          with_type(dtype, [&](auto zero) {
            using T = decltype(zero);
            same = same && (x.at<T>(i) < y.at<T>(k)) == (less.at<std::uint8_t>(i) != 0);
            same = same && (x.at<T>(i) == y.at<T>(k)) == (equal.at<std::uint8_t>(i) != 0);
          });
          same = same && (condition.at<std::uint8_t>(k) != 0 ? chosen.same(i, x, i) : chosen.same(i, y, k));
        }
        INFO(size << " beside " << other.to_string());
        CHECK(same);
      }
}

TEST_CASE("functions of bits broadcast, and shifts by more than there are bits give nothing") {
  const auto one = [](std::string_view name, std::uint64_t a, std::uint64_t b) {
    if (name == "BitwiseAnd") return a & b;
    if (name == "BitwiseOr") return a | b;
    if (name == "BitwiseXor") return a ^ b;
    if (b > 63) return std::uint64_t{0};
    return name == "ShiftLeft" ? a << b : a >> b;
  };
  for (const std::int64_t size : kSizes)
    for (const DType dtype : {DType::kU8, DType::kU16, DType::kU32, DType::kU64})
      for (const auto& [first, second] : {std::pair{Shape{2, 3, size}, Shape{2, 3, size}},
                                          {Shape{2, 3, size}, Shape{1}},
                                          {Shape{1}, Shape{2, 3, size}},
                                          {Shape{2, 3, size}, Shape{3, 1}}})
        for (const std::string_view name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "ShiftLeft", "ShiftRight"}) {
          Values x = random_values(dtype, first, 14), y = random_values(dtype, second, 15);
          const Values z = run_plain(name, {x, y}, {});
          bool same = true;
          for (std::int64_t i = 0; i < z.shape.element_count(); ++i) {
            const std::int64_t at_x = first.rank() == 1 ? 0 : i;
            const std::int64_t at_y = second.rank() == 1 ? 0 : second.rank() == 2 ? i / size % 3 : i;
            with_type(dtype, [&](auto zero) {
              using T = decltype(zero);
              const auto wide = [](T v) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(v)); };
              same = same && z.at<T>(i) == static_cast<T>(one(name, wide(x.at<T>(at_x)), wide(y.at<T>(at_y))));
            });
          }
          INFO(name << " of " << size);
          CHECK(same);
        }
}

TEST_CASE("quantised values are rounded to the nearest, halves to even, and cut at the ends") {
  const auto check = [](float value, std::int64_t zero, auto type) {
    using T = decltype(type);
    constexpr DType kType = std::is_same_v<T, std::uint8_t> ? DType::kU8 : std::is_same_v<T, std::int8_t> ? DType::kI8 : DType::kI16;
    Values x{DType::kF32, Shape{3}, {}}, scale{DType::kF32, Shape{}, {}}, point{kType, Shape{}, {}};
    const float values[] = {value, value, value}, one = 0.5f;
    const auto z = static_cast<T>(zero);
    x.bytes.assign(reinterpret_cast<const std::byte*>(values), reinterpret_cast<const std::byte*>(values + 3));
    scale.bytes.assign(reinterpret_cast<const std::byte*>(&one), reinterpret_cast<const std::byte*>(&one + 1));
    point.bytes.assign(reinterpret_cast<const std::byte*>(&z), reinterpret_cast<const std::byte*>(&z + 1));
    const Values y = run_plain("QuantizeLinear", {x, scale, point}, {{1}, {0}, {0}, {1}});
    const double wanted = std::nearbyint(static_cast<double>(value / one)) + static_cast<double>(zero);
    const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    const T want = wanted >= high ? std::numeric_limits<T>::max() : wanted > low ? static_cast<T>(wanted) : std::numeric_limits<T>::min();
    INFO(value << " at " << zero);
    CHECK(y.at<T>(1) == want);
  };
  std::vector<float> values{0.0f, -0.0f, 1e9f, -1e9f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 0.24999999f, 16383.5f, -16384.25f};
  for (int i = -600; i <= 600; ++i) values.push_back(static_cast<float>(i) * 0.125f);
  for (const float value : values)
    for (const std::int64_t zero : {0, 3, 127}) {
      check(value, zero, std::uint8_t{});
      check(value, -zero, std::int8_t{});
      check(value, zero * 200, std::int16_t{});
    }
}

TEST_CASE("quantised values of a run are those of each alone") {
  for (const DType dtype : {DType::kU8, DType::kI8})
    for (const std::int64_t size : {1, 7, 15, 16, 17, 63, 64, 65, 5001})
      for (const std::int64_t channels : {1, 3}) {
        const Values x = random_values(DType::kF32, Shape{channels, size}, static_cast<unsigned>(size), true);
        Values scale = random_values(DType::kF32, Shape{channels}, 3);
        for (std::int64_t c = 0; c < channels; ++c)
          PlainTensor{DType::kF32, scale.shape, scale.bytes.data()}.as<float>()[c] = 0.02f + 0.013f * static_cast<float>(c);
        const Values zero = random_values(dtype, Shape{channels}, 4);
        const Values got = run_plain("QuantizeLinear", {x, scale, zero}, {{0}, {0}, {0}, {1}});
        bool same = true;
        for (std::int64_t i = 0; i < channels * size; ++i) {
          const auto one_of = [&](const Values& from, std::int64_t k) {
            const std::size_t bytes = size_of(from.dtype), at = static_cast<std::size_t>(k) * bytes;
            return Values{
                from.dtype,
                Shape{1},
                {from.bytes.begin() + static_cast<std::ptrdiff_t>(at), from.bytes.begin() + static_cast<std::ptrdiff_t>(at + bytes)}};
          };
          const Values alone =
              run_plain("QuantizeLinear", {one_of(x, i), one_of(scale, i / size), one_of(zero, i / size)}, {{0}, {0}, {0}, {1}});
          same = same && got.same(i, alone, 0);
        }
        INFO(size << " of " << channels << " channels");
        CHECK(same);
      }
}

TEST_CASE("values move to their places, of every size") {
  for (const std::int64_t size : kSizes)
    for (const DType dtype : kTypes) {
      const Values x = random_values(dtype, Shape{2, 3, size}, 7);
      const Values turned = run_plain("Transpose", {x}, {{2, 0, 1}}), tiled = run_plain("Tile", {x}, {{2, 1, 3}});
      const Values row = random_values(dtype, Shape{3, 1}, 8), expanded = run_plain("Expand", {row}, {{2, 3, size}});
      const Values sliced = run_plain("Slice", {x}, {{-1}, {-size - 1}, {2}, {-2}}), joined = run_plain("Concat", {x, x}, {{1}});
      const Values mirrored = run_plain("Pad", {x}, {{0, 1, 0, 0, 2, 0}, {}, {1}, {bits(0)}});
      bool same = true;
      for (std::int64_t i = 0; i < turned.shape.element_count(); ++i) {
        const auto at = index_of(turned.shape, i);
        same = same && turned.same(i, x, (at[1] * 3 + at[2]) * size + at[0]);
      }
      for (std::int64_t i = 0; i < tiled.shape.element_count(); ++i) {
        const auto at = index_of(tiled.shape, i);
        same = same && tiled.same(i, x, (at[0] % 2 * 3 + at[1]) * size + at[2] % size);
      }
      for (std::int64_t i = 0; i < expanded.shape.element_count(); ++i) same = same && expanded.same(i, row, i / size % 3);
      for (std::int64_t i = 0; i < sliced.shape.element_count(); ++i) {
        const auto at = index_of(sliced.shape, i);
        same = same && sliced.same(i, x, (at[0] * 3 + at[1]) * size + size - 1 - 2 * at[2]);
      }
      for (std::int64_t i = 0; i < joined.shape.element_count(); ++i) {
        const auto at = index_of(joined.shape, i);
        same = same && joined.same(i, x, (at[0] * 3 + at[1] % 3) * size + at[2]);
      }
      for (std::int64_t i = 0; i < mirrored.shape.element_count(); ++i) {
        const auto at = index_of(mirrored.shape, i);
        const std::int64_t place = std::abs(at[1] - 1), folded = place > 2 ? 4 - place : place;
        same = same && mirrored.same(i, x, (at[0] * 3 + folded) * size + at[2]);
      }
      INFO("size " << size << ", " << size_of(dtype) << " bytes");
      CHECK(same);
    }
}

TEST_CASE("values are gathered from either end") {
  for (const std::int64_t size : kSizes)
    for (const DType dtype : kTypes)
      for (const std::int64_t outer : {1, 2, 33}) {
        const Values x = random_values(dtype, Shape{outer, 5, size}, 9);
        Values places{DType::kI64, Shape{4}, {}}, each{DType::kI64, Shape{outer, 2, size}, {}};
        const std::int64_t four[] = {4, -1, 0, -5};
        places.bytes.assign(reinterpret_cast<const std::byte*>(four), reinterpret_cast<const std::byte*>(four + 4));
        std::vector<std::int64_t> wanted(static_cast<std::size_t>(each.shape.element_count()));
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::int64_t>(i * 7 % 10) - 5;
        each.bytes.resize(wanted.size() * sizeof(std::int64_t));
        std::memcpy(each.bytes.data(), wanted.data(), each.bytes.size());
        const Values gathered = run_plain("Gather", {x, places}, {{1}}), elements = run_plain("GatherElements", {x, each}, {{1}});
        bool same = true;
        for (std::int64_t i = 0; i < gathered.shape.element_count(); ++i) {
          const auto at = index_of(gathered.shape, i);
          same = same && gathered.same(i, x, (at[0] * 5 + (four[at[1]] + 5) % 5) * size + at[2]);
        }
        for (std::int64_t i = 0; i < elements.shape.element_count(); ++i) {
          const auto at = index_of(elements.shape, i);
          same = same && elements.same(i, x, (at[0] * 5 + (wanted[static_cast<std::size_t>(i)] + 5) % 5) * size + at[2]);
        }
        CHECK(same);
      }
}

TEST_CASE("means of windows of one to three axes are those of their taps, row after row") {
  std::mt19937 random(11);
  const auto drawn = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int turn = 0; turn < 300; ++turn) {
    // As three axes, those in front of one value.
    const std::size_t axes = static_cast<std::size_t>(1 + turn % 3), none = 3 - axes;
    std::array<std::int64_t, 3> in{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{}, after{};
    Lists arguments{{}, {}, {}, {}, {}, {}, {turn % 2}};
    std::vector<std::int64_t> extents{2, 3}, ends;
    for (std::size_t a = none; a < 3; ++a) {
      kernel[a] = drawn(4);
      stride[a] = drawn(3);
      dilation[a] = turn % 4 == 0 ? drawn(3) : 1;
      before[a] = drawn(kernel[a]) - 1;
      after[a] = drawn(kernel[a]) - 1;
      in[a] = (kernel[a] - 1) * dilation[a] + drawn(12) + (turn % 20 == 0 && a == 2 ? 600 : 0);
      extents.push_back(in[a]);
      arguments[0].push_back(kernel[a]);
      arguments[1].push_back(stride[a]);
      arguments[2].push_back(dilation[a]);
      arguments[3].push_back(before[a]);
    }
    for (std::size_t a = none; a < 3; ++a) arguments[3].push_back(after[a]);
    const Shape shape = *Shape::make(extents);
    INFO("turn " << turn << ", " << shape.to_string());
    const Values x = random_values(DType::kF32, shape, static_cast<unsigned>(turn));
    const Values got = run_plain("AveragePool", {x}, arguments);
    std::array<std::int64_t, 3> out{};
    for (std::size_t a = 0; a < 3; ++a) out[a] = (in[a] + before[a] + after[a] - (kernel[a] - 1) * dilation[a] - 1) / stride[a] + 1;
    REQUIRE(got.shape.element_count() == 6 * out[0] * out[1] * out[2]);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < got.shape.element_count(); ++i) {
      const std::int64_t image = i / (out[0] * out[1] * out[2]);
      const std::array<std::int64_t, 3> at{i / (out[1] * out[2]) % out[0], i / out[2] % out[1], i % out[2]};
      float sum = 0.0f;
      std::int64_t terms = 0;
      for (std::int64_t z = 0; z < kernel[0]; ++z)
        for (std::int64_t y = 0; y < kernel[1]; ++y) {
          float row = 0.0f;
          for (std::int64_t k = 0; k < kernel[2]; ++k) {
            const std::array<std::int64_t, 3> taps{z, y, k};
            bool inside = true, counted = true;
            std::int64_t place = image;
            for (std::size_t a = 0; a < 3; ++a) {
              const std::int64_t there = at[a] * stride[a] - before[a] + taps[a] * dilation[a];
              inside = inside && there >= 0 && there < in[a];
              counted = counted && there < in[a] + after[a];
              place = place * in[a] + there;
            }
            if (inside) row += x.at<float>(place);
            terms += turn % 2 == 0 ? inside : counted;
          }
          sum += row;
        }
      wrong += got.at<float>(i) == sum / static_cast<float>(std::max<std::int64_t>(terms, 1)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the greatest values of windows of one to three axes lie where their places say") {
  std::mt19937 random(7);
  const auto drawn = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(most)); };
  for (int turn = 0; turn < 300; ++turn) {
    const auto axes = static_cast<std::size_t>(1 + turn % 3);
    std::vector<std::int64_t> extents{2, 3};
    std::vector<std::int64_t> kernel(axes), strides(axes), dilations(axes), pads(2 * axes);
    for (std::size_t a = 0; a < axes; ++a) {
      kernel[a] = drawn(4);
      strides[a] = drawn(3);
      dilations[a] = drawn(3);
      pads[a] = drawn(kernel[a]) - 1;
      pads[axes + a] = drawn(kernel[a]) - 1;
      const std::int64_t span = (kernel[a] - 1) * dilations[a] + 1;
      const std::int64_t wide = turn % 20 == 0 && a + 1 == axes ? 3000 : 0;  // more than are held at once
      extents.push_back(span + drawn(12) + wide);
    }
    const Shape shape = *Shape::make(extents);
    INFO("turn " << turn << ", " << shape.to_string());
    for (const DType dtype : {DType::kF32, DType::kU8}) {
      // Different values, so that each greatest value has one place.
      Values x = random_values(dtype, shape, static_cast<unsigned>(turn));
      if (dtype == DType::kF32)
        for (std::int64_t i = 0; i < shape.element_count(); ++i)
          PlainTensor{dtype, shape, x.bytes.data()}.as<float>()[i] = static_cast<float>((i * 7919) % shape.element_count());
      const Lists arguments{kernel, strides, dilations, pads, {}, {turn % 2}, {}};
      const Values got = run_plain("MaxPool", {x}, arguments), places = run_plain("MaxPool", {x}, arguments, 1);
      REQUIRE(got.shape == places.shape);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < got.shape.element_count(); ++i)
        if (const auto place = places.at<std::int64_t>(i); place >= 0 && !got.same(i, x, place)) ++wrong;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a diagonal of ones begins where it is said to, also outside") {
  for (const DType dtype : kTypes)
    for (const std::int64_t rows : {1, 2, 7})
      for (const std::int64_t columns : {1, 3, 9})
        for (const std::int64_t right :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{-2}, std::int64_t{5}, std::int64_t{-6}, INT64_MAX, INT64_MIN}) {
          const Values x = random_values(dtype, Shape{rows, columns}, 3);
          const Values y = run_plain("EyeLike", {x}, {{}, {right}});
          bool same = true;
          for (std::int64_t i = 0; i < rows * columns; ++i) {
            Values want{dtype, Shape{1}, std::vector<std::byte>(size_of(dtype))};
            const bool one = i % columns - i / columns == right;
            with_type(dtype, [&](auto zero) {
              const auto value = static_cast<decltype(zero)>(one);
              std::memcpy(want.bytes.data(), &value, sizeof value);
            });
            same = same && y.same(i, want, 0);
          }
          INFO(rows << " x " << columns << ", " << right);
          CHECK(same);
        }
}

TEST_CASE("the last axis is resized as any other, however many taps an output has") {
  const auto resized = [](const Values& x, int axis, std::int64_t extent, std::int64_t mode, bool antialias) {
    const double scale = static_cast<double>(extent) / static_cast<double>(x.shape[axis]);
    std::vector<std::int64_t> extents{x.shape[0], x.shape[1]}, scales{bits(1.0), bits(1.0)};
    extents[static_cast<std::size_t>(axis)] = extent;
    scales[static_cast<std::size_t>(axis)] = bits(scale);
    return run_plain("ResizeOfExtents", {x}, {extents, scales, {mode}, {0}, {0}, {bits(-0.75)}, {0}, {bits(0.0)}, {antialias ? 1 : 0}, {}});
  };
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t mode : {1, 2})
    for (const bool antialias : {false, true})
      for (const std::int64_t in : {1, 2, 3, 9, 40, 97, 240})
        for (const std::int64_t out : {1, 2, 5, 7, 11, 12, 13, 18, 21, 45, 100}) {
          const Values across = random_values(DType::kF32, Shape{kRows, in}, 5);
          Values down{DType::kF32, Shape{in, kRows}, std::vector<std::byte>(across.bytes.size())};
          for (std::int64_t i = 0; i < in * kRows; ++i)
            std::memcpy(down.bytes.data() + (i % in * kRows + i / in) * 4, across.bytes.data() + i * 4, 4);
          const Values a = resized(across, 1, out, mode, antialias), b = resized(down, 0, out, mode, antialias);
          bool same = true;
          for (std::int64_t i = 0; i < out * kRows; ++i) same = same && a.same(i, b, i % out * kRows + i / out);
          INFO(in << " to " << out << ", mode " << mode << ", antialias " << antialias);
          CHECK(same);
        }
}
