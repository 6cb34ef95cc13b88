// Parts of sums: which chains of steps the verifier takes, and by which rule it refuses the others.
#include <catch2/catch.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "sluice/plan/needs.h"
#include "tests/plan/verify_fixture.h"

namespace sluice::plan {
namespace {

constexpr std::int64_t kInputs = 40;

/// relu(x * w + b + r) of four rows and two panels: three chains of parts, two of them interleaved.
struct Sample : HandMade {
  enum Buffers : std::size_t { kBufX, kBufR, kBufY, kBufSums0, kBufSums1, kBufWeights };

  Sample() : HandMade("sample") {
    make_graph();
    lay_out_file();
    make_plan();
  }

 private:
  void make_graph() {
    add_tensors({{4, kInputs}, {4, 32}, {4, 32}});
    add_input("x", 0);
    add_input("r", 1);
    add_output("y", 2);
    add_dense_weights(32, kInputs);
    model::Node& node = add_node(model::OpKind::kDense, {0, 1}, 2, model::DenseAttributes{kInputs, 32});
    node.weights = {WeightId(0), WeightId(1)};
    node.epilogue = {.has_bias = true, .has_residual = true, .activation = {model::Function::kRelu, 0, 0}};
  }

  void add_part(RowRange rows, ChannelRange channels, ReductionRange reduction, std::size_t sums) {
    Step& step = add_step(0, rows, channels, 2, 1);
    step.reduction = reduction;
    step.sums = BufferId(sums);
    plan.operands.push_back({WeightId(0), {channels.begin / 16, channels.end / 16}, LoadId(0)});
    plan.operands.push_back({WeightId(1), {0, 1}, LoadId(0)});
  }

