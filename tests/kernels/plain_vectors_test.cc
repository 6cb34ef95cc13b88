// The inner loops of plain operators in vectors, against loops over single values: every instruction set that the CPU has, sizes 1 to 10,
// odd ones and whole vectors; bit by bit.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "src/kernels/plain/pool_lines.h"
#include "src/kernels/plain/result_rows.h"
#include "src/kernels/plain/vectors.h"

using namespace sluice;
using namespace sluice::kernels::plain;

namespace {

constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 85, 257};
constexpr Isa kIsas[] = {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512};

/// Calls body(table, isa) for each instruction set at hand.
template <class Body>
void for_isas(const Body& body) {
  for (const Isa isa : kIsas) {
    const bool same_family = isa == Isa::kScalar || (isa == Isa::kNeon) == (best_isa() == Isa::kNeon);
    if (!same_family || isa > best_isa()) continue;
    INFO(name_of(isa));
    body(vector_table(isa));
  }
}

/// Many equals; where `strange`, also NaN, infinities and both zeros.
std::vector<float> values_of(std::int64_t count, unsigned seed, bool strange) {
  constexpr float kStrange[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = (static_cast<float>(random() % 41) - 20.0f) * 0.37f;
    if (strange && random() % 4 == 0) value = kStrange[random() % 5];
  }
  return values;
}

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b); }

template <class Function>
double sum_in_sixteen(const std::vector<float>& x, const Function& term) {
  double sums[16] = {};
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % 16] += term(static_cast<double>(x[i]));
  for (int half = 8; half >= 1; half /= 2)
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

double product_in_sixteen(const std::vector<float>& x) {
  double products[16];
  std::fill(products, products + 16, 1.0);
  for (std::size_t i = 0; i < x.size(); ++i) products[i % 16] *= static_cast<double>(x[i]);
  for (int half = 8; half >= 1; half /= 2)
    for (int lane = 0; lane < half; ++lane) products[lane] *= products[lane + half];
  return products[0];
}

/// Is a before b?
bool before(float a, float b, bool largest) {
  if (a != a || b != b) return a == a && b != b;
  return largest ? a > b : a < b;
}

}  // namespace

TEST_CASE("the range of values and zero leaves NaN out") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes)
      for (unsigned seed = 0; seed < 40; ++seed) {
        std::vector<float> x = values_of(n, seed, seed % 2 == 1);
        if (seed % 4 >= 2)  // of one sign
          for (float& value : x) value = seed % 8 < 4 ? std::fabs(value) : -std::fabs(value);
        float low = 0, high = 0;
        for (const float value : x) {
          low = value < low ? value : low;
          high = value > high ? value : high;
        }
        float found_low = NAN, found_high = NAN;
        table.range_with_zero(x.data(), n, found_low, found_high);
        REQUIRE((same_bits(found_low, low) && same_bits(found_high, high)));
      }
  });
}

TEST_CASE("sums are formed sixteen side by side") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes) {
      const auto x = values_of(n, 1, false);
      CHECK(table.sum(Term::kValue, x.data(), n) == sum_in_sixteen(x, [](double v) { return v; }));
      CHECK(table.sum(Term::kMagnitude, x.data(), n) == sum_in_sixteen(x, [](double v) { return std::fabs(v); }));
      CHECK(table.sum(Term::kSquare, x.data(), n) == sum_in_sixteen(x, [](double v) { return v * v; }));
      CHECK(table.product(x.data(), n) == product_in_sixteen(x));
      CHECK(table.squares(0.3, x.data(), n) == sum_in_sixteen(x, [](double v) { return (v - 0.3) * (v - 0.3); }));
    }
  });
}

TEST_CASE("rows are folded as each alone") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes) {
      constexpr std::int64_t kRows = 3;
      const auto x = values_of(kRows * n, 5, true);
      double sums[kRows] = {1.5, 0.0, -2.0};
      float best[kRows];
      table.sum_rows(Term::kMagnitude, x.data(), kRows, n, sums);
      table.extremes(true, x.data(), kRows, n, best);
      for (std::int64_t r = 0; r < kRows; ++r) {
        float alone;
        table.extremes(true, x.data() + r * n, 1, n, &alone);
        CHECK(same_bits(best[r], alone));
        const double start = r == 0 ? 1.5 : r == 1 ? 0.0 : -2.0, sum = start + table.sum(Term::kMagnitude, x.data() + r * n, n);
        CHECK((sums[r] == sum || (sum != sum && sums[r] != sums[r])));
      }
    }
  });
}

TEST_CASE("products of rows of a few values are those of each row alone") {
  for_isas([](const VectorTable& table) {
    for (std::int64_t n = 1; n <= kFewValues; ++n)
      for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 33}) {
        const auto x = values_of(rows * n, 6, n % 2 == 0);
        std::vector<double> products(static_cast<std::size_t>(rows), 1.0);
        multiply_few(x.data(), rows, n, products.data());
        for (std::int64_t r = 0; r < rows; ++r) {
          const double alone = table.product(x.data() + r * n, n), product = products[static_cast<std::size_t>(r)];
          CHECK((product == alone || (product != product && alone != alone)));
        }
      }
  });
}

