#include "sluice/plan/verify.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/plan/verify_fixture.h"

namespace sluice::plan {
namespace {

using model::Graph;
using model::OpKind;

/// x -> relu -> dense (4 panels of 64 KiB, two slices) -> y; the halves of y -> relu -> concatenated -> reshaped -> relu in place -> out.
/// Slices, concatenation and reshape are views.
struct Sample : HandMade {
  enum Tensors : std::size_t { kX, kR, kY, kS0, kS1, kU0, kU1, kC, kZ, kOut };
  enum Nodes : std::size_t { kRelu, kDense, kSlice0, kSlice1, kRelu0, kRelu1, kConcat, kReshape, kLast };
  enum Buffers : std::size_t { kBufX, kBufR, kBufY, kBufC, kBufWorkspace, kBufBias, kBufFirst, kBufSecond };

  Sample() : HandMade("sample") {
    make_graph();
    lay_out_file();
    make_plan();
  }

 private:
  void make_graph() {
    add_tensors({{1, 1024}, {1, 1024}, {1, 64}, {1, 32}, {1, 32}, {1, 32}, {1, 32}, {1, 64}, {64}, {64}});
    add_input("x", kX);
    add_output("out", kOut);
    add_dense_weights(64, 1024);
    model::SliceAttributes second;
    second.start[1] = 32;
    add_node(OpKind::kUnary, {kX}, kR);
    model::Node& dense = add_node(OpKind::kDense, {kR}, kY, model::DenseAttributes{1024, 64});
    dense.weights = {WeightId(0), WeightId(1)};
    dense.epilogue.has_bias = true;
    add_node(OpKind::kSlice, {kY}, kS0, model::SliceAttributes{});
    add_node(OpKind::kSlice, {kY}, kS1, second);
    add_node(OpKind::kUnary, {kS0}, kU0);
    add_node(OpKind::kUnary, {kS1}, kU1);
    add_node(OpKind::kConcat, {kU0, kU1}, kC, model::AxisAttributes{1});
    add_node(OpKind::kReshape, {kC}, kZ);
    add_node(OpKind::kUnary, {kZ}, kOut);
  }

  void add_load(std::size_t buffer, std::uint32_t stretch, std::uint32_t count, bool resident, std::int64_t gate, StepRange uses) {
    const model::Stretch& first = graph.stretches[stretch];
    const model::Stretch& last = graph.stretches[stretch + count - 1];
    const Bytes begin(align_down(first.offset.count(), 4096));
    const Bytes end = align_up(last.offset + last.stored_size, 4096);
    plan.loads.push_back({{begin, end - begin}, BufferId(buffer), stretch, count, resident, gate, uses});
    (resident ? plan.resident_bytes : plan.streamed_bytes) += end - begin;
  }

  void make_plan() {
    plan.capacity = plan.arena_bytes = Bytes(159744 + 64);
    plan.buffers = {
        {BufferKind::kInput, Bytes(4160), 64, Bytes(0), {0, 1}, false},
        {BufferKind::kActivation, Bytes(4160), 64, Bytes(4160), {0, 3}, false},
        {BufferKind::kActivation, Bytes(320), 64, Bytes(8320), {1, 5}, false},
        {BufferKind::kOutput, Bytes(320), 64, Bytes(8640), {3, 6}, false},
        {BufferKind::kWorkspace, Bytes(128), 64, Bytes(0), {1, 2}, false},
        {BufferKind::kWeight, Bytes(4096), 4096, Bytes(12288), {0, 6}, true},
        {BufferKind::kWeight, Bytes(131072), 4096, Bytes(28672), {0, 2}, false},
        {BufferKind::kWeight, Bytes(131072), 4096, Bytes(28672), {2, 3}, false},
    };
    const auto lie = [&](std::size_t buffer, std::uint64_t offset, std::int64_t bytes) {
      plan.tensors.push_back({BufferId(buffer), Bytes(offset), bytes, bytes, 0});
    };
    lie(kBufX, 0, 4096);
    lie(kBufR, 0, 4096);
    lie(kBufY, 0, 256);
    lie(kBufY, 0, 256);
    lie(kBufY, 128, 256);
    lie(kBufC, 0, 256);
    lie(kBufC, 128, 256);
    lie(kBufC, 0, 256);
    lie(kBufC, 0, 256);
    lie(kBufC, 0, 256);
    // The bias comes first in the file: small weights lie in the segment before the others.
    add_load(kBufBias, graph.weights[1].first_stretch, 1, true, 0, {1, 3});
    add_load(kBufFirst, graph.weights[0].first_stretch, 2, false, 0, {1, 2});
    add_load(kBufSecond, graph.weights[0].first_stretch + 2, 2, false, 2, {2, 3});
    add_step(kRelu, {0, 1}, {0, 1024}, 0, 0);
    add_step(kDense, {0, 1}, {0, 32}, 2, 2);
    plan.steps.back().workspace = BufferId(kBufWorkspace);
    plan.operands.push_back({WeightId(0), {0, 2}, LoadId(1)});
    plan.operands.push_back({WeightId(1), {0, 1}, LoadId(0)});
    add_step(kDense, {0, 1}, {32, 64}, 2, 3);
    plan.operands.push_back({WeightId(0), {2, 4}, LoadId(2)});
    plan.operands.push_back({WeightId(1), {0, 1}, LoadId(0)});
    add_step(kRelu0, {0, 1}, {0, 32}, 0, 0);
    add_step(kRelu1, {0, 1}, {0, 32}, 0, 0);
    add_step(kLast, {0, 1}, {0, 64}, 0, 0);
  }
};

/// The same, with the first half of the dense layer transformed: a prepare step before it writes what it reads from then on.
struct DerivedSample : Sample {
  enum Steps : std::size_t { kPrepare = 1, kReader, kOther };
  static constexpr std::size_t kBufDerived = kBufSecond + 1;

