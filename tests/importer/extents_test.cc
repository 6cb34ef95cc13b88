// Tensors whose extents are known at run only: from an ONNX file through convert, plan and run (docs/adr/0009-extents-at-run-time.md).
#include <random>

#include "sluice/operators/validate.h"
#include "sluice/planner/planner.h"
#include "tests/importer/made.h"

using namespace sluice;
using namespace sluice::test;

namespace {

importer::ConvertOptions bound(const std::string& name, const Shape& most) {
  importer::ConvertOptions options;
  options.bounds[name] = most;
  return options;
}

/// The rows of x [4, 2] whose first value is not zero, times 10; their number; and their sum.
OnnxBuilder rows_builder() {
  OnnxBuilder b = rows_without_leading_zero();
  b.node("Shape", {"y"}, {"shape"}).node("ReduceSum", {"y", "zero"}, {"sum"}, {attribute("keepdims", std::int64_t{0})});
  return b.output("y").output("shape").output("sum");
}

}  // namespace

TEST_CASE("extents follow the values of each run, at every budget") {
  Made m(rows_builder());
  REQUIRE(m.status);
  CHECK(m.model->graph().tensor(m.model->graph().outputs[0].tensor).bounded == 1);
  CHECK(m.model->graph().tensor(m.model->graph().outputs[1].tensor).bounded == 0);
  for (const bool least : {false, true}) {
    if (least) m.open(*minimum_budget(*m.model, {}));
    CHECK(m.session->output_shape(0) == Shape{4, 2});  // the most, before a run
    m.set<float>(0, DType::kF32, {1, 2, 0, 9, 3, 4, 0, 9});
    REQUIRE(m.session->run());
    CHECK(m.session->output_shape(0) == Shape{2, 2});
    CHECK(m.get<float>(0) == Floats{10, 20, 30, 40});
    CHECK(m.get<std::int64_t>(1) == Ints{2, 2});
    CHECK(m.get<float>(2) == Floats{40, 60});
    m.set<float>(0, DType::kF32, {1, 2, 3, 4, 5, 6, 7, 8});
    REQUIRE(m.session->run());
    CHECK(m.session->output_shape(0) == Shape{4, 2});
    CHECK(m.get<float>(2) == Floats{160, 200});
  }
}

TEST_CASE("room for the most is room enough for what came") {
  Made m(rows_builder());
  m.set<float>(0, DType::kF32, {1, 2, 0, 9, 0, 4, 0, 9});
  REQUIRE(m.session->run());
  Floats room(8, -1.0f);
  REQUIRE(m.session->get_output(0, std::as_writable_bytes(std::span(room))));
  CHECK(room == Floats{10, 20, -1, -1, -1, -1, -1, -1});
  Floats other(3);
  CHECK(m.session->get_output(0, std::as_writable_bytes(std::span(other))).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a shape over the bound is an error of the run, and the session goes on") {
  OnnxBuilder b;
  b.input("x", {6}).input("shape", {2}, kI64).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  Made refused(b);
  REQUIRE_FALSE(refused.status);
  CHECK(refused.report.unbounded == std::vector<std::string>{"y"});
  CHECK(refused.report.value_inputs == std::vector<std::string>{"shape"});

  Made m(b, bound("y", Shape{3, 3}));
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {1, 2, 3, 4, 5, 6});
  m.set<std::int64_t>(1, DType::kI64, {3, -1});
  REQUIRE(m.session->run());
  CHECK(m.session->output_shape(0) == Shape{3, 2});
  m.set<std::int64_t>(1, DType::kI64, {6, 1});
  const Status over = m.session->run();
  REQUIRE_FALSE(over);
  CHECK(over.error().to_string().find("over the plan's bound") != std::string::npos);
  m.set<std::int64_t>(1, DType::kI64, {2, 4});  // not as many values
  CHECK_FALSE(m.session->run());
  m.set<std::int64_t>(1, DType::kI64, {2, 3});
  REQUIRE(m.session->run());
  CHECK(m.get<float>() == Floats{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a bound smaller than what the operator allows is kept") {
  OnnxBuilder b;
  b.input("x", {8}).node("NonZero", {"x"}, {"y"}).output("y");
  Made m(b, bound("y", Shape{1, 2}));
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {0, 1, 0, 0, 0, 1, 0, 0});
  REQUIRE(m.session->run());
  CHECK(m.get<std::int64_t>() == Ints{1, 5});
  m.set<float>(0, DType::kF32, {1, 1, 1, 0, 0, 0, 0, 0});
  CHECK_FALSE(m.session->run());
}

TEST_CASE("no elements at all") {
  OnnxBuilder b;
  b.input("x", {3}).input("keep", {3}, kBool).initializer(tensor("tail", {1}, Floats{7}));
  b.node("Compress", {"x", "keep"}, {"kept"}).node("Concat", {"kept", "tail"}, {"y"}, {attribute("axis", std::int64_t{0})});
  b.node("Exp", {"kept"}, {"e"}).output("y").output("e");
  Made m(b);
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {1, 2, 3});
  m.set<std::uint8_t>(1, DType::kBool, {0, 0, 0});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{7});
  CHECK(m.session->output_shape(1) == Shape{0});
  m.set<std::uint8_t>(1, DType::kBool, {0, 1, 0});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{2, 7});
}

