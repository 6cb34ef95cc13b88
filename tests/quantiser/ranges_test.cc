#include "src/quantiser/ranges.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "src/quantiser/assess.h"

using namespace sluice;
using namespace sluice::quantiser;

namespace {

/// Values of a bell's shape with deviation 1: 12 uniform numbers make one.
std::vector<float> bell(std::size_t count) {
  std::vector<float> values;
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = -6.0f;
    for (int k = 0; k < 12; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<float>(state >> 40) / static_cast<float>(1 << 24);
    }
    values.push_back(sum);
  }
  return values;
}

double error_with(const Range& range, const std::vector<float>& values) {
  double sum = 0;
  const float scale = range.scale();
  for (const float value : values) {
    const float byte = std::clamp(std::nearbyint(value / scale) + static_cast<float>(range.zero()), 0.0f, 255.0f);
    const double difference = value - scale * (byte - static_cast<float>(range.zero()));
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

TEST_CASE("a range holds zero, and a byte stands for it exactly") {
  const Range range{-1.0f, 3.0f};
  CHECK(range.scale() == Approx(4.0 / 255));
  CHECK(range.zero() == 64);
  CHECK(Range{}.scale() == 1.0f);
  CHECK(Range{}.zero() == 0);
  CHECK(Range{-2.0f, 0.0f}.zero() == 255);
}

TEST_CASE("the whole range is that of all values, however they come") {
  Histogram histogram;
  const std::vector<float> first{0.5f, 0.0f, 0.001f}, second{-3.0f, 700.0f, NAN, INFINITY};
  histogram.add(first);
  histogram.add(second);
  const Range range = histogram.range(Method::kMinMax, 100);
  CHECK(range.low == -3.0f);
  CHECK(range.high == 700.0f);
  Histogram zeros;
  zeros.add(std::vector<float>(10));
  for (const Method method : {Method::kMinMax, Method::kPercentile, Method::kError}) CHECK(zeros.range(method, 99).high == 0.0f);
}

TEST_CASE("a percentile cuts the few largest values") {
  Histogram histogram;
  std::vector<float> values(10000, 1.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 1000.0f;
  values[77] = 50.0f;
  histogram.add(values);
  CHECK(histogram.range(Method::kMinMax, 99.9).high == 50.0f);
  const Range range = histogram.range(Method::kPercentile, 99.9);
  CHECK(range.low == 0.0f);
  CHECK(range.high < 1.1f);
  CHECK(range.high > 0.9f);
}

TEST_CASE("the least squared error is less than that of all values, and of any share of them") {
  std::vector<float> values = bell(400000);
  values[5] = 12.0f;
  Histogram histogram;
  histogram.add(std::span(values).first(10));  // the interval grows afterwards
  histogram.add(std::span(values).subspan(10));
  const Range best = histogram.range(Method::kError, 0);
  const double least = error_with(best, values);
  CHECK(least < 0.9 * error_with(histogram.range(Method::kMinMax, 0), values));
  for (const float end : {2.0f, 2.5f, 6.0f, 12.0f}) CHECK(least < error_with({-end, end}, values) * 1.02);
}

TEST_CASE("noise is told in decibels") {
  Noise noise;
  const std::vector<float> wanted{3.0f, -4.0f}, found{3.0f, -4.5f};
  noise.add(wanted, wanted);
  CHECK(std::isinf(noise.decibels()));
  noise.add(wanted, found);
  CHECK(noise.decibels() == Approx(10 * std::log10(50 / 0.25)));
}

TEST_CASE("the top class is compared along the axis of classes, piece by piece") {
  Agreement agreement;
  agreement.show({2, 3});
  const std::vector<float> wanted{1, 5, 2, 9, 0, 0}, found{1, 4, 2, 0, 9, 0};
  agreement.add(0, std::span(wanted).first(2), std::span(found).first(2));
  agreement.add(2, std::span(wanted).subspan(2), std::span(found).subspan(2));
  CHECK(agreement.rows() == 2);
  CHECK(agreement.agreeing() == 1);
  agreement.show({1, 2, 1, 3});  // an image: classes are channels
  const std::vector<float> image{1, 0, 1, 0, 1, 0}, other{1, 0, 0, 0, 1, 1};
  agreement.add(0, image, other);
  CHECK(agreement.rows() == 5);
  CHECK(agreement.agreeing() == 3);
}
