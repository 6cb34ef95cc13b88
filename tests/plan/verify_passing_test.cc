// Tensors that pass: which blocks the verifier takes, and by which rule it refuses the others.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "sluice/plan/needs.h"
#include "tests/plan/verify_fixture.h"

namespace sluice::plan {
namespace {

/// relu, a pool of three rows, relu: the first result is spilled, the last one handed over. All in two bands or two slices of channels.
struct PassingSample : HandMade {
  enum Tensors : std::size_t { kX, kR, kP, kOut };
  enum Nodes : std::size_t { kRelu, kPool, kLast };
  enum Buffers : std::size_t { kBufX, kBufP, kFirstWorkspace };

  PassingSample() : HandMade("passing") {
    const Shape shape{1, 8, 4, 16};
    add_tensors({shape, shape, shape, shape});
    add_input("x", kX);
    add_output("out", kOut);
    add_node(model::OpKind::kUnary, {kX}, kR);
    model::PoolAttributes pool;
    pool.window = {8, 4, 8, 4, 3, 1, 1, 1, 1, 1, 1, 0, 1, 0};
    add_node(model::OpKind::kPool, {kR}, kP, pool);
    add_node(model::OpKind::kUnary, {kP}, kOut);
    plan.buffers = {{BufferKind::kInput, Bytes(2112), 64, Bytes(0), {0, 3}, false},
                    {BufferKind::kActivation, Bytes(2112), 64, Bytes(2112), {3, 8}, false}};
    plan.tensors = {{BufferId(kBufX), Bytes(), 256, 64, 0}, {}, {BufferId(kBufP), Bytes(), 256, 64, 0}, {}};
    plan.passing = {{TensorId(kR), true, Bytes(4096)}, {TensorId(kOut), false, Bytes()}};
    add(kRelu, {0, 4}, {0, 8}, {0, TensorId(kR), {0, 4}, {0, 16}, Bytes(64), Passage::kMade});
    add(kRelu, {0, 4}, {8, 16}, {0, TensorId(kR), {0, 4}, {0, 16}, Bytes(64), Passage::kStored});
    add(kRelu, {4, 8}, {0, 16}, {0, TensorId(kR), {4, 8}, {0, 16}, Bytes(64), Passage::kStored});
    add(kPool, {0, 4}, {0, 8}, {0, TensorId(kR), {0, 5}, {0, 16}, Bytes(64), Passage::kFetched});
    add(kPool, {0, 4}, {8, 16}, {0, TensorId(kR), {0, 5}, {0, 16}, Bytes(64), Passage::kStillThere});
    add(kPool, {4, 8}, {0, 16}, {0, TensorId(kR), {3, 8}, {0, 16}, Bytes(0), Passage::kFetched});
    add(kLast, {0, 8}, {0, 8}, {0, TensorId(kOut), {0, 8}, {0, 8}, Bytes(128), Passage::kHandedOver});
    add(kLast, {0, 8}, {8, 16}, {0, TensorId(kOut), {0, 8}, {8, 16}, Bytes(0), Passage::kHandedOver});
    plan.capacity = plan.arena_bytes = Bytes(4224 + 2048);
  }

 private:
  void add(std::size_t node, RowRange rows, ChannelRange channels, PassingBlock block) {
    const std::size_t i = plan.steps.size();
    block.step = static_cast<std::uint32_t>(i);
    add_step(node, rows, channels).workspace = BufferId(plan.buffers.size());
    const auto at = static_cast<std::int64_t>(i);
    plan.buffers.push_back({BufferKind::kWorkspace, Bytes(2048), 64, Bytes(4224), {at, at + 1}, false});
    plan.blocks.push_back(block);
  }
};

/// The same, whose result has another shape where the caller sees it.
struct ShownSample : PassingSample {
  using HandMade::add_output;
  static constexpr std::size_t kShown = kOut + 1;
  static constexpr std::size_t kReshape = kLast + 1;