  DerivedSample() {
    for (Buffer& b : plan.buffers) b.lifetime = {later(b.lifetime.begin), later(b.lifetime.end - 1) + 1};
    for (Load& load : plan.loads) {
      load.uses = {later(load.uses.begin), later(load.uses.end - 1) + 1};
      load.gate = later(load.gate);
    }
    plan.loads[1].prologue_only = true;
    plan.loads[1].uses = {kPrepare, kPrepare + 1};
    plan.buffers[kBufFirst].lifetime = {0, kPrepare + 1};
    plan.streamed_bytes = plan.streamed_bytes - Bytes(131072);
    Step prepare = plan.steps[1];
    prepare.prepare = true;
    prepare.workspace = BufferId::invalid();
    prepare.operand_count = 1;
    prepare.derived = {BufferId(kBufDerived), {0, 2}};
    Step& reader = plan.steps[1];
    reader.derived = prepare.derived;
    reader.first_operand = 1;
    reader.operand_count = 1;
    plan.steps.insert(plan.steps.begin() + kPrepare, prepare);
    plan.buffers.push_back({BufferKind::kDerived, Bytes(262144), 64, Bytes(163840), {0, 7}, true});
    plan.resident_bytes += Bytes(262144);
    plan.capacity = plan.arena_bytes = Bytes(163840 + 262144);
  }

  void add_derived_buffer() {
    plan.buffers.push_back(plan.buffers[kBufDerived]);
    plan.buffers.back().offset = Bytes(425984);
    plan.capacity = plan.arena_bytes = Bytes(425984 + 262144);
    plan.resident_bytes += Bytes(262144);
  }

