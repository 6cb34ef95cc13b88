// If whose condition comes at run: from an ONNX file through convert, plan and run (docs/adr/0030-branches.md).
#include <optional>

#include "tests/importer/made.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("only the branch that is taken runs") {
  OnnxBuilder b;
  b.input("x", {2}).input("c", {1}, kBool).input("place", {1}, kI64).initializer(tensor("two", {1}, Floats{2}));
  // Run on a false condition, the first branch would be a fault of the run; what it alone reads from outside is its affair too.
  b.node("Add", {"place", "place"}, {"far"});
  const OnnxBuilder yes = then_or_else([](OnnxBuilder& body) {
    body.node("Gather", {"x", "far"}, {"u"}).node("Mul", {"u", "two"}, {"v"}).output("v");
  });
  const OnnxBuilder no = then_or_else([](OnnxBuilder& body) { body.node("ReduceSum", {"x"}, {"w"}).output("w"); });
  b.node("If", {"c"}, {"y"}, {attribute("then_branch", yes), attribute("else_branch", no)}).output("y");
  Made m(b);
  REQUIRE(m.status);
  CHECK(controls(m) == 0);
  for (const bool least : {false, true}) {
    if (least) m.open(*minimum_budget(*m.model, {}));
    m.set<float>(0, DType::kF32, {1, 2});
    m.set<std::uint8_t>(1, DType::kBool, {0});
    m.set<std::int64_t>(2, DType::kI64, {9});
    REQUIRE(m.session->run());
    CHECK(m.get<float>() == Floats{3});
    m.set<std::uint8_t>(1, DType::kBool, {1});
    CHECK_FALSE(m.session->run());
    m.set<std::int64_t>(2, DType::kI64, {0});
    REQUIRE(m.session->run());
    CHECK(m.get<float>() == Floats{2});
  }
}

TEST_CASE("a branch that can be seen to fail is no reason to refuse the other one") {
  OnnxBuilder b;
  b.input("x", {2}).input("c", {1}, kBool).initializer(tensor("far", {1}, Ints{9}));
  const OnnxBuilder yes = then_or_else([](OnnxBuilder& body) { body.node("Gather", {"x", "far"}, {"u"}).output("u"); });
  const OnnxBuilder no = then_or_else([](OnnxBuilder& body) { body.node("Add", {"x", "x"}, {"v"}).output("v"); });
  b.node("If", {"c"}, {"y"}, {attribute("then_branch", yes), attribute("else_branch", no)}).output("y");
  Made m(b);
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {1, 2});
  m.set<std::uint8_t>(1, DType::kBool, {0});
  REQUIRE(m.session->run());
  CHECK(m.session->output_shape(0) == Shape{2});
  CHECK(m.get<float>() == Floats{2, 4});
  m.set<std::uint8_t>(1, DType::kBool, {1});
  CHECK_FALSE(m.session->run());
}

TEST_CASE("branches give results of their own extents, also none") {
  OnnxBuilder b;
  b.input("x", {4}).input("c", {1}, kBool).initializer(tensor("first", {1}, Ints{0})).initializer(tensor("none", {1}, Ints{0}));
  b.initializer(tensor("three", {1}, Ints{3}));
  const OnnxBuilder yes = then_or_else([](OnnxBuilder& body) {
    body.node("Slice", {"x", "first", "three"}, {"u"}).node("NonZero", {"u"}, {"places"}).output("u").output("places");
  });
  const OnnxBuilder no = then_or_else([](OnnxBuilder& body) {
    body.node("Add", {"x", "x"}, {"v"}).node("NonZero", {"v"}, {"all"}).output("v").output("all");
  });
  b.node("If", {"c"}, {"y", "where"}, {attribute("then_branch", yes), attribute("else_branch", no)});
  b.node("Neg", {"y"}, {"less"}).output("less").output("where");
  Made m(b);
  REQUIRE(m.status);
  CHECK(controls(m) == 0);
  m.set<float>(0, DType::kF32, {0, 2, 3, 4});
  for (int run = 0; run < 2; ++run) {
    m.set<std::uint8_t>(1, DType::kBool, {1});
    REQUIRE(m.session->run());
    CHECK(m.get<float>(0) == Floats{0, -2, -3});
    CHECK(m.get<std::int64_t>(1) == Ints{1, 2});
    m.set<std::uint8_t>(1, DType::kBool, {0});
    REQUIRE(m.session->run());
    CHECK(m.get<float>(0) == Floats{0, -4, -6, -8});
    CHECK(m.get<std::int64_t>(1) == Ints{1, 2, 3});
  }

  OnnxBuilder e;
  e.input("x", {4}).input("c", {1}, kBool).initializer(tensor("none", {1}, Ints{0}));
  const OnnxBuilder cut = then_or_else([](OnnxBuilder& body) { body.node("Slice", {"x", "none", "none"}, {"u"}).output("u"); });
  const OnnxBuilder sum = then_or_else([](OnnxBuilder& body) { body.node("Add", {"x", "x"}, {"v"}).output("v"); });
  e.node("If", {"c"}, {"y"}, {attribute("then_branch", cut), attribute("else_branch", sum)}).output("y");
  Made empty(e);
  REQUIRE(empty.status);
  empty.set<float>(0, DType::kF32, {1, 2, 3, 4});
  empty.set<std::uint8_t>(1, DType::kBool, {1});
  REQUIRE(empty.session->run());
  CHECK(empty.session->output_shape(0) == Shape{0});
  empty.set<std::uint8_t>(1, DType::kBool, {0});
  REQUIRE(empty.session->run());
  CHECK(empty.get<float>() == Floats{2, 4, 6, 8});
}

