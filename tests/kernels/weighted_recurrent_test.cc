// Recurrent nodes: every instruction set, cut into time steps and slices, with any number of threads, in place or not, gives the bits of
// the reference.
#include <catch2/catch.hpp>

#include "sluice/kernels/reference.h"
#include "src/kernels/reference/kernels.h"
#include "src/kernels/reference/quantised.h"
#include "src/kernels/resolve.h"
#include "src/kernels/weighted/narrow.h"
#include "src/kernels/weighted/recurrent.h"
#include "tests/kernels/weighted_harness.h"
#include "tests/kernels/weighted_sweep.h"

namespace sluice::kernels::test {
namespace {

using model::Cell;

struct RecurrentCase {
  std::int64_t times = 1, batches = 1;
  model::RecurrentAttributes attributes;
  bool bias = false;
  PanelStorage storage = PanelStorage::kF32;
};

std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& x : values) x = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-31f;
  return values;
}

/// The node as a graph, and its values.
class RecurrentNode {
 public:
  explicit RecurrentNode(const RecurrentCase& c) : case_(c), outputs_(c.attributes.gates() * c.attributes.hidden) {
    const auto& a = c.attributes;
    shape_ = {c.times, c.batches, outputs_};
    gates_ = random_values(shape_.element_count(), 1);
    const std::vector<float> matrix = random_values(outputs_ * a.hidden, 2);
    bias_ = random_values(outputs_ + 16, 3);
    peepholes_ = random_values(3 * a.hidden + 16, 4);
    states_ = random_values(2 * c.batches * a.hidden, 5);
    graph_.weights.resize(3);
    const PackSource source{.data = reinterpret_cast<const std::byte*>(matrix.data()),
                            .outputs = outputs_,
                            .depth = a.hidden,
                            .outputs_per_group = outputs_,
                            .output_stride = a.hidden,
                            .k_outer_stride = 1,
                            .storage = c.storage};
    describe_panels(source, std::array{outputs_, a.hidden}, graph_.weights[0]);
    packed_.resize(graph_.weights[0].bytes.count() / 4);
    pack_panels(source, {0, graph_.weights[0].panels}, std::as_writable_bytes(std::span(packed_)));
    make_node();
  }

  const Shape& shape() const { return shape_; }
  std::int64_t outputs() const { return outputs_; }

  /// Runs `step` over the turns, each cut into slices of so many panels (0: all turns in one step). Rows lie `gap` floats apart.
  template <class Step>
  std::vector<float> run(const Step& step, std::int64_t slice_panels, std::int64_t gap, bool in_place, ThreadPool* pool) const {
    Placed in(shape_, {.row_gap = gap}, 0, std::nanf("")), out(shape_, {.row_gap = gap}, 0, 12345.0f);
    const RowRange all{0, case_.times * case_.batches};
    in.put(gates_, all);
    const Placed& to = in_place ? in : out;
    const Shape state{case_.batches, case_.attributes.hidden};
    std::vector<Operand> inputs{in.operand()};
    for (int i = 0; i < (case_.attributes.first_hidden ? 1 : 0) + (case_.attributes.first_cell ? 1 : 0); ++i)
      inputs.push_back(
          {dense_view(reinterpret_cast<std::byte*>(const_cast<float*>(states_.data()) + i * state.element_count()), state, DType::kF32),
           state});
    const Operand output = to.operand();
    const auto go = [&](RowRange rows, ChannelRange channels) {
      const PanelRange panels = model::panels_of_channels(channels, outputs_);
      const auto* data =
          reinterpret_cast<const std::byte*>(packed_.data()) + model::panel_range(graph_.weights[0], {0, panels.begin}).size.count();
      std::vector<WeightOperand> weights{{data, panels, graph_.weights[0].panel_bytes}};
      if (case_.bias) weights.push_back({reinterpret_cast<const std::byte*>(bias_.data()), {0, 1}, graph_.weights[1].panel_bytes});
      if (case_.attributes.peepholes)
        weights.push_back({reinterpret_cast<const std::byte*>(peepholes_.data()), {0, 1}, graph_.weights[2].panel_bytes});
      const int threads = pool == nullptr ? 1 : pool->thread_count();
      const operators::Parameters parameters(recurrent_parameters(graph_, graph_.nodes[0]));
      const auto& recurrent = parameters.as<operators::RecurrentParameters>();
      const StepExtent extent{rows, channels, threads};
      const Bytes bytes =
          std::max(weighted::recurrent_workspace(recurrent, extent), reference::quantised_workspace(recurrent.weighted, extent));
      Buffer scratch(bytes.count() / 4, std::nanf(""));
      step({.parameter_data = parameters.data(),
            .inputs = inputs,
            .outputs = std::span(&output, 1),
            .weights = weights,
            .rows = rows,
            .channels = channels,
            .workspace = scratch.bytes(),
            .pool = pool});
    };
    if (slice_panels == 0) {
      go(all, {0, outputs_});
    } else {
      for (std::int64_t i = 0; i < case_.times; ++i) {
        const std::int64_t turn = case_.attributes.reverse ? case_.times - 1 - i : i;
        for (std::int64_t c = 0; c < outputs_; c += slice_panels * 16)
          go({turn * case_.batches, (turn + 1) * case_.batches}, {c, std::min(outputs_, c + slice_panels * 16)});
      }
    }
    std::vector<float> values(gates_.size());
    to.get(values, all, {0, outputs_});
    return values;
  }

