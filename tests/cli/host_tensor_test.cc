#include "src/cli/host_tensor.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "src/cli/compare.h"
#include "src/cli/failure.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

HostTensor floats(const std::vector<float>& values) {
  HostTensor tensor = make_host_tensor(DType::kF32, Shape{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

HostTensor integers(const std::vector<std::int64_t>& values) {
  HostTensor tensor = make_host_tensor(DType::kI64, Shape{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>().begin());
  return tensor;
}

}  // namespace

TEST_CASE("bf16 rounds to the nearest, ties to even") {
  const auto bits = [](float value) { return convert_values(floats({value}), DType::kBF16, "x").as<std::uint16_t>()[0]; };
  CHECK(bits(1.0f) == 0x3f80);
  CHECK(bits(1.0f + 1.0f / 256) == 0x3f80);  // tie, even below
  CHECK(bits(1.0f + 3.0f / 256) == 0x3f82);  // tie, even above
  CHECK(bits(-std::numeric_limits<float>::infinity()) == 0xff80);
  CHECK(bits(std::numeric_limits<float>::max()) == 0x7f80);
  const HostTensor nan = convert_values(floats({std::nanf("")}), DType::kBF16, "x");
  CHECK(std::isnan(value_at(DType::kBF16, nan.data.data(), 0)));
  const HostTensor back = convert_values(convert_values(floats({-0.15625f}), DType::kBF16, "x"), DType::kF32, "x");
  CHECK(back.as<float>()[0] == -0.15625f);
}

TEST_CASE("conversions keep values or are refused") {
  CHECK(convert_values(integers({-3, 7}), DType::kF32, "x").as<float>()[0] == -3.0f);
  CHECK(convert_values(integers({-3, 7}), DType::kI8, "x").as<std::int8_t>()[1] == 7);
  CHECK(convert_values(floats({0.5f}), DType::kF64, "x").as<double>()[0] == 0.5);
  CHECK_THROWS_AS(convert_values(integers({300}), DType::kU8, "x"), Failure);
  CHECK_THROWS_AS(convert_values(integers({-1}), DType::kU64, "x"), Failure);
  CHECK_THROWS_AS(convert_values(floats({1.0f}), DType::kI32, "x"), Failure);
}

TEST_CASE("shapes are compared without their ones") {
  CHECK(same_apart_from_ones(Shape{28, 28}, Shape{1, 1, 28, 28}));
  CHECK(same_apart_from_ones(Shape{1, 1}, Shape{}));
  CHECK_FALSE(same_apart_from_ones(Shape{28, 28}, Shape{28}));
  CHECK_FALSE(same_apart_from_ones(Shape{2, 3}, Shape{3, 2}));
}

TEST_CASE("a comparison says by how much and where") {
  const auto floats = [](const std::vector<float>& values) { return pieces_of(::floats(values)); };
  const Comparison same = compare(floats({1, 2}), floats({1, 2.0001f}), 1e-4);
  CHECK(same.agrees);
  const Comparison other = compare(floats({1, 2, 5}), floats({1, 2, 4}), 1e-4);
  CHECK_FALSE(other.agrees);
  CHECK(other.worst == 2);
  CHECK(other.beyond == 1);
  CHECK(other.max_difference == Approx(1.0));
  CHECK(other.allowed == Approx(4e-4));
  CHECK_FALSE(compare(floats({1, 2}), floats({1, 2, 3}), 1).shapes_agree);
  CHECK_FALSE(compare(floats({std::nanf(""), 2}), floats({1, 2}), 1).agrees);
  CHECK(compare(floats({std::nanf("")}), floats({std::nanf("")}), 0).agrees);
  CHECK_FALSE(compare(floats({INFINITY}), floats({-INFINITY}), 1).agrees);
}