 private:
  static std::int64_t later(std::int64_t step) { return step >= 1 ? step + 1 : step; }
};

using Breakage = BreakageOf<Sample>;

using S = Sample;

const std::vector<Breakage>& breakages() {
  static const std::vector<Breakage> all = {
      {"I0", "another model", [](S& s) { s.context.model_hash = 1; }},
      {"I0", "a tensor without placement", [](S& s) { s.plan.tensors.pop_back(); }},
      {"I0", "a node that does not exist", [](S& s) { s.plan.steps[3].node = NodeId(99); }},
      {"I0", "an invalid node", [](S& s) { s.plan.steps[3].node = NodeId::invalid(); }},
      {"I0", "no steps", [](S& s) { s.plan.steps.clear(); }},
      {"I0", "no threads", [](S& s) { s.plan.threads = 0; }},
      {"I0", "a block that is no power of two", [](S& s) { s.plan.block = 4095; }},
      {"I0", "a workspace that does not exist", [](S& s) { s.plan.steps[1].workspace = BufferId(99); }},
      {"I0", "operands beyond the last", [](S& s) { s.plan.steps[2].operand_count = 3; }},
      {"I0", "operands that no step has", [](S& s) { s.plan.operands.push_back(s.plan.operands[0]); }},
      {"I0", "a load that does not exist", [](S& s) { s.plan.operands[0].load = LoadId(99); }},
      {"I0", "a weight that does not exist", [](S& s) { s.plan.operands[0].weight = WeightId(99); }},
      {"I0", "stretches that do not exist", [](S& s) { s.plan.loads[2].stretch_count = 0xffffffffu; }},
      {"I0", "a buffer of a tensor that does not exist", [](S& s) { s.plan.tensors[S::kR].buffer = BufferId(99); }},
      {"I0", "a lifetime of many periods",
       [](S& s) {
         s.plan.buffers[S::kBufR].lifetime = {0, 1000};
       }},
      {"I0", "a lifetime that ends before it begins",
       [](S& s) {
         s.plan.buffers[S::kBufR].lifetime = {3, 0};
       }},
      {"I0", "needing loads that do not exist", [](S& s) { s.plan.steps[2].loads_needed = 4; }},

      {"I1", "a resident weight that does not live always", [](S& s) { s.plan.buffers[S::kBufBias].whole_period = false; }},
      {"I1", "a streamed weight that lives always",
       [](S& s) {
         s.plan.buffers[S::kBufSecond].offset = Bytes(159744);
         s.plan.capacity = s.plan.arena_bytes = Bytes(159744 + 131072 + 64);
         s.plan.buffers[S::kBufSecond].whole_period = true;
       }},
      {"I1", "a load that may write before its region is its own", [](S& s) { s.plan.loads[2].gate = 1; }},
      {"I1", "a region given up before its last use", [](S& s) { s.plan.buffers[S::kBufFirst].lifetime.end = 1; }},
      {"I1", "an activation that lives too late", [](S& s) { s.plan.buffers[S::kBufR].lifetime.begin = 1; }},
      {"I1", "an activation that dies too early", [](S& s) { s.plan.buffers[S::kBufR].lifetime.end = 2; }},
      {"I1", "an activation needed through a view", [](S& s) { s.plan.buffers[S::kBufY].lifetime.end = 4; }},
      {"I1", "an input that dies too early",
       [](S& s) {
         s.plan.buffers[S::kBufX].lifetime = {0, 0};
       }},
      {"I1", "an output that does not last", [](S& s) { s.plan.buffers[S::kBufC].lifetime.end = 5; }},
      {"I1", "a workspace of another time",
       [](S& s) {
         s.plan.buffers[S::kBufWorkspace].lifetime = {2, 3};
       }},

      {"I2", "activations that overlap", [](S& s) { s.plan.buffers[S::kBufY].offset = Bytes(8256); }},
      {"I2", "regions that overlap in time", [](S& s) { s.plan.buffers[S::kBufSecond].lifetime.begin = 1; }},
      {"I2", "a region over a resident weight", [](S& s) { s.plan.buffers[S::kBufFirst].offset = Bytes(12288); }},
      {"I2", "one target for two loads", [](S& s) { s.plan.loads[2].target = BufferId(S::kBufFirst); }},
      {"I2", "one buffer inside another", [](S& s) { s.plan.buffers[S::kBufY].offset = Bytes(28672); }},

      {"I3", "an arena larger than the capacity", [](S& s) { s.plan.capacity = s.plan.capacity - Bytes(1); }},
      {"I3", "a buffer beyond the arena", [](S& s) { s.plan.buffers[S::kBufFirst].offset = Bytes(159744); }},
      {"I3", "an offset that wraps round", [](S& s) { s.plan.buffers[S::kBufR].offset = Bytes(0xffffffffffffffc0u); }},
      {"I3", "a region without room for the tail", [](S& s) { s.plan.arena_bytes = Bytes(159744); }},
      {"I3", "a tensor larger than its buffer", [](S& s) { s.plan.buffers[S::kBufR].size = Bytes(4032); }},
      {"I3", "a tensor without room for the tail", [](S& s) { s.plan.buffers[S::kBufR].size = Bytes(4096); }},
      {"I3", "a row pitch out of the buffer", [](S& s) { s.plan.tensors[S::kS1].offset = Bytes(1u << 20); }},

      {"I4", "an offset against the alignment", [](S& s) { s.plan.buffers[S::kBufR].offset = Bytes(4164); }},
      {"I4", "an alignment less than kernels rely on", [](S& s) { s.plan.buffers[S::kBufR].alignment = 16; }},
      {"I4", "an alignment that is none", [](S& s) { s.plan.buffers[S::kBufR].alignment = 48; }},
      {"I4", "a region not congruent with the file",
       [](S& s) {
         s.plan.buffers[S::kBufFirst].alignment = 64;
         s.plan.buffers[S::kBufFirst].offset = Bytes(28672 - 64);
       }},
      {"I4", "a file range within a block", [](S& s) { s.plan.loads[1].file.size = s.plan.loads[1].file.size - Bytes(64); }},
      {"I4", "a file range beyond the file", [](S& s) { s.plan.loads[2].file.offset = s.context.file_size; }},
      {"I4", "a file range that wraps round", [](S& s) { s.plan.loads[2].file.offset = Bytes(0xfffffffffffff000u); }},
      {"I4", "a region smaller than its range", [](S& s) { s.plan.buffers[S::kBufFirst].size = Bytes(126976); }},
      {"I4", "a target that holds activations", [](S& s) { s.plan.buffers[S::kBufFirst].kind = BufferKind::kActivation; }},

      {"I5", "gates that fall",
       [](S& s) {
         s.plan.loads[1].gate = 1;
         s.plan.buffers[S::kBufFirst].lifetime.begin = 1;
         s.plan.loads[2].gate = 0;
         s.plan.buffers[S::kBufSecond].lifetime.begin = 0;
         s.plan.buffers[S::kBufSecond].offset = Bytes(159744);
         s.plan.capacity = s.plan.arena_bytes = Bytes(159744 + 131072 + 64);
       }},
      {"I6", "pixels without a pitch", [](S& s) { s.plan.tensors[S::kR].pixel_pitch = 0; }},
      {"I5", "a load that no step uses",
       [](S& s) {
         s.plan.loads[2].uses = {0, 0};
       }},
      {"I5", "a gate that waits for the step it feeds", [](S& s) { s.plan.loads[2].gate = 3; }},
      {"I5", "a step that does not wait for its load", [](S& s) { s.plan.steps[1].loads_needed = 1; }},
      {"I5", "a step that waits for a later load", [](S& s) { s.plan.steps[1].loads_needed = 3; }},
      {"I5", "panels of other channels",
       [](S& s) {
         s.plan.operands[0].panels = {1, 3};
       }},
      {"I5", "panels beyond the weight",
       [](S& s) {
         s.plan.operands[2].panels = {2, 5};
       }},
      {"I5", "no panels",
       [](S& s) {
         s.plan.operands[0].panels = {0, 0};
       }},
      {"I5", "a weight of a layer that no load brings", [](S& s) { s.plan.operands[0].load = {}; }},
      {"I5", "a load that brings other panels", [](S& s) { s.plan.operands[0].load = LoadId(0); }},
      {"I5", "a bias that is missing", [](S& s) { s.plan.operands[1].weight = WeightId(0); }},
      {"I5", "channels that are no whole panels",
       [](S& s) {
         s.plan.steps[1].channels.end = 40;
         s.plan.steps[2].channels.begin = 40;
       }},
      {"I5", "a use outside the load's uses",
       [](S& s) {
         s.plan.loads[0].uses = {1, 2};
       }},
      {"I5", "stretches outside the range read", [](S& s) { s.plan.loads[1].first_stretch += 1; }},

      {"I6", "a step before its input",
       [](S& s) {
         std::swap(s.plan.steps[4].node, s.plan.steps[5].node);
         std::swap(s.plan.steps[4].channels, s.plan.steps[5].channels);
       }},
      {"I6", "channels that nobody writes", [](S& s) { s.plan.steps[5].channels.end = 48; }},
      {"I6", "channels outside the output", [](S& s) { s.plan.steps[5].channels.end = 80; }},
      {"I6", "rows outside the output",
       [](S& s) {
         s.plan.steps[5].rows = {-1, 1};
       }},
      {"I6", "an element written twice", [](S& s) { s.plan.steps[4].node = NodeId(S::kRelu0); }},
      {"I6", "a relu without step",
       [](S& s) {
         s.plan.steps.pop_back();
         for (Buffer& b : s.plan.buffers) b.lifetime.end = std::min<std::int64_t>(b.lifetime.end, 5);
       }},
      {"I6", "a slice that is elsewhere", [](S& s) { s.plan.tensors[S::kS1].offset = Bytes(64); }},
      {"I6", "a slice of another buffer", [](S& s) { s.plan.tensors[S::kS1].buffer = BufferId(S::kBufR); }},
      {"I6", "a concatenation of other bytes", [](S& s) { s.plan.tensors[S::kU1].offset = Bytes(0); }},
      {"I6", "a reshape that lies elsewhere", [](S& s) { s.plan.tensors[S::kZ].buffer = BufferId(S::kBufR); }},
      {"I6", "a view of nothing", [](S& s) { s.plan.tensors[S::kZ].buffer = BufferId::invalid(); }},
      {"I6", "an input of a step that lies nowhere", [](S& s) { s.plan.tensors[S::kX].buffer = BufferId::invalid(); }},
      {"I6", "bytes overwritten while they are needed",
       [](S& s) {
         s.plan.tensors[S::kOut].offset = Bytes(0);
         s.plan.tensors[S::kR] = s.plan.tensors[S::kX];
         s.plan.tensors[S::kY] = {BufferId(S::kBufX), Bytes(0), 256, 256, 0};
         s.plan.tensors[S::kS0] = s.plan.tensors[S::kY];
         s.plan.tensors[S::kS1] = {BufferId(S::kBufX), Bytes(128), 256, 256, 0};
         s.plan.buffers[S::kBufX].lifetime.end = 5;
         s.plan.buffers[S::kBufWorkspace].offset = Bytes(8960);
       }},
      {"I6", "in place, but shifted",
       [](S& s) {
         s.plan.buffers[S::kBufC].size = Bytes(384);
         s.plan.tensors[S::kOut].offset = Bytes(4);
       }},
      {"I6", "a ring of less than no rows", [](S& s) { s.plan.tensors[S::kR].ring_rows = -1; }},
      {"I6", "a tensor in a workspace", [](S& s) { s.plan.buffers[S::kBufC].kind = BufferKind::kWorkspace; }},
      {"I6", "a workspace in an activation", [](S& s) { s.plan.steps[1].workspace = BufferId(S::kBufR); }},
      {"I6", "negative pitches", [](S& s) { s.plan.tensors[S::kR].row_pitch = -4096; }},

      {"I7", "a peak that is not the end of its buffers", [](S& s) { s.plan.capacity = s.plan.arena_bytes = Bytes(200000); }},
      {"I7", "streamed bytes that are not its loads'", [](S& s) { s.plan.streamed_bytes += Bytes(1); }},
      {"I7", "resident bytes that are not its loads'", [](S& s) { s.plan.resident_bytes = Bytes(); }},

      {"I8", "a gate more than a period away", [](S& s) { s.plan.loads[1].gate = -7; }},
      {"I8", "a wrapped region over the next period's activations",
       [](S& s) {
         s.plan.repeat = true;
         s.plan.buffers[S::kBufC].offset = Bytes(28672);
         s.plan.buffers[S::kBufFirst].lifetime = {-1, 2};
         s.plan.loads[1].gate = -1;
       }},
      {"I8", "a wrapped region that meets itself",
       [](S& s) {
         s.plan.repeat = true;
         s.plan.buffers[S::kBufSecond].offset = Bytes(159744);
         s.plan.capacity = s.plan.arena_bytes = Bytes(159744 + 131072 + 64);
         s.plan.buffers[S::kBufFirst].lifetime = {-5, 2};
         s.plan.loads[1].gate = -5;
       }},
      {"I8", "a wrapped resident load", [](S& s) { s.plan.loads[0].gate = -1; }},
      {"I8", "a wrapped load where no run follows",
       [](S& s) {
         s.plan.buffers[S::kBufFirst].lifetime = {-3, 2};
         s.plan.loads[1].gate = -3;
       }},
      {"I5", "gates that fall among the wrapped",
       [](S& s) {
         s.plan.repeat = true;
         s.plan.buffers[S::kBufFirst].lifetime = {-2, 2};
         s.plan.buffers[S::kBufSecond].lifetime = {-3, 3};
         s.plan.buffers[S::kBufSecond].offset = Bytes(159744);
         s.plan.capacity = s.plan.arena_bytes = Bytes(159744 + 131072 + 64);
         s.plan.loads[1].gate = -2;
         s.plan.loads[2].gate = -3;
       }},
  };
  return all;
}

using D = DerivedSample;

const std::vector<BreakageOf<D>>& derived_breakages() {
  static const std::vector<BreakageOf<D>> all = {
      {"I0", "derived weights that do not exist", [](D& s) { s.plan.steps[D::kReader].derived.buffer = BufferId(99); }},
      {"I0", "a prepare step that writes nothing", [](D& s) { s.plan.steps[D::kPrepare].derived = {}; }},
      {"I0", "derived weights of a node without weights", [](D& s) { s.plan.steps[0].derived = s.plan.steps[D::kReader].derived; }},
      {"I0", "a load both resident and given up", [](D& s) { s.plan.loads[0].prologue_only = true; }},
      {"I1", "derived weights that do not last", [](D& s) { s.plan.buffers[D::kBufDerived].whole_period = false; }},
      {"I1", "a prologue-only load that lasts",
       [](D& s) {
         s.plan.buffers[D::kBufFirst].whole_period = true;
         s.plan.buffers[D::kBufSecond].offset = Bytes(425984);
         s.plan.capacity = s.plan.arena_bytes = Bytes(425984 + 131072 + 64);
       }},
      {"I2", "derived weights over a region",
       [](D& s) {
         s.plan.buffers[D::kBufDerived].offset = Bytes(28672);
         s.plan.capacity = s.plan.arena_bytes = Bytes(28672 + 262144);
       }},
      {"I5", "raw panels beside derived ones",
       [](D& s) {
         s.plan.steps[D::kReader].first_operand = 0;
         s.plan.steps[D::kReader].operand_count = 2;
         s.plan.steps[D::kPrepare].operand_count = 0;
       }},
      {"I5", "derived panels of other channels",
       [](D& s) {
         s.plan.steps[D::kReader].derived.panels = {2, 4};
       }},
      {"I5", "a prepare step that does not wait for its load", [](D& s) { s.plan.steps[D::kPrepare].loads_needed = 1; }},
      {"I6", "derived weights read before they are written", [](D& s) { s.plan.steps[D::kReader].derived.buffer = BufferId(D::kBufR); }},
      {"I6", "derived weights that nobody wrote",
       [](D& s) {
         s.add_derived_buffer();
         s.plan.steps[D::kReader].derived.buffer = BufferId(D::kBufDerived + 1);
       }},
      {"I6", "derived weights in the form of another kernel", [](D& s) { s.plan.steps[D::kReader].kernel = static_cast<KernelId>(2); }},
      {"I6", "derived weights of another node's panels",
       [](D& s) {
         s.plan.steps[D::kPrepare].channels = {32, 64};
         s.plan.steps[D::kPrepare].derived.panels = {2, 4};
         s.plan.operands[0] = {WeightId(0), {2, 4}, LoadId(1)};
         s.plan.loads[1].first_stretch += 2;
         s.plan.loads[1].file.offset += Bytes(131072);
       }},
      {"I6", "a prepare step with a workspace", [](D& s) { s.plan.steps[D::kPrepare].workspace = BufferId(D::kBufWorkspace); }},
      {"I6", "channels that are prepared, not written",
       [](D& s) {
         s.add_derived_buffer();
         s.plan.steps[D::kReader].prepare = true;
         s.plan.steps[D::kReader].workspace = BufferId::invalid();
         s.plan.steps[D::kReader].derived.buffer = BufferId(D::kBufDerived + 1);
         s.plan.operands[1] = s.plan.operands[0];
         s.plan.loads[1].uses.end += 1;
         s.plan.buffers[D::kBufFirst].lifetime.end += 1;
       }},
      {"I8", "a step of every period that reads a prologue-only load",
       [](D& s) {
         s.plan.loads[2].prologue_only = true;
         s.plan.streamed_bytes = Bytes();
       }},
      {"I8", "a prepare step that reads a streamed load",
       [](D& s) {
         s.plan.loads[1].prologue_only = false;
         s.plan.streamed_bytes += Bytes(131072);
       }},
      {"I8", "a wrapped prologue-only load",
       [](D& s) {
         s.plan.repeat = true;
         s.plan.loads[1].gate = -1;
         s.plan.buffers[D::kBufFirst].lifetime.begin = -1;
       }},
      {"I7", "derived bytes that are not stated", [](D& s) { s.plan.resident_bytes = s.plan.resident_bytes - Bytes(262144); }},
  };
  return all;
}

/// Three nodes in bands of 2 rows, of 8, and one that runs whole: relu -> pool 3x3 -> add the input, in its place -> relu. What the first
/// two make are rings.
///
///     r   0-3     3-5     5-7     7-8          4 rows are held
///     p     0-2     2-4     4-6     6-8        2 rows are held
///     sum     0-2     2-4     4-6     6-8      takes the place of x, which r has read up to there
struct BandSample : HandMade {
  enum Tensors : std::size_t { kX, kR, kP, kSum, kOut };
  enum Nodes : std::size_t { kRelu, kPool, kAdd, kLast };