TEST_CASE("the number of the largest comes at run time") {
  OnnxBuilder b;
  b.input("x", {2, 4}).input("k", {1}, kI64).node("TopK", {"x", "k"}, {"values", "places"}).output("values").output("places");
  Made m(b);
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {1, 4, 2, 3, 8, 5, 6, 7});
  m.set<std::int64_t>(1, DType::kI64, {2});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{4, 3, 8, 7});
  CHECK(m.get<std::int64_t>(1) == Ints{1, 3, 0, 3});
  m.set<std::int64_t>(1, DType::kI64, {5});
  CHECK_FALSE(m.session->run());
}

TEST_CASE("a kernel of fixed extents is refused by name") {
  OnnxBuilder b;
  b.input("x", {1, 2, 4, 4}).input("keep", {4}, kBool).weight("w", {3, 2, 1, 1});
  b.node("Compress", {"x", "keep"}, {"kept"}, {attribute("axis", std::int64_t{2})});
  b.node("LRN", {"kept"}, {"y"}, {attribute("size", std::int64_t{3})}).output("y");
  const Made m(b);
  REQUIRE_FALSE(m.status);
  CHECK(m.report.problems[0].op_type == "LRN");
  CHECK(m.report.problems[0].message.find("known at run only") != std::string::npos);
}

TEST_CASE("a bound for what has none is refused") {
  OnnxBuilder b;
  b.input("x", {3}).node("Relu", {"x"}, {"y"}).output("y");
  const Made m(b, bound("y", Shape{3}));
  REQUIRE_FALSE(m.status);
  CHECK(m.status.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("Resize takes scales and sizes of the run, below a bound, with the values of constant ones") {
  const auto model = [](bool sizes, bool constant, const std::string& mode) {
    OnnxBuilder b(18);
    b.input("x", {1, 2, 3, 4});
    if (constant && sizes)
      b.initializer(tensor("s", {2}, Ints{5, 6}));
    else if (constant)
      b.initializer(tensor("s", {2}, Floats{1.7f, 1.5f}));
    else
      b.input("s", {2}, sizes ? kI64 : kFloat);
    // A cubic that leaves out what lies outside is plain also with constants.
    b.node("Resize", {"x", "", sizes ? "" : "s", sizes ? "s" : ""}, {"y"},
           {attribute("axes", Ints{2, 3}), attribute("mode", mode.c_str()),
            attribute("exclude_outside", std::int64_t{mode == "cubic" ? 1 : 0})});
    return b.output("y");
  };
  Floats x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 19) - 7.0f;
  Made unbounded(model(true, false, "linear"));
  REQUIRE_FALSE(unbounded.status);
  CHECK(unbounded.report.unbounded == std::vector<std::string>{"y"});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const bool sizes : {false, true}) {
      INFO(mode << (sizes ? " sizes" : " scales"));
      Made fixed(model(sizes, true, mode)), m(model(sizes, false, mode), bound("y", Shape{1, 2, 8, 9}));
      for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
      REQUIRE(fixed.status);
      REQUIRE(m.status);
      fixed.set<float>(0, DType::kF32, x);
      REQUIRE(fixed.session->run());
      const Floats want = fixed.get<float>();
      for (const bool least : {false, true}) {
        if (least) m.open(*minimum_budget(*m.model, {}));
        m.set<float>(0, DType::kF32, x);
        if (sizes)
          m.set<std::int64_t>(1, DType::kI64, {5, 6});
        else
          m.set<float>(1, DType::kF32, {1.7f, 1.5f});
        REQUIRE(m.session->run());
        CHECK(m.session->output_shape(0) == Shape{1, 2, 5, 6});
        const Floats found = m.get<float>();
        REQUIRE(found.size() == want.size());
        for (std::size_t i = 0; i < want.size(); ++i) CHECK(found[i] == Approx(want[i]).margin(1e-5));
        if (sizes)
          m.set<std::int64_t>(1, DType::kI64, {9, 6});
        else
          m.set<float>(1, DType::kF32, {3.5f, 1.5f});
        CHECK_FALSE(m.session->run());  // over the bound
      }
    }
}

