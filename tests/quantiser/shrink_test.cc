// One layer with fewer values: codebooks beside brute force, and what data is good for.
#include "src/quantiser/shrink.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <new>
#include <set>

#include "src/quantiser/codebook.h"
#include "src/quantiser/forms.h"
#include "tests/importer/data_bytes.h"

using namespace sluice;
using namespace sluice::quantiser;

namespace {

/// Noise that is the same everywhere.
float noise(std::uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
}

Lines weights_of(Eigen::Index outputs, Eigen::Index length) {
  std::uint32_t state = 7;
  Lines lines(outputs, length);
  for (Eigen::Index i = 0; i < lines.size(); ++i) lines.data()[i] = noise(state) * noise(state);
  return lines;
}

/// Inputs whose neighbours are much alike.
Statistics inputs_of(Eigen::Index length) {
  std::uint32_t state = 99;
  const Eigen::Index rows = 4 * length;
  Eigen::MatrixXf x(length, rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    float kept = 0;
    for (Eigen::Index k = 0; k < length; ++k) x(k, r) = kept = 0.9f * kept + 0.3f * noise(state);
  }
  Statistics made;
  made.products = x * x.transpose() / static_cast<float>(rows);
  made.means = x.rowwise().mean();
  return made;
}

double error_of(const CodeWeights& weights, const std::vector<int>& codes) {
  double error = 0;
  for (int v = -kMostCode; v <= kMostCode; ++v) {
    double least = 1e300;
    for (const int code : codes) least = std::min(least, static_cast<double>(code - v) * (code - v));
    error += weights[static_cast<std::size_t>(v + kMostCode)] * least;
  }
  return error;
}

double loss(const Lines& weights, const Shrunk& made, const Statistics& inputs) {
  const Lines lost = made.weights - weights;
  return static_cast<double>((lost * inputs.products).cwiseProduct(lost).sum());
}

}  // namespace

TEST_CASE("codes have the least error of all choices") {
  CodeWeights weights{};
  const std::pair<int, double> seen[] = {{-90, 3}, {-80, 1}, {-7, 9}, {-5, 4}, {0, 20}, {3, 5}, {60, 2}, {127, 1}};
  for (const auto& [value, count] : seen) weights[static_cast<std::size_t>(value + kMostCode)] = count;
  for (const std::size_t count : {1u, 2u}) {
    const std::vector<int> codes = fit_codes(weights, count);
    CHECK(codes.size() <= count);
    const double found = error_of(weights, codes);
    double best = 1e300;
    std::vector<int> tried(count);
    const std::function<void(std::size_t, int)> choose = [&](std::size_t at, int from) {
      if (at == count) {
        best = std::min(best, error_of(weights, tried));
        return;
      }
      for (int v = from; v <= kMostCode; ++v) {
        tried[at] = v;
        choose(at + 1, v + 1);
      }
    };
    choose(0, -kMostCode);
    CHECK(found <= 1.01 * best);  // means are rounded after they were chosen
  }
  CHECK(error_of(weights, fit_codes(weights, 8)) == 0);
  CHECK(fit_codes(weights, 200).size() == 8);
  CHECK(fit_codes(CodeWeights{}, 4).empty());
}

TEST_CASE("the nearest code of each number") {
  const auto nearest = nearest_codes({-50, 0, 20});
  CHECK(nearest[0] == -50);
  CHECK(nearest[kMostCode - 25] == -50);
  CHECK(nearest[kMostCode - 24] == 0);
  CHECK(nearest[kMostCode + 11] == 20);
  CHECK(nearest[2 * kMostCode] == 20);
}

TEST_CASE("zeros are as many as were asked for, in blocks where kernels skip them") {
  const Lines weights = weights_of(40, 200);
  for (const bool with_data : {false, true}) {
    const Statistics inputs = with_data ? inputs_of(200) : Statistics();
    const Shrunk blocks = shrink(weights, inputs, {.prune = 0.5, .in_blocks = true});
    std::size_t zero_blocks = 0;
    for (Eigen::Index p = 0; p < 3; ++p)
      for (Eigen::Index k = 0; k < 200; ++k) {
        const auto lanes = blocks.weights.col(k).segment(p * 16, std::min<Eigen::Index>(16, 40 - p * 16));
        zero_blocks += (lanes.array() == 0.0f).all() ? 1u : 0u;
        CHECK(((lanes.array() == 0.0f).all() || (lanes.array() != 0.0f).all()));
      }
    CHECK(zero_blocks == 300);
    const Shrunk single = shrink(weights, inputs, {.prune = 0.6});
    CHECK(single.zeros == Approx(0.6).margin(0.001));
    CHECK(single.error < blocks.error * 1.2);
  }
}