TEST_CASE("lines are added and rescaled value by value") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes) {
      const auto x = values_of(n, 2, true);
      std::vector<double> sums(x.size(), 0.125), squares = sums, magnitudes = sums;
      std::vector<float> out(x.size() + 1, 7.0f);
      const Rescale by{0.1, 1.7, -0.3, 0.05};
      table.add(Term::kValue, x.data(), sums.data(), n);
      table.add(Term::kSquare, x.data(), squares.data(), n);
      table.add(Term::kMagnitude, x.data(), magnitudes.data(), n);
      table.rescale(by, x.data(), out.data(), n);
      bool same = out.back() == 7.0f;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double v = x[i];
        same = same && same_bits(static_cast<float>(sums[i]), static_cast<float>(0.125 + v));
        same = same && same_bits(static_cast<float>(squares[i]), static_cast<float>(0.125 + v * v));
        same = same && same_bits(static_cast<float>(magnitudes[i]), static_cast<float>(0.125 + std::fabs(v)));
        same = same && same_bits(out[i], static_cast<float>((v - 0.1) * 1.7 * -0.3 + 0.05));
      }
      INFO(n);
      CHECK(same);
    }
  });
}

TEST_CASE("an extreme is the first of equals, and NaN where there is one") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes)
      for (unsigned seed = 0; seed < 20; ++seed)
        for (const bool largest : {false, true}) {
          const auto x = values_of(n, seed, seed > 3);
          float want = largest ? -INFINITY : INFINITY;
          for (const float v : x) want = v != v || (largest ? v > want : v < want) ? v : want;
          INFO(n << " values, seed " << seed);
          float best;
          table.extremes(largest, x.data(), 1, n, &best);
          CHECK(same_bits(best, want));
        }
  });
}

TEST_CASE("the place of an extreme, along a row and of columns") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes)
      for (const bool largest : {false, true})
        for (const bool last : {false, true}) {
          constexpr std::int64_t kExtent = 9;
          const auto x = values_of(n * kExtent, static_cast<unsigned>(n), true);
          const auto place = [&](std::int64_t first, std::int64_t step, std::int64_t extent) {
            const auto at = [&](std::int64_t k) { return x[static_cast<std::size_t>(first + k * step)]; };
            std::int64_t best = 0;
            for (std::int64_t k = 1; k < extent; ++k)
              if ((largest ? at(k) > at(best) : at(k) < at(best)) || (last && at(k) == at(best))) best = k;
            return best;
          };
          std::vector<std::int64_t> places(static_cast<std::size_t>(n), -1);
          table.extreme_places({largest, last}, {x.data(), n, kExtent}, n, places.data());
          bool same = table.extreme_place({largest, last}, x.data(), n * kExtent) == place(0, 1, n * kExtent);
          for (std::int64_t i = 0; i < n; ++i) same = same && places[static_cast<std::size_t>(i)] == place(i, n, kExtent);
          INFO(n << (largest ? " largest" : " smallest") << (last ? " last" : " first"));
          CHECK(same);
        }
  });
}

TEST_CASE("a scan finds every better value once, whatever room there is") {
  for_isas([](const VectorTable& table) {
    for (const std::int64_t n : kSizes)
      for (const bool largest : {false, true}) {
        const auto x = values_of(n, 5, true);
        std::vector<std::int64_t> order(x.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          return before(x[static_cast<std::size_t>(a)], x[static_cast<std::size_t>(b)], largest);
        });
        std::vector<std::uint64_t> found(x.size());
        Scan scan{.values = x.data(), .end = n, .largest = largest, .found = found.data(), .room = n};
        table.scan(scan);
        REQUIRE(scan.count == n);
        std::sort(found.begin(), found.end(), std::greater<>());
        bool same = true;
        for (std::size_t i = 0; i < found.size(); ++i) same = same && place_of(found[i]) == order[i];
        // Above the middle key: those before the first that equals it.
        const std::int32_t middle = key_of(found[found.size() / 2]);
        const auto better = std::count_if(found.begin(), found.end(), [&](std::uint64_t key) { return key_of(key) > middle; });
        std::vector<std::uint64_t> again(x.size());
        Scan upper{.values = x.data(), .end = n, .above = middle, .largest = largest, .found = again.data(), .room = n};
        table.scan(upper);
        CHECK(upper.count == better);
        CHECK(same);
        if (n < kMostLanes) continue;
        std::vector<std::int32_t> keys(static_cast<std::size_t>(n + kMostLanes));
        std::vector<std::int64_t> places(5);
        table.best_places(largest, x.data(), n, 5, keys.data(), places.data());
        CHECK(std::equal(places.begin(), places.end(), order.begin()));
      }
  });
}