// ---- If and Loop whose course is known at run only

TEST_CASE("a loop runs as often as an input says, carried values in turn") {
  // (p, q) -> (q, p + q * step), each p stacked: Fibonacci's numbers. The step is a large constant, given from outside.
  OnnxBuilder body;
  body.input("i", {}, kI64).input("go", {}, kBool).input("p", {1}).input("q", {1});
  body.node("Mul", {"q", "step"}, {"s"}).node("Add", {"p", "s"}, {"more"}).node("Slice", {"more", "zero", "one"}, {"first"});
  body.node("Reshape", {"first", "one"}, {"flat"});
  body.output("go").output("q").output("flat").output("p");
  OnnxBuilder b;
  b.input("n", {1}, kI64).input("p0", {1}).input("q0", {1}).initializer(tensor("step", {100}, Floats(100, 1.0f)));
  b.initializer(tensor("zero", {1}, Ints{0})).initializer(tensor("one", {1}, Ints{1}));
  b.node("Loop", {"n", "", "p0", "q0"}, {"last", "next_one", "all"}, {attribute("body", body)});
  b.output("last").output("next_one").output("all");
  Made refused(b);
  REQUIRE_FALSE(refused.status);
  CHECK(refused.report.unbounded == std::vector<std::string>{"all"});
  Made m(b, bound("all", Shape{8, 1}));
  for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(m.status);
  for (const bool least : {false, true}) {
    if (least) m.open(*minimum_budget(*m.model, {}));
    m.set<float>(1, DType::kF32, {0});
    m.set<float>(2, DType::kF32, {1});
    m.set<std::int64_t>(0, DType::kI64, {6});
    REQUIRE(m.session->run());
    CHECK(m.get<float>(0) == Floats{8});
    CHECK(m.get<float>(1) == Floats{13});
    CHECK(m.session->output_shape(2) == Shape{6, 1});
    CHECK(m.get<float>(2) == Floats{0, 1, 1, 2, 3, 5});
    m.set<std::int64_t>(0, DType::kI64, {0});
    REQUIRE(m.session->run());
    CHECK(m.get<float>(0) == Floats{0});
    CHECK(m.session->output_shape(2) == Shape{0, 1});
    m.set<std::int64_t>(0, DType::kI64, {9});
    CHECK_FALSE(m.session->run());  // over the bound
  }
}

TEST_CASE("a loop ends when its condition says so, with an If in its body") {
  // Collatz: how many steps until 1.
  OnnxBuilder even, odd, body;
  even.node("Div", {"v", "two"}, {"half"}).output("half");
  odd.node("Mul", {"v", "three"}, {"t"}).node("Add", {"t", "one"}, {"grown"}).output("grown");
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {}, kI64).input("k", {}, kI64);
  body.node("Mod", {"v", "two"}, {"rest"}).node("Equal", {"rest", "zero"}, {"is_even"});
  body.node("If", {"is_even"}, {"next"}, {attribute("then_branch", even), attribute("else_branch", odd)});
  body.node("Add", {"k", "one"}, {"count"}).node("Greater", {"next", "one"}, {"more"});
  body.output("more").output("next").output("count");
  OnnxBuilder b;
  b.input("v0", {}, kI64).initializer(tensor("zero", {}, Ints{0})).initializer(tensor("one", {}, Ints{1}));
  b.initializer(tensor("two", {}, Ints{2})).initializer(tensor("three", {}, Ints{3}));
  b.node("Greater", {"v0", "one"}, {"begin"});
  b.node("Loop", {"", "begin", "v0", "zero"}, {"end", "steps"}, {attribute("body", body)}).output("end").output("steps");
  Made m(b);
  for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(m.status);
  CHECK(controls(m) == 1);
  m.set<std::int64_t>(0, DType::kI64, {27});
  REQUIRE(m.session->run());
  CHECK(m.get<std::int64_t>(0) == Ints{1});
  CHECK(m.get<std::int64_t>(1) == Ints{111});
}