  ShownSample() {
    add_tensors({{2, 4, 4, 16}});
    graph.outputs.clear();
    add_output("shown", kShown);
    add_node(model::OpKind::kReshape, {kOut}, kShown);
    plan.tensors.push_back({});
    plan.passing.push_back({TensorId(kShown), false, Bytes()});
  }
};

using Breakage = BreakageOf<PassingSample>;

const std::vector<Breakage>& breakages() {
  using S = PassingSample;
  static const std::vector<Breakage> all = {
      {"I0: blocks are not in the order of steps", "two blocks change places", [](S& s) { std::swap(s.plan.blocks[3], s.plan.blocks[5]); }},
      {"I0: its step or its tensor", "no such step", [](S& s) { s.plan.blocks[7].step = 8; }},
      {"I0: a tensor that passes does not exist", "no such tensor", [](S& s) { s.plan.passing[0].tensor = TensorId(9); }},
      {"I6: it passes twice", "listed twice", [](S& s) { s.plan.passing.push_back(s.plan.passing[0]); }},
      {"I6: it passes, and has a buffer", "a buffer as well", [](S& s) { s.plan.tensors[S::kR] = s.plan.tensors[S::kP]; }},
      {"I6: what passes is made by a node", "an input",
       [](S& s) { s.plan.passing[0].tensor = TensorId(S::kX), s.plan.tensors[S::kX] = {}; }},
      {"I6: outputs are handed over, and nothing else", "an output is spilled", [](S& s) { s.plan.passing[1].spilled = true; }},
      {"I6: it is handed over, but a node reads it", "what is read is handed over", [](S& s) { s.plan.passing[0].spilled = false; }},
      {"I3: it ends beyond any scratch file", "an offset that overflows",
       [](S& s) { s.plan.passing[0].file_offset = Bytes(~0ull - 4096); }},
      {"I6: its tensor does not pass", "a block of another tensor", [](S& s) { s.plan.blocks[6].tensor = TensorId(S::kP); }},
      {"I6: it lies outside its tensor", "too many rows", [](S& s) { s.plan.blocks[3].rows.end = 9; }},
      {"I6: its step has no workspace", "no workspace", [](S& s) { s.plan.steps[3].workspace = BufferId::invalid(); }},
      {"I4: its offset is less aligned", "an odd offset", [](S& s) { s.plan.blocks[3].offset = Bytes(32); }},
      {"I3: it ends, with the tail", "beyond the workspace", [](S& s) { s.plan.blocks[5].offset = Bytes(2048 - 1280); }},
      {"I6: it is not what its step makes", "other rows than the step's", [](S& s) { s.plan.blocks[2].rows.begin = 5; }},
      {"I6: an output's block is handed over", "an output that is stored", [](S& s) { s.plan.blocks[7].passage = Passage::kStored; }},
      {"I6: an output's block is handed over", "channels of another step", [](S& s) { s.plan.blocks[7].channels.begin = 9; }},
      {"I6: what is spilled is stored in whole rows", "some channels", [](S& s) { s.plan.blocks[2].channels.end = 8; }},
      {"I6: nobody stores it", "the last channels are not stored", [](S& s) { s.plan.blocks[1].passage = Passage::kMade; }},
      {"I6: nobody stores it", "stored from elsewhere", [](S& s) { s.plan.blocks[1].offset = Bytes(128); }},
      {"I6: it stores channels that nobody has made", "the first channels are forgotten",
       [](S& s) { s.plan.blocks[0].passage = Passage::kStored; }},
      {"I6: its step reads rows that it does not hold", "a row too few", [](S& s) { s.plan.blocks[3].rows.end = 4; }},
      {"I6: it is not what its step reads", "what the node makes is fetched", [](S& s) { s.plan.blocks[2].passage = Passage::kFetched; }},
      {"I6: the step before does not leave it there", "at another place", [](S& s) { s.plan.blocks[4].offset = Bytes(128); }},
      {"I6: the step before does not leave it there", "other rows were there",
       [](S& s) { s.plan.blocks[5].passage = Passage::kStillThere; }},
      {"I6: nobody fetches what it reads", "no block", [](S& s) { s.plan.blocks.erase(s.plan.blocks.begin() + 5); }},
      {"I6: what it makes lies nowhere", "no block", [](S& s) { s.plan.blocks.erase(s.plan.blocks.begin() + 2); }},
      {"I6: it reads a tensor that is not whole yet", "fetched before it is stored",
       [](S& s) {
         std::swap(s.plan.steps[2], s.plan.steps[3]);
         std::swap(s.plan.steps[2].workspace, s.plan.steps[3].workspace);
         std::swap(s.plan.blocks[2], s.plan.blocks[3]);
         std::swap(s.plan.blocks[2].step, s.plan.blocks[3].step);
         s.plan.blocks[4].passage = Passage::kFetched;
         s.plan.buffers[S::kBufX].lifetime.end = 4;
         s.plan.buffers[S::kBufP].lifetime.begin = 2;
       }},
  };
  return all;
}

const std::vector<BreakageOf<ShownSample>>& shown_breakages() {
  using S = ShownSample;
  static const std::vector<BreakageOf<S>> all = {
      {"I6: it has no step, and its output lies nowhere", "what is shown does not pass", [](S& s) { s.plan.passing.pop_back(); }},
      {"I6: it has no step, and an input lies in no buffer", "what is shown lies elsewhere",
       [](S& s) {
         s.plan.passing.pop_back();
         s.plan.tensors[S::kShown] = s.plan.tensors[S::kP];
       }},
      {"I6: a reshape shows what nobody hands over", "what is made does not pass",
       [](S& s) {
         s.plan.passing.erase(s.plan.passing.begin() + 1);
         s.plan.tensors[S::kOut] = s.plan.tensors[S::kP];
       }},
      {"I6: a reshape shows what nobody hands over", "what is shown is spilled",
       [](S& s) {
         s.graph.outputs.clear();
         s.plan.passing[2] = {TensorId(S::kShown), true, Bytes(8192)};
       }},
      {"I6: a reshape shows other rows", "rows of another length",
       [](S& s) {
         s.graph.tensors[S::kShown].shape = {1, 4, 8, 16};
         s.graph.outputs[0].onnx_shape = {1, 4, 8, 16};
       }},
      {"I6: outputs are handed over, and nothing else", "shown and wanted", [](S& s) { s.add_output("made", S::kOut); }},
      {"I6: outputs are handed over, and nothing else", "wanted twice", [](S& s) { s.graph.outputs.push_back(s.graph.outputs[0]); }},
      {"I6: it is not what its step reads", "a step that copies it",
       [](S& s) {
         Step step = s.plan.steps.back();
         step.node = NodeId(S::kReshape);
         step.channels = {0, 16};
         step.workspace = BufferId(s.plan.buffers.size());
         s.plan.steps.push_back(step);
         s.plan.buffers.push_back({BufferKind::kWorkspace, Bytes(8192), 64, Bytes(4224), {8, 9}, false});
         s.plan.capacity = s.plan.arena_bytes = Bytes(4224 + 8192);
         s.plan.blocks.push_back({8, TensorId(S::kOut), {0, 8}, {0, 16}, Bytes(0), Passage::kFetched});
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("a plan in which tensors pass is a plan, and needs what others do not") {
  PassingSample sample;
  check_passes(sample);
  CHECK(needs_of(sample.plan) == bit_of(Need::kPassing));
  sample.plan.passing.clear();
  sample.plan.blocks.clear();
  CHECK(needs_of(sample.plan) == 0);
  sample.plan.steps.front().prepare = true;
  CHECK(needs_of(sample.plan) == bit_of(Need::kDerived));
}

TEST_CASE("two spilled tensors do not share bytes of the scratch file") {
  PassingSample sample;
  std::swap(sample.plan.passing[0], sample.plan.passing[1]);
  check_passes(sample);
  // The pool's result too, from its own place on; then on top of the first.
  sample.plan.tensors[PassingSample::kP] = {};
  sample.plan.passing.push_back({TensorId(PassingSample::kP), true, Bytes(4096 + 2047)});
  const Status status = verify(sample.plan, sample.graph, sample.context);
  REQUIRE_FALSE(status.has_value());
  CHECK(std::string(status.error().reason).starts_with("I2: it overlaps another in the scratch file"));
}

TEST_CASE("each way to break what passes is refused by its own rule") { check_refused(breakages()); }

TEST_CASE("an output may pass as the tensor that a reshape shows") {
  check_passes(ShownSample());
  check_refused(shown_breakages());
}

}  // namespace sluice::plan
