// Bodies of Loop and Scan: their weights are held while the node runs where they find room, else read again in each turn, and their nodes run
// as those of any graph (ADR 0047).
#include <fstream>
#include <functional>
#include <set>

#include "sluice/model/body.h"
#include "sluice/plan/plan_file.h"
#include "sluice/plan/verify.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t kSide = 512;  // of a square weight: 1 MiB
constexpr std::uint64_t kWeightBytes = kSide * kSide * sizeof(float);
constexpr int kBool = 9, kI64 = 7;

/// v -> 8 (v A) B, while a count stays below an input: the plan does not know how often.
OnnxBuilder loop_model(bool gemm) {
  OnnxBuilder body(13);
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {3, kSide}).input("done", {1});
  if (gemm)
    body.node("Gemm", {"v", "a", "c"}, {"va"}, {attribute("transB", std::int64_t{1}), attribute("alpha", 0.5f)});
  else
    body.node("MatMul", {"v", "a"}, {"va"});
  body.node("MatMul", {"va", "b"}, {"vab"}).node("Mul", {"vab", "less"}, {"next"});
  body.node("Add", {"done", "one"}, {"more"}).node("Less", {"more", "most"}, {"again"}).node("Squeeze", {"again"}, {"going"});
  body.output("going").output("next").output("more");
  OnnxBuilder b(13);
  b.input("x", {3, kSide}).input("most", {1}).weight("a", {kSide, kSide}, 0.0007f).weight("b", {kSide, kSide}, 0.0005f);
  b.weight("c", {kSide}, 0.01f).initializer(tensor("one", {1}, Floats{1})).initializer(tensor("zero", {1}, Floats{0}));
  b.initializer(tensor("less", {1}, Floats{8.0f}));
  b.node("Loop", {"", "", "x", "zero"}, {"y", "count"}, {attribute("body", body)}).output("y").output("count");
  return b;
}

/// The same, so many times, as nodes.
OnnxBuilder chain_model(bool gemm, int times) {
  OnnxBuilder b(13);
  b.input("x", {3, kSide}).weight("a", {kSide, kSide}, 0.0007f).weight("b", {kSide, kSide}, 0.0005f);
  b.weight("c", {kSide}, 0.01f).initializer(tensor("less", {1}, Floats{8.0f}));
  std::string v = "x";
  for (int i = 0; i < times; ++i) {
    const std::string n = std::to_string(i);
    if (gemm)
      b.node("Gemm", {v, "a", "c"}, {"va" + n}, {attribute("transB", std::int64_t{1}), attribute("alpha", 0.5f)});
    else
      b.node("MatMul", {v, "a"}, {"va" + n});
    b.node("MatMul", {"va" + n, "b"}, {"vab" + n}).node("Mul", {"vab" + n, "less"}, {"v" + n});
    v = "v" + n;
  }
  b.node("Identity", {v}, {"y"}).output("y");
  return b;
}

bool reads_in_steps(const plan::Plan& plan) {
  return std::any_of(plan.operands.begin(), plan.operands.end(), [](const plan::WeightOperand& o) { return !o.load.valid(); });
}

}  // namespace

TEST_CASE("products of a Loop stream, in slices, with the bits of the same nodes unrolled") {
  const TemporaryFolder folder;
  const Floats x = ramp(3 * kSide, 0.05f);
  for (const bool gemm : {false, true}) {
    const auto looped = converted(folder, loop_model(gemm), "loop");
    // A quarter of the larger weight: no weight is ever whole in memory.
    const Values found = check_budgets(looped, {x, {5}}, Bytes(kWeightBytes / 4));
    const Values want = outputs(converted(folder, chain_model(gemm, 5), "chain"), {x}, {});
    CHECK(worst({Floats(want[0].size())}, want) > 0.01f);
    if (gemm)
      CHECK(worst({found[0]}, want) < 1e-5f);  // alpha and c follow the product, instead of being part of it
    else
      CHECK(found[0] == want[0]);
    CHECK(found[1] == Floats{5});
  }
}