namespace {

/// A scan of `length` places over sequences on axis 1, the second backward: sum = 0.5 * sum + x * y, each sum stacked backward on axis 1.
OnnxBuilder scan_of(std::int64_t length) {
  OnnxBuilder body;
  body.input("sum", {3}).input("a", {3}).input("b", {3}).initializer(tensor("half", {1}, Floats{0.5f}));
  body.node("Mul", {"sum", "half"}, {"less"}).node("Mul", {"a", "b"}, {"ab"}).node("Add", {"less", "ab"}, {"next"});
  body.node("Identity", {"next"}, {"row"}).output("next").output("row");
  OnnxBuilder b;
  b.input("s0", {3}).input("x", {3, length}).input("y", {length, 3});
  b.node("Scan", {"s0", "x", "y"}, {"last", "all"},
         {attribute("body", body), attribute("num_scan_inputs", std::int64_t{2}), attribute("scan_input_axes", Ints{1, 0}),
          attribute("scan_input_directions", Ints{0, 1}), attribute("scan_output_axes", Ints{1}),
          attribute("scan_output_directions", Ints{1})});
  return b.output("last").output("all");
}

/// The same as nodes.
OnnxBuilder unrolled_scan_of(std::int64_t length) {
  OnnxBuilder b;
  b.input("s0", {3}).input("x", {3, length}).input("y", {length, 3}).initializer(tensor("half", {1}, Floats{0.5f}));
  std::string sum = "s0";
  std::vector<std::string> rows;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::string n = std::to_string(i);
    b.initializer(tensor("i" + n, {}, Ints{i})).initializer(tensor("j" + n, {}, Ints{length - 1 - i}));
    b.node("Gather", {"x", "i" + n}, {"a" + n}, {attribute("axis", std::int64_t{1})}).node("Gather", {"y", "j" + n}, {"b" + n});
    b.node("Mul", {sum, "half"}, {"less" + n}).node("Mul", {"a" + n, "b" + n}, {"ab" + n}).node("Add", {"less" + n, "ab" + n}, {"sum" + n});
    sum = "sum" + n;
    b.node("Unsqueeze", {sum, "one"}, {"row" + n});
    rows.insert(rows.begin(), "row" + n);
  }
  b.initializer(tensor("one", {1}, Ints{1}));
  b.node("Concat", rows, {"all"}, {attribute("axis", std::int64_t{1})}).node("Identity", {sum}, {"last"});
  return b.output("last").output("all");
}

}  // namespace

TEST_CASE("a Scan runs its body, with the results of its unrolled form, and its length costs no nodes") {
  constexpr std::int64_t kLength = 7;
  Made scanned(scan_of(kLength)), unrolled(unrolled_scan_of(kLength));
  REQUIRE(scanned.status);
  REQUIRE(unrolled.status);
  const std::size_t nodes = scanned.model->graph().nodes.size();
  CHECK(nodes < unrolled.model->graph().nodes.size());
  for (const bool least : {false, true}) {
    if (least) scanned.open(*minimum_budget(*scanned.model, {}));
    for (Made* m : {&scanned, &unrolled}) {
      m->set<float>(0, DType::kF32, {1, -2, 3});
      m->set<float>(1, DType::kF32, numbers(3 * kLength));
      m->set<float>(2, DType::kF32, numbers(3 * kLength));
      REQUIRE(m->session->run());
    }
    CHECK(scanned.get<float>(0) == unrolled.get<float>(0));
    CHECK(scanned.get<float>(1) == unrolled.get<float>(1));
  }
  Made thousands(scan_of(5000));
  REQUIRE(thousands.status);
  CHECK(thousands.model->graph().nodes.size() == nodes);
}

TEST_CASE("a Scan over a sequence whose length comes at run") {
  OnnxBuilder body;
  body.input("sum", {}).input("v", {}).node("Add", {"sum", "v"}, {"next"}).node("Identity", {"next"}, {"row"});
  body.output("next").output("row");
  OnnxBuilder b;
  b.input("x", {6}).initializer(tensor("zero", {}, Floats{0}));
  b.node("NonZero", {"x"}, {"places"}).node("Cast", {"places"}, {"reals"}, {attribute("to", std::int64_t{1})});
  b.initializer(tensor("flat_shape", {1}, Ints{-1})).node("Reshape", {"reals", "flat_shape"}, {"flat"});
  b.node("Scan", {"zero", "flat"}, {"last", "all"}, {attribute("body", body), attribute("num_scan_inputs", std::int64_t{1})});
  b.output("last").output("all");
  Made m(b);
  for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(m.status);
  m.set<float>(0, DType::kF32, {0, 1, 0, 1, 0, 1});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{9});
  CHECK(m.session->output_shape(1) == Shape{3});
  CHECK(m.get<float>(1) == Floats{1, 4, 9});
  m.set<float>(0, DType::kF32, {0, 0, 0, 0, 0, 0});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{0});
  CHECK(m.session->output_shape(1) == Shape{0});
}