TEST_CASE("samples are sums over taps; what lies outside counts as nothing") {
  const auto plane = values_of(50, 6, true);
  for_isas([&](const VectorTable& table) {
    for (std::int64_t n = 1; n <= kSampleLanes; ++n)
      for (const int taps : {1, 4, 16}) {
        std::mt19937 random(static_cast<unsigned>(n));
        std::vector<std::int32_t> places(static_cast<std::size_t>(taps * kSampleLanes), -1);
        std::vector<double> weights(places.size());
        for (std::size_t i = 0; i < places.size(); ++i) {
          places[i] = static_cast<std::int32_t>(random() % 60) - 10;
          if (places[i] >= 50) places[i] = 0;
          weights[i] = static_cast<double>(random() % 7) * 0.21;
        }
        std::vector<float> out(static_cast<std::size_t>(n) + 1, 7.0f);
        table.sample({places.data(), weights.data(), taps}, plane.data(), out.data(), n);
        bool same = out.back() == 7.0f;
        for (std::int64_t i = 0; i < n; ++i) {
          double sum = 0;
          for (int t = 0; t < taps; ++t) {
            const auto at = static_cast<std::size_t>(t * kSampleLanes + i);
            if (places[at] >= 0) sum += weights[at] * static_cast<double>(plane[static_cast<std::size_t>(places[at])]);
          }
          same = same && same_bits(out[static_cast<std::size_t>(i)], static_cast<float>(sum));
        }
        INFO(n << " outputs, " << taps << " taps");
        CHECK(same);
      }
  });
}

TEST_CASE("the better of two values, place by place: what is kept stays among equals, and no number is better than a NaN") {
  for_isas([&](const VectorTable& table) {
    for (const std::int64_t size : kSizes)
      for (const bool largest : {false, true}) {
        const std::vector<float> x = values_of(size, 5, true);
        std::vector<float> best = values_of(size, 6, true), want = best;
        best.push_back(7.0f);
        for (std::size_t i = 0; i < want.size(); ++i)
          if ((largest ? x[i] > want[i] : x[i] < want[i]) || (x[i] != x[i] && want[i] == want[i])) want[i] = x[i];
        table.keep_extremes(largest, x.data(), best.data(), size);
        INFO(size << " values");
        CHECK(std::equal(want.begin(), want.end(), best.begin(), same_bits));
        CHECK(best.back() == 7.0f);
      }
  });
}

TEST_CASE("rows of taps are folded output by output") {
  const auto greatest = [](float best, float value) { return best < value ? value : best; };
  for (const Isa isa : kIsas) {
    const bool same_family = isa == Isa::kScalar || (isa == Isa::kNeon) == (best_isa() == Isa::kNeon);
    if (!same_family || isa > best_isa()) continue;
    const PoolTable& table = pool_table(isa);
    for (const std::int64_t n : kSizes)
      for (const std::int64_t taps : {1, 2, 3, 4, 5})
        for (const std::int64_t step : {1, 2, 3})
          for (const std::int64_t dilation : {1, 2}) {
            INFO(name_of(isa) << ", " << n << " outputs of " << taps << " taps, step " << step << ", dilation " << dilation);
            constexpr std::int64_t kFirst = 2;
            const std::int64_t row = kFirst + (n - 1) * step + (taps - 1) * dilation + 1;
            // Rows end with what their last output reads: what lies behind them is another allocation's.
            const auto a = values_of(row, 3, true), b = values_of(row, 4, true), c = values_of(row, 5, false);
            const float* const rows[] = {a.data(), b.data(), c.data()};
            const bool begins = n % 2 == 0;
            const PoolRows of{rows, 3, kFirst, taps, step, dilation, begins};
            std::vector<float> best = values_of(n + 1, 6, false), sums = best;
            auto want_best = best, want_sums = sums;
            if (begins) std::fill_n(want_best.begin(), n, -INFINITY), std::fill_n(want_sums.begin(), n, 0.0f);
            for (std::int64_t i = 0; i < n; ++i)
              for (const float* from : rows) {
                float sum = 0.0f;
                for (std::int64_t k = 0; k < taps; ++k) {
                  const float value = from[kFirst + i * step + k * dilation];
                  sum += value;
                  want_best[static_cast<std::size_t>(i)] = greatest(want_best[static_cast<std::size_t>(i)], value);
                }
                want_sums[static_cast<std::size_t>(i)] += sum;
              }
            table.keep_greatest(of, best.data(), n);
            table.add_sums(of, sums.data(), n);
            CHECK(std::equal(best.begin(), best.end(), want_best.begin(), same_bits));
            CHECK(std::equal(sums.begin(), sums.end(), want_sums.begin(), same_bits));
          }
  }
}