TEST_CASE("between the smallest budget and all memory a body's weights are held one after the other") {
  const TemporaryFolder folder;
  const auto model = converted(folder, loop_model(false), "loop");
  const Values inputs = {ramp(3 * kSide, 0.05f), {4}};
  const Values all = outputs(model, inputs, {});
  const Bytes least = *minimum_budget(*model, {});
  std::set<std::size_t> in_steps;
  for (const std::uint64_t more : {std::uint64_t{0}, kWeightBytes / 2, kWeightBytes * 3 / 2, kWeightBytes * 3}) {
    const SessionOptions options{.budget = least + Bytes(more)};
    const auto planned = plan_session(*model, options);
    REQUIRE(planned);
    const auto& operands = planned->plan.operands;
    in_steps.insert(static_cast<std::size_t>(
        std::count_if(operands.begin(), operands.end(), [](const plan::WeightOperand& o) { return !o.load.valid(); })));
    CHECK(outputs(model, inputs, options) == all);
  }
  CHECK(in_steps == std::set<std::size_t>{0, 1, 2});
}

TEST_CASE("the weights of a Scan's body stream") {
  OnnxBuilder body(13), b(13);
  body.input("h", {1, kSide}).input("v", {1, kSide}).node("MatMul", {"v", "a"}, {"va"}).node("MatMul", {"h", "b"}, {"hb"});
  body.node("Add", {"va", "hb"}, {"sum"}).node("Mul", {"sum", "less"}, {"next"}).node("Identity", {"next"}, {"row"});
  body.output("next").output("row");
  b.input("h0", {1, kSide}).input("x", {6, 1, kSide}).weight("a", {kSide, kSide}, 0.0007f).weight("b", {kSide, kSide}, 0.0005f);
  b.initializer(tensor("less", {1}, Floats{1.0f}));
  b.node("Scan", {"h0", "x"}, {"last", "all"}, {attribute("body", body), attribute("num_scan_inputs", std::int64_t{1})});
  b.output("last").output("all");
  const TemporaryFolder folder;
  const Values found = check_budgets(converted(folder, b, "scan"), {ramp(kSide, 0.03f), ramp(6 * kSide, 0.05f)}, Bytes(kWeightBytes / 4));
  OnnxBuilder nodes(13);
  nodes.input("h0", {1, kSide}).input("x", {6, 1, kSide}).weight("a", {kSide, kSide}, 0.0007f).weight("b", {kSide, kSide}, 0.0005f);
  nodes.initializer(tensor("less", {1}, Floats{1.0f}));
  std::string h = "h0";
  for (std::int64_t i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    nodes.initializer(tensor("at" + n, {}, Ints{i})).node("Gather", {"x", "at" + n}, {"v" + n});
    nodes.node("MatMul", {"v" + n, "a"}, {"va" + n}).node("MatMul", {h, "b"}, {"hb" + n});
    nodes.node("Add", {"va" + n, "hb" + n}, {"sum" + n}).node("Mul", {"sum" + n, "less"}, {"s" + n});
    h = "s" + n;
  }
  nodes.node("Identity", {h}, {"last"}).output("last");
  const Values want = outputs(converted(folder, nodes, "nodes"), {ramp(kSide, 0.03f), ramp(6 * kSide, 0.05f)}, {});
  CHECK(worst({Floats(want[0].size())}, want) > 0.01f);
  CHECK(found[0] == want[0]);
}