TEST_CASE("a clustered layer has so many codes, its scales and nothing else") {
  const Lines weights = weights_of(24, 300);
  for (const std::size_t count : {2u, 5u, 16u, 256u}) {
    const Shrunk made = shrink(weights, inputs_of(300), {.prune = count > 2 ? 0.3 : 0.0, .cluster = count});
    const std::set<int> codes(made.codes.data(), made.codes.data() + made.codes.size());
    CHECK(codes.size() == made.values);
    CHECK(codes.size() <= count);
    CHECK((count < 16 || codes.size() * 2 > std::min<std::size_t>(count, 200)));
    for (Eigen::Index n = 0; n < 24; ++n)
      for (Eigen::Index k = 0; k < 300; ++k)
        CHECK(made.weights(n, k) == made.scales[static_cast<std::size_t>(n)] * static_cast<float>(made.codes(n, k)));
  }
}

TEST_CASE("a layer whose outputs differ in size has codes that suit each") {
  Lines weights = weights_of(24, 300);
  weights.row(3) *= 100;
  weights.row(4) *= 0.01f;
  const Shrunk made = shrink(weights, {}, {.cluster = 16});
  CHECK(made.weights.isApprox(weights_of(made), 0));
  for (Eigen::Index n = 0; n < 24; ++n) CHECK((made.weights.row(n) - weights.row(n)).squaredNorm() < 0.03 * weights.row(n).squaredNorm());
}

TEST_CASE("forms of layers: the least noise in so many bytes") {
  const std::vector<std::vector<Form>> layers{{{100, 0}, {60, 1}, {50, 9}, {30, 10}}, {{80, 0.5}, {40, 0.5}, {20, 4}}, {{10, 0}}};
  CHECK(choose_forms(layers, 1000) == std::vector<std::size_t>{0, 1, 0});  // 40 bytes are as good as 80
  CHECK(choose_forms(layers, 110) == std::vector<std::size_t>{1, 1, 0});
  CHECK(choose_forms(layers, 109) == std::vector<std::size_t>{1, 2, 0});
  CHECK(choose_forms(layers, 85) == std::vector<std::size_t>{3, 1, 0});  // what the last step leaves over goes where it helps most
  CHECK(choose_forms(layers, 79) == std::vector<std::size_t>{3, 2, 0});
  CHECK(choose_forms(layers, 60) == std::vector<std::size_t>{3, 2, 0});
  CHECK_FALSE(choose_forms(layers, 59));
}

TEST_CASE("what a weight loses, others make up for") {
  const Lines weights = weights_of(32, 256);
  const Statistics inputs = inputs_of(256);
  for (const Shrinking& how : {Shrinking{.prune = 0.5}, Shrinking{.prune = 0.5, .in_blocks = true}, Shrinking{.cluster = 8},
                               Shrinking{.prune = 0.4, .cluster = 8}}) {
    const Shrunk blind = shrink(weights, {}, how), seeing = shrink(weights, inputs, how);
    CHECK(loss(weights, seeing, inputs) < 0.6 * loss(weights, blind, inputs));
    CHECK(seeing.error == Approx(loss(weights, seeing, inputs)).epsilon(0.01));
  }
}

TEST_CASE("layers with nothing in them stay what they are") {
  const Lines zeros = Lines::Zero(4, 30);
  const Shrunk made = shrink(zeros, inputs_of(30), {.prune = 0.5, .cluster = 4});
  CHECK(made.weights.isZero(0));
  CHECK(made.zeros == 1);
  Statistics dead;  // inputs that are always zero
  dead.products = Eigen::MatrixXf::Zero(30, 30);
  dead.means = Eigen::VectorXf::Zero(30);
  CHECK(shrink(weights_of(4, 30), dead, {.prune = 0.5}).weights.allFinite());
}

#ifndef SLUICE_FOREIGN_MEMORY
TEST_CASE("what is lost is made up for in the memory that is stated") {
  constexpr Eigen::Index kLength = 2048;
  const Lines weights = weights_of(16, kLength);
  Statistics inputs;
  inputs.products = Eigen::MatrixXf::Identity(kLength, kLength);
  inputs.means = Eigen::VectorXf::Zero(kLength);
  const pid_t child = ::fork();
  if (child == 0) {
    // The products are there already.
    std::uint64_t room = test::data_bytes() + bytes_of_compensation(kLength) - kLength * kLength * sizeof(float) + (8u << 20);
    const rlimit limit{room, room};
    ::setrlimit(RLIMIT_DATA, &limit);
    try {
      ::_exit(shrink(weights, inputs, {.prune = 0.5, .in_blocks = true}).zeros == 0.5 ? 0 : 1);
    } catch (const std::bad_alloc&) {
      ::_exit(2);
    }
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif
