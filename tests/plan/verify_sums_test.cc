// Parts of sums: which chains of steps the verifier takes, and by which rule it refuses the others.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/operators/validate.h"
#include "sluice/plan/verify.h"
#include "src/model/layout.h"

namespace sluice::plan {
namespace {

constexpr std::uint64_t kHash = 0x5151;
constexpr std::int64_t kInputs = 40;

/// relu(x * w + b + r) of four rows and two panels: three chains of parts, two of them interleaved.
struct Sample {
  enum Buffers : std::size_t { kBufX, kBufR, kBufY, kBufSums0, kBufSums1, kBufWeights };

  model::Graph graph;
  Plan plan;
  VerifyContext context;

  Sample() {
    make_graph();
    const auto size = model::assign_layout(graph, Bytes(4096));
    REQUIRE(size.has_value());
    REQUIRE(model::validate(graph, *size, operators::validate_node).has_value());
    context = {*size, kHash, Bytes(64)};
    make_plan();
  }

  std::string refusal() const {
    const Status status = verify(plan, graph, context);
    return status ? "" : status.error().to_string();
  }

 private:
  void make_graph() {
    graph.name = "sample";
    const Shape shapes[] = {{4, kInputs}, {4, 32}, {4, 32}};
    for (const Shape& shape : shapes) graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), DType::kF32, shape, {}});
    graph.inputs.push_back({"x", TensorId(0), shapes[0], {0, 1, 2, 3, 4, 5, 6, 7}});
    graph.inputs.push_back({"r", TensorId(1), shapes[1], {0, 1, 2, 3, 4, 5, 6, 7}});
    graph.outputs.push_back({"y", TensorId(2), shapes[2], {0, 1, 2, 3, 4, 5, 6, 7}});
    model::Weight panels;
    panels.name = "w";
    panels.panel_layout.layout = model::WeightLayout::kPanels;
    panels.shape = {32, kInputs};
    panels.panels = 2;
    panels.panel_bytes = Bytes(64 * kInputs);
    model::Weight bias;
    bias.name = "b";
    bias.shape = {32};
    bias.panel_bytes = Bytes(128);
    graph.weights = {panels, bias};
    model::Node node;
    node.name = "dense";
    node.op = model::OpKind::kDense;
    node.inputs = {TensorId(0), TensorId(1)};
    node.outputs = {TensorId(2)};
    node.attributes = model::DenseAttributes{kInputs, 32};
    node.weights = {WeightId(0), WeightId(1)};
    node.epilogue = {true, true, {model::Function::kRelu, 0, 0}};
    graph.nodes.push_back(node);
  }

  void add_part(RowRange rows, ChannelRange channels, ReductionRange reduction, std::size_t sums) {
    Step step;
    step.node = NodeId(0);
    step.kernel = static_cast<KernelId>(1);
    step.rows = rows;
    step.channels = channels;
    step.reduction = reduction;
    step.sums = BufferId(sums);
    step.first_operand = static_cast<std::uint32_t>(plan.operands.size());
    step.operand_count = 2;
    step.loads_needed = 1;
    plan.steps.push_back(step);
    plan.operands.push_back({WeightId(0), {channels.begin / 16, channels.end / 16}, LoadId(0)});
    plan.operands.push_back({WeightId(1), {0, 1}, LoadId(0)});
  }

  void make_plan() {
    plan.model_hash = kHash;
    plan.buffers = {{BufferKind::kInput, Bytes(4 * 160 + 64), 64, Bytes(0), {0, 7}, false},
                    {BufferKind::kInput, Bytes(4 * 128 + 64), 64, Bytes(704), {0, 7}, false},
                    {BufferKind::kOutput, Bytes(4 * 128 + 64), 64, Bytes(1280), {3, 7}, false},
                    {BufferKind::kSums, Bytes(2 * 16 * 4), 64, Bytes(1856), {0, 5}, false},
                    {BufferKind::kSums, Bytes(2 * 32 * 4), 64, Bytes(1984), {1, 7}, false},
                    {BufferKind::kWeight, Bytes(8192), 4096, Bytes(4096), {0, 7}, true}};
    plan.capacity = plan.arena_bytes = Bytes(4096 + 8192 + 64);
    plan.resident_bytes = Bytes(8192);
    plan.tensors = {
        {BufferId(kBufX), Bytes(0), 160, 160, 0}, {BufferId(kBufR), Bytes(0), 128, 128, 0}, {BufferId(kBufY), Bytes(0), 128, 128, 0}};
    plan.loads = {{{Bytes(4096), Bytes(8192)}, BufferId(kBufWeights), 0, 2, true, 0, {0, 7}}};
    add_part({0, 2}, {0, 16}, {0, 13}, kBufSums0);
    add_part({0, 2}, {16, 32}, {0, 20}, kBufSums1);
    add_part({0, 2}, {0, 16}, {13, 14}, kBufSums0);
    add_part({0, 2}, {16, 32}, {20, kInputs}, kBufSums1);
    add_part({0, 2}, {0, 16}, {14, kInputs}, kBufSums0);
    add_part({2, 4}, {0, 32}, {0, 39}, kBufSums1);
    add_part({2, 4}, {0, 32}, {39, kInputs}, kBufSums1);
  }
};

struct Breakage {
  const char* what;
  std::function<void(Sample&)> apply;
  const char* reason;
};

model::Node& dense(Sample& s) { return s.graph.nodes[0]; }

const std::vector<Breakage>& breakages() {
  using S = Sample;
  static const std::vector<Breakage> all = {
      {"a gap", [](S& s) { s.plan.steps[4].reduction.begin = 15; }, "I6: its part of the sums does not follow"},
      {"an overlap", [](S& s) { s.plan.steps[4].reduction.begin = 13; }, "I6: its part of the sums does not follow"},
      {"falling k", [](S& s) { std::swap(s.plan.steps[2].reduction, s.plan.steps[4].reduction); },
       "I6: its part of the sums does not follow"},
      {"no first part", [](S& s) { s.plan.steps[0].reduction.begin = 1; }, "I6: it goes on from sums that no part began"},
      {"no last part",
       [](S& s) {
         s.plan.steps[6].reduction.end = 39, s.plan.steps[6].reduction.begin = 38;
         s.plan.steps[5].reduction.end = 38;
       },
       "I6: nobody finishes its sums"},
      {"begun twice", [](S& s) { s.plan.steps[2].reduction.begin = 0; }, "I6: it overwrites sums that are not finished"},
      {"two chains in one buffer", [](S& s) { s.plan.steps[1].sums = s.plan.steps[0].sums; },
       "I6: it overwrites sums that are not finished"},
      {"other rows",
       [](S& s) {
         s.plan.steps[2].rows = {0, 1};
       },
       "I6: it goes on from sums of other rows"},
      {"other channels",
       [](S& s) {
         s.plan.steps[3].channels = {0, 16};
         s.plan.operands[6].panels = {0, 1};
       },
       "I6: it goes on from sums of other rows"},
      {"another kernel", [](S& s) { s.plan.steps[4].kernel = static_cast<KernelId>(2); }, "I6: it goes on from sums of other rows"},
      {"a part of nothing",
       [](S& s) {
         s.plan.steps[2].reduction = {13, 13};
       },
       "I6: its part of the sums is empty"},
      {"a part below zero", [](S& s) { s.plan.steps[0].reduction.begin = -1; }, "I6: its part of the sums is empty"},
      {"beyond the inputs", [](S& s) { s.plan.steps[4].reduction.end = kInputs + 1; }, "I6: its part of the sums is empty"},
      {"beyond all numbers", [](S& s) { s.plan.steps[4].reduction.end = std::numeric_limits<std::int64_t>::max(); },
       "I6: its part of the sums"},
      {"a part that is the whole",
       [](S& s) {
         s.plan.steps[0].reduction = {0, kInputs};
       },
       "I6: its part of the sums is empty"},
      {"no buffer", [](S& s) { s.plan.steps[2].sums = {}; }, "I6: its unfinished sums lie in no buffer"},
      {"a buffer that does not exist", [](S& s) { s.plan.steps[2].sums = BufferId(99); }, "I0: the buffer of its unfinished sums"},
      {"sums in an activation", [](S& s) { s.plan.buffers[S::kBufSums0].kind = BufferKind::kActivation; },
       "I6: its unfinished sums lie in a buffer"},
      {"sums in a workspace", [](S& s) { s.plan.buffers[S::kBufSums0].kind = BufferKind::kWorkspace; },
       "I6: its unfinished sums lie in a buffer"},
      {"too small a buffer", [](S& s) { s.plan.buffers[S::kBufSums1].size = Bytes(255); }, "I3: its unfinished sums"},
      {"a buffer that dies between", [](S& s) { s.plan.buffers[S::kBufSums0].lifetime.end = 4; }, "I1: the buffer of its unfinished sums"},
      {"a buffer that comes late", [](S& s) { s.plan.buffers[S::kBufSums0].lifetime.begin = 1; }, "I1: the buffer of its unfinished sums"},
      {"sums over an input", [](S& s) { s.plan.buffers[S::kBufSums0].offset = Bytes(640); }, "I2"},
      {"a tensor in the sums",
       [](S& s) { s.plan.tensors[2].buffer = BufferId(S::kBufSums1), s.plan.buffers[S::kBufSums1].size = Bytes(576); },
       "I6: it lies in a buffer that holds weights, sums"},
      {"sums of a whole step", [](S& s) { s.plan.steps[0].reduction = kWholeReduction; }, "I0: it has a buffer for unfinished sums"},
      {"the output written twice",
       [](S& s) {
         s.plan.steps[0].reduction = kWholeReduction;
         s.plan.steps[0].sums = {};
         s.plan.steps[2].reduction.begin = 0;
       },
       "I6: its steps write some elements twice"},
      {"the output before it lives", [](S& s) { s.plan.buffers[S::kBufY].lifetime.begin = 4; }, "I1: its buffer's lifetime begins after"},
      {"Winograd sums", [](S& s) { dense(s).numeric = model::NumericClass::kWinograd4; }, "I6: it takes a part of sums whose node"},
      {"quantised panels",
       [](S& s) {
         s.graph.weights[0].panel_layout.dtype = DType::kI8;
         s.graph.weights[0].panel_layout.scale = model::PanelScale::kF32;
       },
       "I6: it takes a part of sums whose node"},
      {"panels of other channels",
       [](S& s) {
         s.plan.operands[4].panels = {1, 2};
       },
       "I5: its panels are not those"},
      {"a part without its panels",
       [](S& s) {
         s.plan.loads[0].uses = {0, 6};
       },
       "I5: it reads a load outside the load's uses"},
      {"a prepare step", [](S& s) { s.plan.steps[0].prepare = true, s.plan.steps[0].derived.buffer = BufferId(0); },
       "I6: parts of sums are of raw"},
      {"a load of another form", [](S& s) { s.plan.loads[0].form = model::StretchForm::kEncrypted; },
       "I5: its stretches are stored in another form"},
      {"a sub-plan of nothing", [](S& s) { s.plan.subplans.emplace_back(); }, "I0: the plan has not one sub-plan"},
  };
  return all;
}

/// A 3x3 convolution adds tap after tap: its inputs are not outermost.
model::Node convolution(std::int64_t kernel, std::int64_t groups) {
  model::Node node;
  node.op = model::OpKind::kConv;
  model::ConvAttributes a;
  a.window = {8, 8, 8, 8, kernel, kernel, 1, 1, 1, 1, kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  a.groups = groups;
  a.in_channels = 32;
  a.out_channels = 32;
  node.attributes = a;
  node.weights = {WeightId(0)};
  return node;
}

}  // namespace

TEST_CASE("sums in parts, rows and channels cut besides, are a valid plan") {
  const Sample sample;
  CHECK(sample.refusal() == "");
  // A part does not make its rows: they are read when the last one is over. The buffer of sums may live for ever.
  Sample other;
  other.plan.buffers[Sample::kBufSums1].whole_period = true;
  other.plan.buffers[Sample::kBufSums1].lifetime = {0, 7};
  CHECK(other.refusal() == "");
}

TEST_CASE("parts of sums that break a rule are refused by it") {
  for (const Breakage& breakage : breakages()) {
    INFO(breakage.what);
    Sample sample;
    REQUIRE(sample.refusal() == "");
    breakage.apply(sample);
    const std::string text = sample.refusal();
    INFO(text);
    CHECK(text.find(breakage.reason) != std::string::npos);
  }
}

TEST_CASE("sums may be cut where inputs are outermost in the chain, and nowhere else") {
  model::Graph graph;
  model::Weight weight;
  weight.panel_layout.layout = model::WeightLayout::kPanels;
  graph.weights = {weight};
  CHECK(model::reduction_of(graph, convolution(1, 1)) == 32);
  CHECK(model::reduction_of(graph, convolution(3, 1)) == 0);
  CHECK(model::reduction_of(graph, convolution(1, 2)) == 0);
  model::Node relu;
  relu.op = model::OpKind::kUnary;
  CHECK(model::reduction_of(graph, relu) == 0);
  graph.weights[0].panel_layout.dtype = DType::kF16;
  CHECK(model::reduction_of(graph, convolution(1, 1)) == 0);
}

}  // namespace sluice::plan