  BandSample() : HandMade("bands") {
    const Shape shape{1, 8, 4, 16};
    add_tensors({shape, shape, shape, shape, shape});
    add_input("x", kX);
    add_output("out", kOut);
    add_node(OpKind::kUnary, {kX}, kR);
    add_node(OpKind::kPool, {kR}, kP);
    set_window(3);
    add_node(OpKind::kBinary, {kP, kX}, kSum, model::BinaryAttributes{model::BinaryFunction::kAdd});
    add_node(OpKind::kUnary, {kSum}, kOut);
    for (std::int64_t band = 0; band < 4; ++band) {
      add_step(kRelu, {band == 0 ? 0 : 2 * band + 1, std::min<std::int64_t>(2 * band + 3, 8)}, {0, 16});
      add_step(kPool, {2 * band, 2 * band + 2}, {0, 16});
      add_step(kAdd, {2 * band, 2 * band + 2}, {0, 16});
    }
    add_step(kLast, {0, 8}, {0, 16});
    add_buffer(BufferKind::kInput, 8, {0, 13});
    add_buffer(BufferKind::kActivation, 4, {0, 12});
    add_buffer(BufferKind::kActivation, 2, {0, 12});
    add_buffer(BufferKind::kOutput, 8, {12, 13});
    for (const std::size_t buffer : {0, 1, 2, 0, 3}) plan.tensors.push_back({BufferId(buffer), Bytes(), 256, 64, 0});
    plan.tensors[kR].ring_rows = 4;
    plan.tensors[kP].ring_rows = 2;
    plan.capacity = plan.arena_bytes;
  }