TEST_CASE("a loop that is counted and long runs its body, and gives whole extents") {
  OnnxBuilder body;
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {2}).node("Add", {"v", "v"}, {"more"}).node("Sub", {"more", "v"}, {"w"});
  body.output("go").output("w").output("w");
  OnnxBuilder b;
  b.input("x", {2}).initializer(tensor("count", {}, Ints{3000}));
  b.node("Loop", {"count", "", "x"}, {"last", "all"}, {attribute("body", body)}).output("last").output("all");
  Made m(b);
  REQUIRE(m.status);
  CHECK(controls(m) == 1);
  CHECK(m.model->graph().tensor(m.model->graph().outputs[1].tensor).bounded == 0);
  m.set<float>(0, DType::kF32, {1, 2});
  REQUIRE(m.session->run());
  CHECK(m.get<float>(0) == Floats{1, 2});
  CHECK(m.get<float>(1).size() == 6000);
}

TEST_CASE("a subgraph that a file has changed is refused, or planned like any graph") {
  OnnxBuilder b;
  b.input("x", {4}).input("c", {1}, kBool).initializer(tensor("k", {2}, Ints{1, 3})).initializer(tensor("none", {1}, Ints{0}));
  // A result without elements, so that the branches become bodies.
  const OnnxBuilder yes = then_or_else([](OnnxBuilder& body) {
    body.node("Gather", {"x", "k"}, {"u"}).node("Slice", {"x", "none", "none"}, {"empty"}).output("u").output("empty");
  });
  const OnnxBuilder no = then_or_else([](OnnxBuilder& body) {
    body.node("NonZero", {"x"}, {"places"}).node("Cast", {"places"}, {"reals"}, {attribute("to", std::int64_t{1})});
    body.node("Flatten", {"reals"}, {"flat"}, {attribute("axis", std::int64_t{0})}).node("ReduceSum", {"flat"}, {"sum"});
    body.node("Squeeze", {"sum"}, {"s"}).node("Add", {"x", "s"}, {"v"}).node("Slice", {"x", "none", "none"}, {"nothing"});
    body.output("v").output("nothing");
  });
  b.node("If", {"c"}, {"y", "rest"}, {attribute("then_branch", yes), attribute("else_branch", no)}).output("y");
  Made m(b);
  for (const importer::Problem& problem : m.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(m.status);
  std::mt19937 random(6);
  const auto pick = [&](std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random); };
  int refused = 0, planned = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    model::Graph graph = m.model->graph();
    for (std::size_t change = pick(2) + 1; change > 0; --change) {
      model::Subgraph& body = graph.subgraphs[pick(graph.subgraphs.size())];
      model::Tensor& tensor = body.tensors[pick(body.tensors.size())];
      model::Node& node = body.nodes[pick(body.nodes.size())];
      const auto id = [&] { return TensorId(pick(body.tensors.size() + 1)); };
      switch (pick(7)) {
        case 0:
          if (tensor.shape.rank() > 0) tensor.shape[0] = static_cast<std::int64_t>(pick(9));
          break;
        case 1:
          tensor.dtype = static_cast<DType>(pick(kDTypeCount));
          break;
        case 2:
          tensor.bounded = static_cast<std::uint8_t>(pick(4));
          break;
        case 3:
          if (!node.inputs.empty()) node.inputs[pick(node.inputs.size())] = id();
          break;
        case 4:
          body.outputs[pick(body.outputs.size())] = id();
          break;
        case 5:
          if (!body.captures.empty()) body.captures[pick(body.captures.size())].inner = id();
          break;
        default:
          if (auto* plain = std::get_if<model::PlainAttributes>(&node.attributes); plain != nullptr && !plain->arguments.empty())
            plain->arguments[pick(plain->arguments.size())] = static_cast<std::int64_t>(pick(9)) - 1;
      }
    }
    if (!model::validate(graph, m.model->file().file_size(), operators::validate_node)) {
      ++refused;
      continue;
    }
    // What is sound can be planned, or is refused then; the plan is verified where it is made.
    const auto plan = planner::make_plan(graph, profiler::DeviceProfile(), {});
    planned += plan.has_value() ? 1 : 0;
    if (!plan) CHECK(plan.error().code == ErrorCode::kUnsupported);
  }
  CHECK(refused > 100);
  CHECK(planned > 100);
}