TEST_CASE("of an If only the branch that is taken is read") {
  // The branches give different extents; a sum over them has one shape.
  const auto branch = [](const std::string& weight, const std::string& name) {
    OnnxBuilder body(13);
    body.node("MatMul", {"x", weight}, {name}).output(name);
    return body;
  };
  OnnxBuilder b(13);
  b.input("x", {2, kSide}).weight("wide", {kSide, 3 * kSide}, 0.0007f).weight("narrow", {kSide, kSide}, 0.0005f);
  b.initializer(tensor("zero", {}, Floats{0})).initializer(tensor("last", {1}, Ints{1}));
  b.node("ReduceSum", {"x"}, {"total"}, {attribute("keepdims", std::int64_t{0})}).node("Greater", {"total", "zero"}, {"c"});
  b.node("If", {"c"}, {"t"}, {attribute("then_branch", branch("wide", "w")), attribute("else_branch", branch("narrow", "n"))});
  b.node("ReduceSum", {"t", "last"}, {"y"}).output("y");
  const TemporaryFolder folder;
  const auto model = converted(folder, b, "if");
  for (const float sign : {1.0f, -1.0f}) {
    Floats x(2 * kSide);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sign * static_cast<float>(i % 5);
    check_budgets(model, {x}, Bytes(kWeightBytes / 2));
    SessionOptions options;
    options.budget = *minimum_budget(*model, options);
    const auto session = Session::create(model, options);
    REQUIRE(session);
    REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
    REQUIRE((*session)->run());
    const Bytes read = (*session)->stats().bytes_read;
    CHECK((read > Bytes(2 * kWeightBytes)) == (sign > 0));
  }
}

TEST_CASE("a branch that fails on some values runs only where it is taken") {
  OnnxBuilder taken(13), other(13);
  taken.node("Gather", {"x", "index"}, {"row"}).node("MatMul", {"row", "w"}, {"yes"}).output("yes");
  other.node("Identity", {"z"}, {"no"}).output("no");
  OnnxBuilder b(13);
  b.input("x", {3, 16}).input("z", {1, 16}).input("at", {1}).weight("w", {16, 16}, 0.01f);
  b.initializer(tensor("rows", {1}, Floats{3})).node("Less", {"at", "rows"}, {"within"}).node("Squeeze", {"within"}, {"c"});
  b.node("Cast", {"at"}, {"index"}, {attribute("to", std::int64_t{kI64})});
  b.node("If", {"c"}, {"y"}, {attribute("then_branch", taken), attribute("else_branch", other)}).output("y");
  const TemporaryFolder folder;
  const auto model = converted(folder, b, "guarded");
  const Floats x = ramp(3 * 16, 0.05f), z = ramp(16, 0.5f);
  CHECK(outputs(model, {x, z, {7}}, {})[0] == z);
  CHECK(outputs(model, {x, z, {2}}, {})[0] != z);
}

TEST_CASE("weights of a body that are damaged in the file are an error of each run") {
  const TemporaryFolder folder;
  const auto intact = converted(folder, loop_model(false), "loop");
  const model::Weight& weight = intact->graph().weights[0];
  std::fstream file(folder.path("loop.sluice"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(weight.offset.count() + weight.bytes.count() - 100));
  file.put('\x5a');
  file.close();
  const auto model = *Model::open(folder.path("loop.sluice"));
  SessionOptions options;
  options.budget = *minimum_budget(*model, options);
  const auto session = Session::create(model, options);
  REQUIRE(session);
  const Floats x = ramp(3 * kSide, 0.05f), most = {3};
  for (int run = 0; run < 2; ++run) {
    REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
    REQUIRE((*session)->set_input(1, DType::kF32, std::as_bytes(std::span(most))));
    const Status status = (*session)->run();
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kChecksumMismatch);
    CHECK(status.error().subject().find(" at file offset ") != std::string_view::npos);
  }
}

TEST_CASE("a plan whose steps read what they may not is refused") {
  const TemporaryFolder folder;
  const auto model = converted(folder, loop_model(false), "loop");
  SessionOptions options;
  options.budget = *minimum_budget(*model, options);
  const auto planned = plan_session(*model, options);
  REQUIRE(planned);
  REQUIRE(reads_in_steps(planned->plan));
  const plan::VerifyContext context{.file_size = model->file().file_size(), .model_hash = model->file().hash()};
  REQUIRE(plan::verify(planned->plan, model->graph(), context));
  const auto broken = [&](auto&& change) {
    plan::Plan plan = planned->plan;
    for (plan::Step& step : plan.steps)
      if (step.operand_count > 0 && !plan.operands[step.first_operand].load.valid()) change(plan, step);
    return !plan::verify(plan, model->graph(), context);
  };
  CHECK(broken([](plan::Plan&, plan::Step& step) { step.workspace = BufferId::invalid(); }));
  CHECK(broken([](plan::Plan& plan, plan::Step& step) { plan.buffers[step.workspace.index()].size = Bytes(65536); }));
  CHECK(broken([](plan::Plan& plan, plan::Step& step) { plan.operands[step.first_operand].panels.end -= 1; }));
  // A layer of the graph itself never reads by itself.
  const auto chain = converted(folder, chain_model(false, 1), "chain");
  auto layers = plan_session(*chain, {});
  REQUIRE(layers);
  for (plan::WeightOperand& operand : layers->plan.operands) operand.load = LoadId::invalid();
  CHECK_FALSE(plan::verify(layers->plan, chain->graph(), {.file_size = chain->file().file_size(), .model_hash = chain->file().hash()}));
}