 private:
  void make_node() {
    const auto& a = case_.attributes;
    graph_.tensors.resize(4);
    graph_.tensors[0].shape = graph_.tensors[1].shape = shape_;
    graph_.tensors[2].shape = graph_.tensors[3].shape = {case_.batches, a.hidden};
    model::Node node;
    node.op = model::OpKind::kRecurrent;
    node.attributes = a;
    node.epilogue.has_bias = case_.bias;
    node.inputs = {TensorId(0)};
    if (a.first_hidden) node.inputs.push_back(TensorId(2));
    if (a.first_cell) node.inputs.push_back(TensorId(3));
    node.outputs = {TensorId(1)};
    node.weights = {WeightId(0)};
    if (case_.bias) node.weights.push_back(WeightId(1));
    if (a.peepholes) node.weights.push_back(WeightId(2));
    graph_.nodes.push_back(node);
  }

  RecurrentCase case_;
  std::int64_t outputs_;
  Shape shape_;
  std::vector<float> gates_, packed_, bias_, peepholes_, states_;
  model::Graph graph_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) { return std::memcmp(a.data(), b.data(), a.size() * 4) == 0; }

const weighted::TileTable& tiles_of(PanelStorage storage, Isa isa) {
  using weighted::NarrowForm;
  switch (storage) {
    case PanelStorage::kBf16:
      return weighted::narrow_tile_table(isa, NarrowForm::kBf16);
    case PanelStorage::kF16:
      return weighted::narrow_tile_table(isa, NarrowForm::kF16);
    case PanelStorage::kInt8:
      return weighted::narrow_tile_table(isa, NarrowForm::kEightBits);
    case PanelStorage::kInt4:
      return weighted::narrow_tile_table(isa, NarrowForm::kFourBitsOfHalfScales);
    default:
      return weighted::tile_table(isa);
  }
}

void sweep_cuts(const RecurrentCase& c, const std::vector<std::int64_t>& slices = {0, 1, 3}) {
  const RecurrentNode node(c);
  const auto reference = [&](const KernelCall& call) {
    c.storage == PanelStorage::kF32 ? reference::recurrent(call) : reference::quantised_recurrent(call);
  };
  const std::vector<float> want = node.run(reference, 0, 0, false, nullptr);
  CHECK(same_bits(node.run(reference, 1, 3, true, nullptr), want));
  for (const Isa isa : instruction_sets())
    for (const std::int64_t slice : slices)
      for (const int threads : {1, 2, 3}) {
        const auto fast = [&](const KernelCall& call) {
          weighted::run_recurrent(call, {tiles_of(c.storage, isa), elementwise::run_table(isa)});
        };
        INFO(name_of(isa) << ", slices of " << slice << " panels, " << threads << " threads, " << name_of(c.attributes.cell) << ", hidden "
                          << c.attributes.hidden);
        CHECK(same_bits(node.run(fast, slice, slice == 1 ? 5 : 0, threads != 1, pool_of(threads)), want));
      }
}

