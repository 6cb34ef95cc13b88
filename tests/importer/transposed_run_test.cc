// Transposed convolutions of few outputs become convolutions by phases: the same values, whatever kernel, stride and padding are.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/importer/made.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Case {
  std::int64_t channels, outputs, kernel, stride, before, after, extra, height, width;
  bool line = false;  // one spatial axis: `width`
};

OnnxBuilder transposed(const Case& c) {
  OnnxBuilder b(13);
  if (c.line)
    b.input("x", {2, c.channels, c.width}).weight("w", {c.channels, c.outputs, c.kernel});
  else
    b.input("x", {2, c.channels, c.height, c.width}).weight("w", {c.channels, c.outputs, c.kernel, c.kernel});
  b.weight("b", {c.outputs});
  const auto each = [&](std::int64_t value) { return c.line ? Ints{value} : Ints{value, value}; };
  b.node("ConvTranspose", {"x", "w", "b"}, {"t"},
         {attribute("strides", each(c.stride)),
          attribute("pads", c.line ? Ints{c.before, c.after} : Ints{c.before, c.before, c.after, c.after}),
          attribute("output_padding", each(c.extra))});
  b.node("Relu", {"t"}, {"y"}).output("y");
  return b;
}

Floats result(Made& made, const Case& c) {
  made.set(0, DType::kF32, numbers(static_cast<std::size_t>(2 * c.channels * (c.line ? 1 : c.height) * c.width)));
  REQUIRE(made.session->run());
  return made.get<float>();
}

bool by_phases(const Made& made) {
  const auto& nodes = made.model->graph().nodes;
  return std::none_of(nodes.begin(), nodes.end(), [](const model::Node& n) { return n.op == model::OpKind::kConvTranspose; });
}

/// Converts exactly and not, runs both. True where phases were taken.
bool check(const Case& c) {
  CAPTURE(c.channels, c.outputs, c.kernel, c.stride, c.before, c.after, c.extra, c.height, c.width, c.line);
  Made exact(transposed(c), {.exact = true}), made(transposed(c));
  if (!exact.status) {
    CHECK_FALSE(made.status);
    return false;
  }
  REQUIRE(made.status);
  CHECK_FALSE(by_phases(exact));
  const Floats wanted = result(exact, c), got = result(made, c);
  REQUIRE(got.size() == wanted.size());
  float most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) most = std::max(most, std::fabs(got[i] - wanted[i]) / (1.0f + std::fabs(wanted[i])));
  CHECK(most < 1e-5f);
  return by_phases(made);
}

}  // namespace

TEST_CASE("phases give what the transposed convolution gives") {
  int phases = 0;
  std::uint64_t state = 1;
  const auto any = [&](std::int64_t least, std::int64_t most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(most - least + 1));
  };
  for (int i = 0; i < 200; ++i) {
    Case c{any(1, 9), any(1, 5), any(1, 9), any(1, 4), 0, 0, 0, any(1, 6), any(1, 6), any(0, 3) == 0};
    c.before = any(0, c.kernel - 1);
    c.after = any(0, 1) == 0 ? c.before : any(0, c.kernel - 1);
    c.extra = any(0, c.stride - 1);
    phases += check(c) ? 1 : 0;
  }
  CHECK(phases > 20);
}

TEST_CASE("the last layers of detectors and of enlargers are taken by phases, those of many outputs are not") {
  CHECK_FALSE(check({64, 1, 2, 2, 0, 0, 0, 9, 7}));  // no two taps meet: a kernel of its own takes it
  CHECK(check({56, 1, 9, 3, 3, 3, 0, 6, 5}));
  CHECK(check({56, 1, 9, 3, 4, 4, 2, 6, 5}));
  CHECK_FALSE(check({56, 1, 9, 3, 4, 4, 2, 13, 12}));  // of 144 taps of phases 81 are the kernel's: sums by taps are faster
  CHECK(check({16, 3, 4, 2, 1, 1, 0, 5, 8}));
  CHECK(check({8, 1, 8, 4, 2, 2, 0, 1, 30, true}));
  CHECK_FALSE(check({8, 32, 2, 2, 0, 0, 0, 4, 4}));
  for (std::int64_t size = 3; size <= 10; ++size)
    CHECK(check({size, 17, 3, 1, size % 3, (size + 1) % 3, 0, size, 11 - size / 2}));  // turned round
  CHECK(check({5, 12, 4, 1, 1, 2, 0, 1, 9, true}));
  CHECK_FALSE(check({96, 12, 4, 1, 1, 2, 0, 13, 12}));  // by taps
  CHECK(check({96, 12, 3, 1, 1, 1, 0, 5, 9}));          // Winograd
  CHECK_FALSE(check({8, 16, 4, 1, 0, 0, 0, 1, 1}));
  CHECK_FALSE(check({8, 1, 3, 2, 1, 1, 0, 4, 4}));  // 7 outputs are not as many of each phase
}

TEST_CASE("by phases the bits are the same in the smallest budget") {
  const Case c{48, 1, 9, 2, 4, 4, 1, 40, 40};
  Made made(transposed(c));
  REQUIRE(by_phases(made));
  const Floats wanted = result(made, c);
  const auto least = minimum_budget(*made.model, {.scope = BudgetScope::kLibrary});
  REQUIRE(least);
  auto small = Session::create(made.model, {.budget = *least, .scope = BudgetScope::kLibrary});
  REQUIRE(small);
  made.session = std::move(*small);
  CHECK(result(made, c) == wanted);
}