namespace {

/// A loop over an image, as often as an input says: a convolution, a batch norm that is folded, a relu, a product with what it captures.
OnnxBuilder image_loop() {
  OnnxBuilder body(13);
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {1, 32, 12, 12}).input("done", {1});
  body.node("Conv", {"v", "k", "c"}, {"conv"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"conv"}, {"positive"});
  body.node("Mul", {"positive", "scale"}, {"next"}).node("Add", {"done", "one"}, {"more"}).node("Less", {"more", "most"}, {"again"});
  body.node("Squeeze", {"again"}, {"going"}).output("going").output("next").output("more");
  OnnxBuilder b(13);
  b.input("x", {1, 32, 12, 12}).input("most", {1}).input("factor", {1}).weight("k", {32, 32, 3, 3}, 0.004f).weight("c", {32}, 0.01f);
  b.initializer(tensor("one", {1}, Floats{1})).initializer(tensor("zero", {1}, Floats{0})).node("Mul", {"factor", "factor"}, {"scale"});
  b.node("Loop", {"", "", "x", "zero"}, {"y", "count"}, {attribute("body", body)}).output("y").output("count");
  return b;
}

OnnxBuilder image_chain(int times) {
  OnnxBuilder b(13);
  b.input("x", {1, 32, 12, 12}).input("factor", {1}).weight("k", {32, 32, 3, 3}, 0.004f).weight("c", {32}, 0.01f);
  b.node("Mul", {"factor", "factor"}, {"scale"});
  std::string v = "x";
  for (int i = 0; i < times; ++i) {
    const std::string n = std::to_string(i);
    b.node("Conv", {v, "k", "c"}, {"conv" + n}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"conv" + n}, {"positive" + n});
    b.node("Mul", {"positive" + n, "scale"}, {"v" + n});
    v = "v" + n;
  }
  return b.node("Identity", {v}, {"y"}).output("y");
}

const model::Node& runner_in(const model::Graph& graph) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const model::Node& node) { return node.subgraph_count > 0; });
}

}  // namespace

TEST_CASE("layers of a body run as those of a graph, with the same bits, at every budget") {
  const TemporaryFolder folder;
  const auto looped = converted(folder, image_loop(), "loop");
  importer::ConvertOptions exact;  // nodes of a body are of the class `exact`
  exact.exact = true;
  const auto chain = converted(folder, image_chain(4), "chain", exact);
  const Floats x = ramp(32 * 12 * 12, 0.03f);
  const Values found = check_budgets(looped, {x, {4}, {0.9f}}, kUnlimitedBytes, true);
  const Values want = outputs(chain, {x, {0.9f}}, {});
  CHECK(worst({Floats(want[0].size())}, want) > 1e-4f);
  CHECK(found[0] == want[0]);
  // One step for the convolution with its relu; the convolution's kernel is that of the chain.
  const auto planned = plan_session(*looped, {});
  REQUIRE(planned);
  const model::Graph& graph = looped->graph();
  const model::Body body = model::body_of(graph, runner_in(graph), 0);
  const auto conv = std::find_if(body.graph.nodes.begin(), body.graph.nodes.end(),
                                 [](const model::Node& node) { return node.op == model::OpKind::kConv; });
  REQUIRE(conv != body.graph.nodes.end());
  CHECK(conv->epilogue.activation.function == model::Function::kRelu);
  CHECK(body.count_captures() == 2);
}