  void make_plan() {
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

using Breakage = BreakageOf<Sample>;

model::Node& dense(Sample& s) { return s.graph.nodes[0]; }

const std::vector<Breakage>& breakages() {
  using S = Sample;
  static const std::vector<Breakage> all = {
      {"I6: its part of the sums does not follow", "a gap", [](S& s) { s.plan.steps[4].reduction.begin = 15; }},
      {"I6: its part of the sums does not follow", "an overlap", [](S& s) { s.plan.steps[4].reduction.begin = 13; }},
      {"I6: its part of the sums does not follow", "falling k",
       [](S& s) { std::swap(s.plan.steps[2].reduction, s.plan.steps[4].reduction); }},
      {"I6: it goes on from sums that no part began", "no first part", [](S& s) { s.plan.steps[0].reduction.begin = 1; }},
      {"I6: nobody finishes its sums", "no last part",
       [](S& s) {
         s.plan.steps[6].reduction.end = 39, s.plan.steps[6].reduction.begin = 38;
         s.plan.steps[5].reduction.end = 38;
       }},
      {"I6: it overwrites sums that are not finished", "begun twice", [](S& s) { s.plan.steps[2].reduction.begin = 0; }},
      {"I6: it overwrites sums that are not finished", "two chains in one buffer",
       [](S& s) { s.plan.steps[1].sums = s.plan.steps[0].sums; }},
      {"I6: it goes on from sums of other rows", "other rows",
       [](S& s) {
         s.plan.steps[2].rows = {0, 1};
       }},
      {"I6: it goes on from sums of other rows", "other channels",
       [](S& s) {
         s.plan.steps[3].channels = {0, 16};
         s.plan.operands[6].panels = {0, 1};
       }},
      {"I6: it goes on from sums of other rows", "another kernel", [](S& s) { s.plan.steps[4].kernel = static_cast<KernelId>(2); }},
      {"I6: its part of the sums is empty", "a part of nothing",
       [](S& s) {
         s.plan.steps[2].reduction = {13, 13};
       }},
      {"I6: its part of the sums is empty", "a part below zero", [](S& s) { s.plan.steps[0].reduction.begin = -1; }},
      {"I6: its part of the sums is empty", "beyond the inputs", [](S& s) { s.plan.steps[4].reduction.end = kInputs + 1; }},
      {"I6: its part of the sums", "beyond all numbers",
       [](S& s) { s.plan.steps[4].reduction.end = std::numeric_limits<std::int64_t>::max(); }},
      {"I6: its part of the sums is empty", "a part that is the whole",
       [](S& s) {
         s.plan.steps[0].reduction = {0, kInputs};
       }},
      {"I6: its unfinished sums lie in no buffer", "no buffer", [](S& s) { s.plan.steps[2].sums = {}; }},
      {"I0: the buffer of its unfinished sums", "a buffer that does not exist", [](S& s) { s.plan.steps[2].sums = BufferId(99); }},
      {"I6: its unfinished sums lie in a buffer", "sums in an activation",
       [](S& s) { s.plan.buffers[S::kBufSums0].kind = BufferKind::kActivation; }},
      {"I6: its unfinished sums lie in a buffer", "sums in a workspace",
       [](S& s) { s.plan.buffers[S::kBufSums0].kind = BufferKind::kWorkspace; }},
      {"I3: its unfinished sums", "too small a buffer", [](S& s) { s.plan.buffers[S::kBufSums1].size = Bytes(255); }},
      {"I1: the buffer of its unfinished sums", "a buffer that dies between", [](S& s) { s.plan.buffers[S::kBufSums0].lifetime.end = 4; }},
      {"I1: the buffer of its unfinished sums", "a buffer that comes late", [](S& s) { s.plan.buffers[S::kBufSums0].lifetime.begin = 1; }},
      {"I2", "sums over an input", [](S& s) { s.plan.buffers[S::kBufSums0].offset = Bytes(640); }},
      {"I6: it lies in a buffer that holds weights, sums", "a tensor in the sums",
       [](S& s) { s.plan.tensors[2].buffer = BufferId(S::kBufSums1), s.plan.buffers[S::kBufSums1].size = Bytes(576); }},
      {"I0: it has a buffer for unfinished sums", "sums of a whole step", [](S& s) { s.plan.steps[0].reduction = kWholeReduction; }},
      {"I6: its steps write some elements twice", "the output written twice",
       [](S& s) {
         s.plan.steps[0].reduction = kWholeReduction;
         s.plan.steps[0].sums = {};
         s.plan.steps[2].reduction.begin = 0;
       }},
      {"I1: its buffer's lifetime begins after", "the output before it lives", [](S& s) { s.plan.buffers[S::kBufY].lifetime.begin = 4; }},
      {"I6: it takes a part of sums whose node", "Winograd sums", [](S& s) { dense(s).numeric = model::NumericClass::kWinograd4; }},
      {"I6: it takes a part of sums whose node", "quantised panels",
       [](S& s) {
         s.graph.weights[0].panel_layout.dtype = DType::kI8;
         s.graph.weights[0].panel_layout.scale = model::PanelScale::kF32;
       }},
      {"I5: its panels are not those", "panels of other channels",
       [](S& s) {
         s.plan.operands[4].panels = {1, 2};
       }},
      {"I5: it reads a load outside the load's uses", "a part without its panels",
       [](S& s) {
         s.plan.loads[0].uses = {0, 6};
       }},
      {"I6: parts of sums are of raw", "a prepare step",
       [](S& s) { s.plan.steps[0].prepare = true, s.plan.steps[0].derived.buffer = BufferId(0); }},
      {"I5: its stretches are stored in another form", "a load of another form",
       [](S& s) { s.plan.loads[0].form = model::StretchForm::kEncrypted; }},
      {"I0: the plan has not one sub-plan", "a sub-plan of nothing", [](S& s) { s.plan.subplans.emplace_back(); }},
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
  check_passes(Sample());
  CHECK(needs_of(Sample().plan) == bit_of(Need::kSums));
  // A part does not make its rows: they are read when the last one is over. The buffer of sums may live for ever.
  Sample other;
  other.plan.buffers[Sample::kBufSums1].whole_period = true;
  other.plan.buffers[Sample::kBufSums1].lifetime = {0, 7};
  check_passes(other);
  other.plan.operands.front().load = {};
  CHECK(needs_of(other.plan) == (bit_of(Need::kSums) | bit_of(Need::kReads)));
}

TEST_CASE("parts of sums that break a rule are refused by it") { check_refused(breakages()); }

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