  void set_window(std::int64_t height, std::size_t node = kPool) {
    model::PoolAttributes pool;
    pool.window = {8, 4, 8, 4, height, 3, 1, 1, 1, 1, height / 2, 1, height / 2, 1};
    graph.nodes[node].attributes = pool;
  }
  /// Step of a node's band, counted in the plan.
  Step& step(std::size_t node, std::size_t band) { return plan.steps[3 * band + node]; }

 private:
  void add_buffer(BufferKind kind, std::uint64_t rows, StepRange lifetime) {
    plan.buffers.push_back({kind, Bytes(rows * 256 + 64), 64, plan.arena_bytes, lifetime, false});
    plan.arena_bytes += Bytes(rows * 256 + 64);
  }
};

const std::vector<BreakageOf<BandSample>>& band_breakages() {
  using B = BandSample;
  static const std::vector<BreakageOf<B>> all = {
      {"I3", "a ring larger than its buffer", [](B& s) { s.plan.tensors[B::kR].ring_rows = 5; }},
      {"I6", "a ring that loses rows before their last reader", [](B& s) { s.plan.tensors[B::kR].ring_rows = 3; }},
      {"I6", "a ring smaller than a band that is written", [](B& s) { s.plan.tensors[B::kP].ring_rows = 1; }},
      {"I6", "a band that is read before it is made", [](B& s) { std::swap(s.step(B::kRelu, 1), s.step(B::kPool, 1)); }},
      {"I6", "a band that asks for more rows than are made", [](B& s) { s.set_window(5); }},
      {"I6", "a ring whose bands do not rise", [](B& s) { std::swap(s.step(B::kRelu, 0).rows, s.step(B::kRelu, 1).rows); }},
      {"I6", "a tensor whose bands do not rise, read before it is whole",
       [](B& s) {
         std::swap(s.step(B::kAdd, 0).rows, s.step(B::kAdd, 1).rows);
         std::swap(s.step(B::kAdd, 3), s.plan.steps.back());
       }},
      {"I6", "a band of which half the channels are missing",
       [](B& s) {
         s.step(B::kRelu, 1).channels = {0, 8};
         Step rest = s.step(B::kRelu, 1);
         rest.channels = {8, 16};
         s.plan.steps.insert(s.plan.steps.begin() + 12, rest);
         for (Buffer& buffer : s.plan.buffers) buffer.lifetime.end += 1;
       }},
      {"I6", "a band that is left out", [](B& s) { s.step(B::kAdd, 2) = s.step(B::kAdd, 1); }},
      {"I6", "an input replaced before another band reads it",
       [](B& s) {
         s.graph.nodes[B::kRelu].op = OpKind::kPool;
         s.graph.nodes[B::kRelu].epilogue = {};
         s.set_window(7, B::kRelu);
       }},
      {"I6", "an input replaced though a node that is not connected row by row reads it",
       [](B& s) {
         s.graph.nodes[B::kRelu].op = OpKind::kTranspose;
         s.graph.nodes[B::kRelu].attributes = model::TransposeAttributes{{0, 2, 1, 3, 4, 5, 6, 7}};
       }},
      {"I6", "a ring that a node reads whole", [](B& s) { s.graph.nodes[B::kLast].inputs = {TensorId(B::kP)}; }},
      {"I6", "a graph output in a ring", [](B& s) { s.plan.tensors[B::kOut].ring_rows = 8; }},
      {"I6", "a graph input in a ring", [](B& s) { s.plan.tensors[B::kX].ring_rows = 8; }},
      {"I6", "a ring without steps",
       [](B& s) {
         s.graph.nodes[B::kLast].op = OpKind::kReshape;
         s.plan.tensors[B::kOut] = s.plan.tensors[B::kSum];
         s.plan.tensors[B::kOut].ring_rows = 8;
         s.plan.steps.pop_back();
         for (Buffer& buffer : s.plan.buffers) buffer.lifetime = {0, 12};
       }},
      {"I6", "squares of Winograd's that reach below the rows made",
       [](B& s) { s.graph.nodes[B::kPool].numeric = model::NumericClass::kWinograd4; }},
      {"I6", "two rings at the same bytes", [](B& s) { s.plan.tensors[B::kP].buffer = s.plan.tensors[B::kR].buffer; }},
  };
  return all;
}

/// Four nodes of rows, one row at a time: the rings of the first and the third take turns, and the output lies where the input dies.
struct TurnSample : HandMade {
  using HandMade::add_output;
  enum : std::size_t { kX, kA, kB, kC, kOut };