TEST_CASE("weights of loops within a loop's body stream, in the loads of the outer body") {
  OnnxBuilder inner(13), body(13), b(13);
  inner.input("j", {}, kI64)
      .input("on", {}, kBool)
      .input("u", {3, kSide})
      .node("MatMul", {"u", "a"}, {"ua"})
      .node("Mul", {"ua", "less"}, {"t"});
  inner.node("Identity", {"on"}, {"stay"}).output("stay").output("t");
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {3, kSide});
  body.node("Loop", {"inner", "", "v"}, {"w"}, {attribute("body", inner)})
      .node("MatMul", {"w", "b"}, {"wb"})
      .node("Mul", {"wb", "less"}, {"next"});
  body.node("Identity", {"go"}, {"still"}).output("still").output("next");
  b.input("x", {3, kSide}).input("turns", {1}).weight("a", {kSide, kSide}, 0.0007f).weight("b", {kSide, kSide}, 0.0005f);
  b.initializer(tensor("less", {1}, Floats{8.0f})).node("Cast", {"turns"}, {"n"}, {attribute("to", std::int64_t{kI64})});
  b.node("Add", {"n", "n"}, {"twice"}).node("Sub", {"twice", "n"}, {"inner"});
  b.node("Loop", {"n", "", "x"}, {"y"}, {attribute("body", body)}).output("y");
  const TemporaryFolder folder;
  const auto model = converted(folder, b, "nested");
  REQUIRE(model->graph().subgraphs.size() == 2);
  const Values found = check_budgets(model, {ramp(3 * kSide, 0.05f), {2}}, Bytes(2 * kWeightBytes), true);
  CHECK(worst({Floats(found[0].size())}, found) > 0.001f);
}

TEST_CASE("what a branch within a body does not take is neither computed nor read") {
  OnnxBuilder yes(13), no(13), body(13), b(13);
  yes.node("MatMul", {"v", "a"}, {"va"}).output("va");
  no.node("Mul", {"v", "less"}, {"vl"}).output("vl");
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {3, kSide}).input("done", {1});
  body.node("If", {"c"}, {"next"}, {attribute("then_branch", yes), attribute("else_branch", no)}).node("Add", {"done", "one"}, {"more"});
  body.node("Less", {"more", "most"}, {"again"}).node("Squeeze", {"again"}, {"going"}).output("going").output("next").output("more");
  b.input("x", {3, kSide}).input("most", {1}).input("way", {1}).weight("a", {kSide, kSide}, 0.0007f);
  b.initializer(tensor("one", {1}, Floats{1})).initializer(tensor("zero", {1}, Floats{0})).initializer(tensor("less", {1}, Floats{0.5f}));
  b.node("Greater", {"way", "zero"}, {"positive"}).node("Squeeze", {"positive"}, {"c"});
  b.node("Loop", {"", "", "x", "zero"}, {"y", "count"}, {attribute("body", body)}).output("y");
  const TemporaryFolder folder;
  const auto model = converted(folder, b, "branches");
  const Floats x = ramp(3 * kSide, 0.05f);
  for (const float way : {1.0f, -1.0f}) {
    check_budgets(model, {x, {3}, {way}}, Bytes(kWeightBytes / 2));
    SessionOptions options;
    options.budget = *minimum_budget(*model, options);
    const auto session = Session::create(model, options);
    REQUIRE(session);
    const Values inputs = {x, {3}, {way}};
    for (std::size_t i = 0; i < inputs.size(); ++i) REQUIRE((*session)->set_input(i, DType::kF32, std::as_bytes(std::span(inputs[i]))));
    REQUIRE((*session)->run());
    CHECK(((*session)->stats().bytes_read > Bytes(2 * kWeightBytes)) == (way > 0));
  }
}