namespace {

/// x [1, 96] through one of three pairs of dense layers: c says whether the first, or else d which of the others. `truths`: both as
/// constants.
OnnxBuilder nested_ifs(std::optional<std::pair<bool, bool>> truths) {
  constexpr std::int64_t kWide = 96;
  OnnxBuilder b;
  b.input("x", {1, kWide});
  if (truths)
    b.initializer(raw_tensor("c", {}, kBool, std::string(1, truths->first)))
        .initializer(raw_tensor("d", {}, kBool, std::string(1, truths->second)));
  else
    b.input("c", {}, kBool).input("d", {}, kBool);
  for (const std::string name : {"a", "b", "e"}) b.weight(name + "1", {kWide, 3 * kWide}).weight(name + "2", {3 * kWide, kWide});
  const auto layers = [](const std::string& name) {
    return then_or_else([&](OnnxBuilder& body) {
      body.node("MatMul", {"x", name + "1"}, {name + "h"}).node("Relu", {name + "h"}, {name + "r"});
      body.node("MatMul", {name + "r", name + "2"}, {name + "y"}).output(name + "y");
    });
  };
  const OnnxBuilder others = then_or_else([&](OnnxBuilder& body) {
    body.node("Not", {"d"}, {"not_d"});
    body.node("If", {"not_d"}, {"inner"}, {attribute("then_branch", layers("e")), attribute("else_branch", layers("b"))});
    body.node("Tanh", {"inner"}, {"outer"}).output("outer");
  });
  b.node("If", {"c"}, {"y"}, {attribute("then_branch", layers("a")), attribute("else_branch", others)});
  return b.node("Add", {"y", "x"}, {"z"}).output("z");
}

}  // namespace

TEST_CASE("branches run by the fast kernels, with the bits that they have where the condition is known, and read their own weights alone") {
  Made m(nested_ifs(std::nullopt));
  for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(m.status);
  CHECK(controls(m) == 0);
  const Bytes least = *minimum_budget(*m.model, {});
  Bytes weights;
  for (const model::Weight& weight : m.model->graph().weights) weights += weight.bytes;
  for (const auto& truths : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    CAPTURE(truths.first, truths.second);
    Made known(nested_ifs(truths));
    REQUIRE(known.status);
    known.set<float>(0, DType::kF32, numbers(96));
    REQUIRE(known.session->run());
    for (const Bytes budget : {kUnlimitedBytes, least + Bytes(64 * 1024), least}) {
      m.open(budget);
      m.set<float>(0, DType::kF32, numbers(96));
      m.set<std::uint8_t>(1, DType::kBool, {truths.first});
      m.set<std::uint8_t>(2, DType::kBool, {truths.second});
      for (int run = 0; run < 3; ++run) {
        REQUIRE(m.session->run());
        CHECK(m.get<float>() == known.get<float>());
      }
      // Of three branches one is read, and what the loader had begun before the condition was known.
      if (budget == least) CHECK(m.session->stats().bytes_read.count() < weights.count() * 2 / 3);
    }
  }
}