  TurnSample() : HandMade("turns") {
    const Shape rows{1, 8, 4, 16};
    add_tensors({rows, rows, rows, rows, rows});
    add_input("x", kX);
    add_output("out", kOut);
    for (std::size_t n = 0; n < 4; ++n) add_node(OpKind::kUnary, {n}, n + 1);
    for (std::int64_t row = 0; row < 8; ++row)
      for (std::size_t n = 0; n < 4; ++n) add_step(n, {row, row + 1}, {0, 16});
    plan.buffers.push_back({BufferKind::kInput, Bytes(9 * 256 + 64), 64, Bytes(), {0, 32}, false});
    plan.buffers.push_back({BufferKind::kActivation, Bytes(3 * 256 + 64), 64, Bytes(9 * 256 + 64), {0, 32}, false});
    plan.arena_bytes = plan.capacity = Bytes(12 * 256 + 128);
    plan.tensors = {{BufferId(0), Bytes(256), 256, 64, 0},
                    {BufferId(1), Bytes(), 256, 64, 1},
                    {BufferId(1), Bytes(256), 256, 64, 1},
                    {BufferId(1), Bytes(), 256, 64, 1},
                    {BufferId(0), Bytes(), 256, 64, 0}};
  }
};

const std::vector<BreakageOf<TurnSample>>& turn_breakages() {
  using T = TurnSample;
  static const std::vector<BreakageOf<T>> all = {
      {"I6", "a ring over another that the same step reads", [](T& s) { s.plan.tensors[T::kC].offset = Bytes(256); }},
      {"I6", "a ring over a part of another that the same step reads", [](T& s) { s.plan.tensors[T::kC].offset = Bytes(448); }},
      {"I6", "a ring with a slot more, which reaches into another", [](T& s) { s.plan.tensors[T::kA].ring_rows = 2; }},
      {"I6", "a row that is made before another on its bytes is read", [](T& s) { std::swap(s.plan.steps[3], s.plan.steps[4]); }},
      {"I6", "an output that grows over rows of the input before they are read",
       [](T& s) { std::swap(s.plan.tensors[T::kX].offset, s.plan.tensors[T::kOut].offset); }},
      {"I6", "an output over an input that is kept", [](T& s) { s.plan.buffers[0].whole_period = true; }},
      {"I6", "an output over an input that the caller wants, too", [](T& s) { s.add_output("x too", T::kX); }},
      {"I6", "an output over an input whose reader's rows are not connected",
       [](T& s) {
         s.graph.nodes[0].op = OpKind::kTranspose;
         s.graph.nodes[0].attributes = model::TransposeAttributes{{0, 2, 1, 3, 4, 5, 6, 7}};
       }},
  };
  return all;
}

/// The same, and the fourth row of steps has a workspace where the second node's ring lies, which nobody needs then.
struct BetweenSample : TurnSample {
  static constexpr std::size_t kWorkspace = 2, kStep = 3;