TEST_CASE("a broken sub-plan is refused, by the rule that it breaks") {
  const TemporaryFolder folder;
  const auto model = converted(folder, loop_model(false), "loop");
  SessionOptions options;
  options.budget = *minimum_budget(*model, options);
  const auto planned = plan_session(*model, options);
  REQUIRE(planned);
  REQUIRE(planned->plan.subplans.size() == 1);
  REQUIRE_FALSE(planned->plan.subplans[0].loads.empty());
  const plan::VerifyContext context{.file_size = model->file().file_size(), .model_hash = model->file().hash()};
  struct Break {
    const char* what;
    std::function<void(plan::Plan& outer, plan::Plan& sub)> apply;
    const char* reason;
  };
  const Break breaks[] = {
      {"no sub-plan", [](plan::Plan& outer, plan::Plan&) { outer.subplans.clear(); }, "I0: the plan has not one sub-plan"},
      {"an empty one", [](plan::Plan&, plan::Plan& sub) { sub = {}; }, "I0: a subgraph is not planned"},
      {"of another model", [](plan::Plan&, plan::Plan& sub) { ++sub.model_hash; }, "I0: the plan was made for another model"},
      {"for more threads", [](plan::Plan&, plan::Plan& sub) { sub.threads = 2; }, "I0: it is for another disk or number of threads"},
      {"beyond the workspace",
       [](plan::Plan&, plan::Plan& sub) {
         plan::Buffer more = sub.buffers[0];
         more.offset = Bytes(align_up(sub.arena_bytes.count(), 64));
         more.size = Bytes(1 << 20);
         sub.buffers.push_back(more);
         sub.arena_bytes = sub.capacity = more.offset + more.size;
       },
       "I3: its arena lies beyond the workspace"},
      {"an arena that is more than it says", [](plan::Plan&, plan::Plan& sub) { sub.arena_bytes = Bytes(64); }, "I3"},
      {"a load too few", [](plan::Plan&, plan::Plan& sub) { sub.steps.back().loads_needed = 0, sub.steps[1].loads_needed = 0; }, "I5"},
      {"a gate too early", [](plan::Plan&, plan::Plan& sub) { sub.loads.back().gate = -static_cast<std::int64_t>(sub.steps.size()); }, "I"},
      {"a step too few", [](plan::Plan&, plan::Plan& sub) { sub.steps.pop_back(); }, "I"},
      {"steps in another order", [](plan::Plan&, plan::Plan& sub) { std::swap(sub.steps.front().node, sub.steps.back().node); }, "I"},
      {"a weight that nobody brings", [](plan::Plan&, plan::Plan& sub) { sub.operands.front().load = LoadId::invalid(); },
       "I5: no load brings"},
      {"a weight that the step does not hold",
       [](plan::Plan& outer, plan::Plan&) {
         // The small constants of the body come with the outer plan's loads.
         for (plan::WeightOperand& operand : outer.operands) operand.load = LoadId::invalid();
       },
       "I5"},
      {"a prepare step", [](plan::Plan&, plan::Plan& sub) { sub.steps.front().prepare = true; }, "I0"},
  };
  REQUIRE(plan::verify(planned->plan, model->graph(), context));
  for (const Break& broken : breaks) {
    INFO(broken.what);
    plan::Plan plan = planned->plan;
    broken.apply(plan, plan.subplans[0]);
    const Status status = plan::verify(plan, model->graph(), context);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kInvalidPlan);
    INFO(status.error().to_string());
    CHECK(std::string(status.error().to_string()).find(broken.reason) != std::string::npos);
  }
}

TEST_CASE("a plan with sub-plans runs from its file") {
  const TemporaryFolder folder;
  const auto model = converted(folder, loop_model(false), "loop");
  const Values inputs = {ramp(3 * kSide, 0.05f), {4}};
  const Values want = outputs(model, inputs, {});
  SessionOptions options;
  options.budget = *minimum_budget(*model, options) + Bytes(kWeightBytes / 2);
  const auto planned = plan_session(*model, options);
  REQUIRE(planned);
  REQUIRE(plan::save_plan(planned->plan, folder.path("loop.plan")));
  const auto loaded = plan::load_plan(folder.path("loop.plan"));
  REQUIRE(loaded);
  options.plan = &*loaded;
  CHECK(outputs(model, inputs, options) == want);
}