const model::Activation kSigmoid{model::Function::kSigmoid, 0, 0}, kTanh{model::Function::kTanh, 0, 0};

TEST_CASE("recurrent nodes of every cell, cut at time steps and panels") {
  for (const std::int64_t hidden : {5, 16, 40, 72})
    for (const bool reverse : {false, true})
      for (const Cell cell : {Cell::kRnn, Cell::kGru, Cell::kLstm}) {
        RecurrentCase c{4, 3, {.cell = cell, .hidden = hidden, .reverse = reverse}, reverse};
        c.attributes.functions = {cell == Cell::kRnn ? kTanh : kSigmoid, kTanh, kTanh};
        sweep_cuts(c);
      }
}

TEST_CASE("recurrent nodes with first states, peepholes and the forms of their cells") {
  for (const bool reverse : {false, true}) {
    RecurrentCase c{3, 2, {.cell = Cell::kGru, .hidden = 24, .reverse = reverse, .linear_before_reset = true, .first_hidden = true}, true};
    c.attributes.functions = {kSigmoid, kTanh, {}};
    sweep_cuts(c);
    c.attributes.linear_before_reset = false;
    sweep_cuts(c);
    c.attributes = {.cell = Cell::kLstm, .hidden = 24, .reverse = reverse, .first_hidden = true, .first_cell = true, .peepholes = true};
    c.attributes.functions = {kSigmoid, {model::Function::kRelu, 0, 0}, kTanh};
    sweep_cuts(c);
    c.attributes.input_forget = true;
    c.attributes.first_hidden = false;
    sweep_cuts(c);
  }
}

TEST_CASE("recurrent nodes of 16, 8 and 4 bits") {
  for (const PanelStorage storage : {PanelStorage::kBf16, PanelStorage::kF16, PanelStorage::kInt8, PanelStorage::kInt4})
    for (const std::int64_t batches : {1, 3, 21}) {
      // The second has sums too long for panels to be widened whole.
      for (const std::int64_t hidden : {40, 530}) {
        if (hidden > 500 && batches == 3) continue;
        RecurrentCase c{3, batches, {.cell = Cell::kLstm, .hidden = hidden, .first_hidden = true, .peepholes = true}, true, storage};
        c.attributes.functions = {kSigmoid, kTanh, kTanh};
        sweep_cuts(c);
      }
      RecurrentCase c{4, batches, {.cell = Cell::kGru, .hidden = 72, .reverse = true}, false, storage};
      c.attributes.functions = {kSigmoid, kTanh, {}};
      sweep_cuts(c);
    }
}

TEST_CASE("both rounds of a GRU widen the panel that they share, and those behind it") {
  for (const PanelStorage storage : {PanelStorage::kBf16, PanelStorage::kInt8}) {
    // z and r end in the middle of the first panel of a slice, of which h then takes several at once.
    RecurrentCase c{2, 5, {.cell = Cell::kGru, .hidden = 452}, false, storage};
    c.attributes.functions = {kSigmoid, kTanh, {}};
    sweep_cuts(c, {8});
    c.attributes.hidden = 164;  // whole: the last unit of z and r is that panel alone
    sweep_cuts(c, {0});
  }
}

TEST_CASE("a recurrent node large enough for several threads") {
  RecurrentCase c{2, 1, {.cell = Cell::kLstm, .hidden = 200}, true};
  c.attributes.functions = {kSigmoid, kTanh, kTanh};
  sweep_cuts(c);
}

}  // namespace
}  // namespace sluice::kernels::test