  BetweenSample() { add_workspace(Bytes(10 * 256 + 64), kStep); }
  void add_workspace(Bytes offset, std::size_t step) {
    const auto at = static_cast<std::int64_t>(step);
    plan.steps[step].workspace = BufferId(plan.buffers.size());
    plan.buffers.push_back({BufferKind::kWorkspace, Bytes(256), 64, offset, {at, at + 1}, false});
  }
};

const std::vector<BreakageOf<BetweenSample>>& between_breakages() {
  using B = BetweenSample;
  static const std::vector<BreakageOf<B>> all = {
      {"I2", "a workspace over the ring that its step reads", [](B& s) { s.plan.buffers[B::kWorkspace].offset = Bytes(9 * 256 + 64); }},
      {"I2", "a workspace that reaches into it", [](B& s) { s.plan.buffers[B::kWorkspace].offset = Bytes(9 * 256 + 128); }},
      {"I2", "one that lives while the ring holds a row",
       [](B& s) {
         s.plan.buffers[B::kWorkspace].lifetime = {2, 4};
       }},
      {"I2", "one that reaches into another buffer", [](B& s) { s.plan.buffers[B::kWorkspace].offset = Bytes(9 * 256); }},
      {"I2", "two on the same bytes at one time",
       [](B& s) {
         s.add_workspace(Bytes(10 * 256 + 64), 4);
         s.plan.buffers.back().lifetime = {3, 5};
       }},
      {"I2", "one over rows of an input that are still to be read", [](B& s) { s.plan.buffers[B::kWorkspace].offset = Bytes(4 * 256); }},
      {"I2", "one over an input that is kept",
       [](B& s) {
         s.plan.buffers[0].whole_period = true;
         s.plan.buffers[B::kWorkspace].offset = Bytes(4 * 256);
       }},
  };
  return all;
}

/// x -> a -> b, each in place of the one before, two rows at a time; a pool of one row reads a, too, before b takes its place.
struct PlaceSample : HandMade {
  enum : std::size_t { kX, kA, kP, kB };

  PlaceSample() : HandMade("one place") {
    const Shape rows{1, 8, 4, 16};
    add_tensors({rows, rows, rows, rows});
    add_input("x", kX);
    add_output("p", kP);
    add_output("b", kB);
    add_node(OpKind::kUnary, {kX}, kA);
    add_node(OpKind::kPool, {kA}, kP);
    set_window(1);
    add_node(OpKind::kUnary, {kA}, kB);
    for (std::int64_t row = 0; row < 8; row += 2)
      for (std::size_t n = 0; n < 3; ++n) add_step(n, {row, row + 2}, {0, 16});
    plan.buffers.push_back({BufferKind::kInput, Bytes(8 * 256 + 64), 64, Bytes(), {0, 12}, false});
    plan.buffers.push_back({BufferKind::kOutput, Bytes(8 * 256 + 64), 64, Bytes(8 * 256 + 64), {0, 12}, false});
    plan.arena_bytes = plan.capacity = Bytes(16 * 256 + 128);
    for (const std::size_t buffer : {0, 0, 1, 0}) plan.tensors.push_back({BufferId(buffer), Bytes(), 256, 64, 0});
  }
  void set_window(std::int64_t height) {
    model::PoolAttributes pool;
    pool.window = {8, 4, 8, 4, height, 3, 1, 1, 1, 1, height / 2, 1, height / 2, 1};
    graph.nodes[1].attributes = pool;
  }
};

const std::vector<BreakageOf<PlaceSample>>& place_breakages() {
  using P = PlaceSample;
  static const std::vector<BreakageOf<P>> all = {
      {"I6", "a row that is read when another has its place", [](P& s) { std::swap(s.plan.steps[4], s.plan.steps[5]); }},
      {"I6", "a window that reaches to rows that are gone",
       [](P& s) {
         s.set_window(3);
         for (std::size_t band = 3; band > 0; --band) std::swap(s.plan.steps[3 * band], s.plan.steps[3 * band - 1]);
       }},
      {"I6", "rows that are made when another has their place",
       [](P& s) {
         std::swap(s.plan.steps[0].rows, s.plan.steps[3].rows);
         std::swap(s.plan.steps[1].rows, s.plan.steps[4].rows);
       }},
      {"I6", "one row lower than what it replaces",
       [](P& s) {
         s.plan.buffers[0].size = Bytes(9 * 256 + 64);
         s.plan.buffers[1].offset = Bytes(9 * 256 + 64);
         s.plan.arena_bytes = s.plan.capacity = Bytes(17 * 256 + 128);
         s.plan.tensors[P::kB].offset = Bytes(256);
       }},
  };
  return all;
}

TEST_CASE("a plan by hand passes") {
  check_passes(Sample());
  check_passes(DerivedSample());
  check_passes(BandSample());
  check_passes(TurnSample());
  check_passes(BetweenSample());
  check_passes(PlaceSample());
}

TEST_CASE("every kind of broken plan is refused by its own rule") {
  check_refused(breakages());
  check_refused(derived_breakages());
  check_refused(band_breakages());
  check_refused(turn_breakages());
  check_refused(between_breakages());
  check_refused(place_breakages());
}

TEST_CASE("bands whose channels come in slices pass") {
  BandSample s;
  Step rest = s.step(BandSample::kRelu, 1);
  rest.channels = {8, 16};
  s.step(BandSample::kRelu, 1).channels = {0, 8};
  s.plan.steps.insert(s.plan.steps.begin() + 4, rest);
  for (Buffer& buffer : s.plan.buffers) buffer.lifetime.end += 1;
  s.plan.buffers.back().lifetime.begin += 1;
  check_passes(s);
}

TEST_CASE("a wrapped load whose region is free at the end of a period passes") {
  Sample s;
  s.plan.buffers[Sample::kBufFirst].lifetime = {-3, 2};
  s.plan.loads[1].gate = -3;
  s.plan.repeat = true;
  check_passes(s);
}

TEST_CASE("random damage never crashes the verifier") {
  // Each number of a plan is replaced by numbers that like to overflow. What comes out does not matter here; that it comes out does.
  const std::int64_t numbers[] = {0, 1, -1, 2, 63, 4096, INT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX - 4095};
  const Sample intact;
  std::size_t refused = 0;
  std::size_t tried = 0;
  const auto attempt = [&](const std::function<void(Plan&, std::int64_t)>& damage) {
    for (const std::int64_t number : numbers) {
      Plan plan = intact.plan;
      damage(plan, number);
      ++tried;
      refused += verify(plan, intact.graph, intact.context).has_value() ? 0 : 1;
    }
  };
  const auto as_bytes = [](std::int64_t n) { return Bytes(static_cast<std::uint64_t>(n)); };
  for (std::size_t b = 0; b < intact.plan.buffers.size(); ++b) {
    attempt([&](Plan& p, std::int64_t n) { p.buffers[b].offset = as_bytes(n); });
    attempt([&](Plan& p, std::int64_t n) { p.buffers[b].size = as_bytes(n); });
    attempt([&](Plan& p, std::int64_t n) { p.buffers[b].alignment = static_cast<std::uint64_t>(n); });
    attempt([&](Plan& p, std::int64_t n) { p.buffers[b].lifetime.begin = n; });
    attempt([&](Plan& p, std::int64_t n) { p.buffers[b].lifetime.end = n; });
  }
  for (std::size_t t = 0; t < intact.plan.tensors.size(); ++t) {
    attempt([&](Plan& p, std::int64_t n) { p.tensors[t].offset = as_bytes(n); });
    attempt([&](Plan& p, std::int64_t n) { p.tensors[t].row_pitch = n; });
    attempt([&](Plan& p, std::int64_t n) { p.tensors[t].pixel_pitch = n; });
    attempt([&](Plan& p, std::int64_t n) { p.tensors[t].ring_rows = n; });
  }
  for (std::size_t i = 0; i < intact.plan.steps.size(); ++i) {
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].rows.begin = n; });
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].rows.end = n; });
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].channels.begin = n; });
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].channels.end = n; });
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].loads_needed = static_cast<std::uint32_t>(n); });
    attempt([&](Plan& p, std::int64_t n) { p.steps[i].first_operand = static_cast<std::uint32_t>(n); });
  }
  for (std::size_t k = 0; k < intact.plan.loads.size(); ++k) {
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].file.offset = as_bytes(n); });
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].file.size = as_bytes(n); });
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].gate = n; });
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].uses.begin = n; });
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].uses.end = n; });
    attempt([&](Plan& p, std::int64_t n) { p.loads[k].first_stretch = static_cast<std::uint32_t>(n); });
  }
  for (std::size_t o = 0; o < intact.plan.operands.size(); ++o) {
    attempt([&](Plan& p, std::int64_t n) { p.operands[o].panels.begin = n; });
    attempt([&](Plan& p, std::int64_t n) { p.operands[o].panels.end = n; });
  }
  CHECK(refused > tried / 2);
}

}  // namespace
}  // namespace sluice::plan
