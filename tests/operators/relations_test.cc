// Probes what the operators declare: one element of an input or weight is poisoned, and of the generic kernel's output only elements that
// the relations name may change. Planner and verifier believe the relations both, so this is where a wrong one is found.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "sluice/operators/relation.h"
#include "sluice/operators/validate.h"
#include "tests/operators/problems.h"

namespace sluice::operators::test {
namespace {

using Position = std::array<std::int64_t, Shape::kMaxRank>;

Position position_of(const Shape& shape, std::int64_t index) {
  Position at{};
  for (int axis = shape.rank(); axis-- > 0; index /= shape[axis]) at[static_cast<std::size_t>(axis)] = index % shape[axis];
  return at;
}

/// Winograd's transforms spread every value over a square of outputs.
Interval<std::int64_t> widened(const Problem& p, const AxisRelation& r, std::int64_t o) {
  if (p.node().numeric != model::NumericClass::kWinograd4 || r.kind != AxisKind::kWindow) return {o, o + 1};
  const std::int64_t first = o / 4 * 4;
  return {first, std::min(first + 4, p.output().shape[r.output_axis])};
}

/// Does output element `out` read the element `at` of what has these axes?
bool reads(const Problem& p, const AxisRelations& axes, const Shape& extents, const Position& at, const Position& out) {
  for (int axis = 0; axis < axes.rank(); ++axis) {
    const AxisRelation& r = axes[axis];
    const std::int64_t o = r.output_axis == kNoAxis ? 0 : out[static_cast<std::size_t>(r.output_axis)];
    if (!positions_read(r, widened(p, r, o), extents[axis]).contains(at[static_cast<std::size_t>(axis)])) return false;
  }
  return true;
}

/// Output elements that may change, by their index: those that read the element, and of a recurrent node what follows from them.
std::vector<bool> may_change(const Problem& p, const AxisRelations& axes, const Shape& extents, const Position& at) {
  const Shape& out = p.output().shape;
  std::vector<bool> may(static_cast<std::size_t>(out.element_count()));
  for (std::size_t i = 0; i < may.size(); ++i) may[i] = reads(p, axes, extents, at, position_of(out, static_cast<std::int64_t>(i)));
  const Recurrence recurrence = Relations(p.graph, p.node()).recurrence();
  if (!recurrence.there()) return may;
  std::vector<bool> all = may;
  for (std::size_t i = 0; i < may.size(); ++i) {
    for (std::size_t j = 0; may[i] && j < may.size(); ++j) {
      const Position from = position_of(out, static_cast<std::int64_t>(i)), to = position_of(out, static_cast<std::int64_t>(j));
      const std::int64_t later = (to[0] - from[0]) * (recurrence.falling ? -1 : 1);
      if (from[1] == to[1] && later >= 0) all[j] = true;
    }
  }
  return all;
}

/// Changes one element of `bytes`, runs the kernel, and puts it back. An index stays one of the table's rows.
template <class Seen>
void poison(const Problem& p, std::vector<std::byte>& bytes, std::int64_t element, DType dtype, const Seen& seen) {
  const std::size_t size = size_of(dtype), offset = static_cast<std::size_t>(element) * size;
  const std::vector<std::byte> before(bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                                      bytes.begin() + static_cast<std::ptrdiff_t>(offset + size));
  std::vector<std::vector<std::byte>> poisons;
  if (dtype == DType::kF32) {
    for (const float value : {1e4f, -1e4f, std::numeric_limits<float>::quiet_NaN()})
      poisons.push_back(kernels::test::bytes_of(std::vector{value}));
  } else {
    poisons.push_back(before);
    poisons.back()[0] ^= std::byte{1};
  }
  for (const std::vector<std::byte>& value : poisons) {
    std::copy(value.begin(), value.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    seen(kernels::test::run_reference(p));
    std::copy(before.begin(), before.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  }
}

/// What poisoning some elements showed.
struct Probed {
  int strayed = 0;  // probes that changed an element that the relations do not name
  int changed = 0;  // probes that changed any
  std::string first;
};

/// `bytes` hold, of an operand with `axes`, the element at `index(position)`; extents are those of the axes.
template <class Index>
Probed probe(const Problem& p, std::vector<std::byte>& bytes, DType dtype, const AxisRelations& axes, const Shape& extents,
             const Index& index) {
  constexpr std::int64_t kMost = 24;  // elements of one operand
  const std::vector<std::byte> want = kernels::test::run_reference(p);
  const std::size_t size = size_of(p.output().dtype);
  const std::int64_t count = extents.element_count(), step = std::max<std::int64_t>(1, count / kMost);
  Probed probed;
  for (std::int64_t i = 0; i < count; i += step) {
    const Position at = position_of(extents, i);
    const std::vector<bool> may = may_change(p, axes, extents, at);
    poison(p, bytes, index(at), dtype, [&](const std::vector<std::byte>& got) {
      bool changed = false, strayed = false;
      for (std::size_t o = 0; o < may.size(); ++o) {
        if (std::memcmp(got.data() + o * size, want.data() + o * size, size) == 0) continue;
        changed = true;
        strayed = strayed || !may[o];
        if (!may[o] && probed.first.empty()) probed.first = "element " + std::to_string(i) + " changes output " + std::to_string(o);
      }
      probed.changed += changed ? 1 : 0;
      probed.strayed += strayed ? 1 : 0;
    });
  }
  return probed;
}

Probed probe_input(Problem& p, std::size_t input, const AxisRelations& axes) {
  const Shape shape = p.shape(input);
  return probe(p, p.inputs[input], p.graph.tensor(p.node().inputs[input]).dtype, axes, shape, [&](const Position& at) {
    std::int64_t index = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) index = index * shape[axis] + at[static_cast<std::size_t>(axis)];
    return index;
  });
}

/// Lanes, taps and depth of panels; or the values of a plain weight.
Probed probe_weight(Problem& p, std::size_t weight, const AxisRelations& axes) {
  const model::Weight& w = p.graph.weights[weight];
  if (w.panel_layout.layout == model::WeightLayout::kPlain) {
    const bool bias = p.node().epilogue.has_bias && weight == 1;  // padded to whole panels
    const Shape extents{bias ? p.output().shape.back() : w.shape[0]};
    return probe(p, p.weights[weight], DType::kF32, axes, extents, [](const Position& at) { return at[0]; });
  }
  const Shape extents = w.shape;  // [outputs, taps, depth], as the harness states it
  const std::int64_t each = model::outputs_per_group(p.node()), outputs = extents[0];
  return probe(p, p.weights[weight], DType::kF32, axes, extents, [&](const Position& at) {
    for (std::int64_t panel = 0;; ++panel) {
      const ChannelRange lanes = model::channels_of_panels({panel, panel + 1}, each, outputs);
      if (lanes.contains(at[0])) return ((panel * extents[1] + at[1]) * extents[2] + at[2]) * model::kPanelLanes + at[0] - lanes.begin;
    }
  });
}

std::string text_of(const Problem& p) { return kernels::test::describe(p, kernels::reference_kernel(p.node().op, p.node().numeric), {}); }

}  // namespace

namespace {

void check_inputs(Problem p) {
  const OpKind kind = p.node().op;
  INFO(text_of(p));
  const Status valid = validate_node(p.graph, p.node());
  INFO((valid ? "" : valid.error().to_string()));
  REQUIRE(valid);
  const Relations relations(p.graph, p.node());
  // A window may step over every position, and a crop leave them out; what is rounded may stay the same. All others reach something.
  const bool may_miss = kind == OpKind::kConv || kind == OpKind::kPool || kind == OpKind::kSlice || kind == OpKind::kPad ||
                        kind == OpKind::kResize || kind == OpKind::kConvTranspose || kind == OpKind::kReshape ||
                        (p.node().numeric == model::NumericClass::kInt8 && kind != OpKind::kUnary);
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const AxisRelations axes = relations.input(i);
    REQUIRE(axes.rank() == p.shape(i).rank());
    const Probed probed = probe_input(p, i, axes);
    INFO("input " << i << ": " << probed.first);
    CHECK(probed.strayed == 0);
    if (!may_miss && i == 0) CHECK(probed.changed > 0);
  }
}

}  // namespace

TEST_CASE("every element of an input reaches only the outputs that its operator declares") {
  for (const OpKind kind : declared_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 1);
    for (int round = 0; round < 24; ++round) check_inputs(problems.of(kind));
  }
  for (const OpKind kind : integer_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 500);
    for (int round = 0; round < 24; ++round) check_inputs(problems.of_integers(kind));
  }
}

TEST_CASE("every element of a weight reaches only the outputs that its operator declares") {
  for (const OpKind kind : declared_kinds()) {
    RandomProblems problems(static_cast<unsigned>(kind) + 100);
    for (int round = 0; round < 16; ++round) {
      Problem p = problems.of(kind);
      const Relations relations(p.graph, p.node());
      for (std::size_t i = 0; i < p.weights.size(); ++i) {
        const Probed probed = probe_weight(p, i, relations.weight(i));
        INFO(text_of(p) << ", weight " << i << ": " << probed.first);
        CHECK(probed.strayed == 0);
      }
    }
  }
}

TEST_CASE("a declaration that leaves out what is read fails the probe") {
  const auto strays = [](Problem p, std::size_t input, int axis, const std::function<void(AxisRelation&)>& lie) {
    AxisRelations axes = Relations(p.graph, p.node()).input(input);
    CHECK(probe_input(p, input, axes).strayed == 0);
    lie(axes[axis]);
    return probe_input(p, input, axes).strayed > 0;
  };
  const model::Window w = kernels::test::with_output({.in_h = 7, .in_w = 7, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1});
  const Problem conv = kernels::test::conv_problem({w, 1, 2, 4});
  CHECK(strays(conv, 0, 1, [](AxisRelation& r) { r.kernel = 2; }));
  CHECK(strays(conv, 0, 1, [](AxisRelation& r) { r.pad_before = 0; }));
  CHECK(strays(conv, 0, 2, [](AxisRelation& r) { r.stride = 2; }));
  CHECK(strays(conv, 0, 2, [](AxisRelation& r) { r = same(2); }));
  CHECK(strays(conv, 0, 3, [](AxisRelation& r) { r = blocks(3, 2, 1); }));
  const Problem dense = kernels::test::dense_problem({3, 4}, 4);
  CHECK(strays(dense, 0, 1, [](AxisRelation& r) { r = same(1); }));
  const Shape square{4, 4};
  const Problem softmax = kernels::test::plain_problem(OpKind::kSoftmax, model::SoftmaxAttributes{}, {square}, square);
  CHECK(strays(softmax, 0, 1, [](AxisRelation& r) { r = same(1); }));
  const Problem turned =
      kernels::test::plain_problem(OpKind::kTranspose, model::TransposeAttributes{{1, 0, 2, 3, 4, 5, 6, 7}}, {square}, square);
  CHECK(strays(turned, 0, 0, [](AxisRelation& r) { r = same(0); }));
  const Problem causal = kernels::test::attention_problem({.queries = 4, .keys = 5, .heads = 2, .depth = 2, .width = 3, .causal = true});
  CHECK(strays(causal, 1, 1, [](AxisRelation& r) { --r.kernel; }));
  CHECK(strays(causal, 0, 2, [](AxisRelation& r) { r.output_block = 2; }));

  Problem weighted = kernels::test::dense_problem({3, 4}, 8);
  AxisRelations lanes = Relations(weighted.graph, weighted.node()).weight(0);
  CHECK(probe_weight(weighted, 0, lanes).strayed == 0);
  lanes[kLanes] = blocks(1, 2, 1);
  CHECK(probe_weight(weighted, 0, lanes).strayed > 0);
}

TEST_CASE("a range of positions is what its positions read, one by one") {
  std::mt19937 random(3);
  const auto upto = [&](int most) { return static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 400; ++round) {
    const std::int64_t extent = upto(12);
    const AxisRelation window{.kind = AxisKind::kWindow,
                              .output_axis = 0,
                              .kernel = upto(4),
                              .stride = (round % 2 == 0 ? 1 : -1) * upto(3),
                              .dilation = upto(3),
                              .pad_before = upto(9) - 5,
                              .divisor = upto(3)};
    const std::int64_t begin = upto(6) - 1, end = begin + upto(4);
    const auto range = positions_read(window, {begin, end}, extent);
    CHECK(range.begin >= 0);
    CHECK(range.end <= extent);
    for (std::int64_t o = begin; o < end; ++o) {
      for (std::int64_t tap = 0; tap < window.kernel; ++tap) {
        const std::int64_t at = o * window.stride - window.pad_before + tap * window.dilation;
        if (at % window.divisor == 0 && at >= 0 && at / window.divisor < extent) CHECK(range.contains(at / window.divisor));
      }
      CHECK(range.hull(positions_read(window, {o, o + 1}, extent)) == range);
    }
  }
  CHECK(positions_read(same(0), {2, 5}, 9) == Interval<std::int64_t>{2, 5});
  CHECK(positions_read(blocks(0, 3, 2), {2, 4}, 9) == Interval<std::int64_t>{0, 4});
  CHECK(positions_read(broadcast(0), {2, 4}, 1) == Interval<std::int64_t>{0, 1});
  CHECK(positions_read(reduced(), {2, 4}, 9) == Interval<std::int64_t>{0, 9});
  CHECK(positions_read(any(), {2, 4}, 9) == Interval<std::int64_t>{0, 9});
}

TEST_CASE("along a reduction, a sum is one chain of rising k, so that a range continues the one before") {
  int there = 0;
  for (const OpKind kind : {OpKind::kDense, OpKind::kConv, OpKind::kMatMul}) {
    RandomProblems problems(static_cast<unsigned>(kind) + 200);
    for (int round = 0; round < 40; ++round) {
      Problem p = problems.of(kind);
      const Reduction k = Relations(p.graph, p.node()).reduction();
      if (!k.there()) continue;
      p.node().epilogue = {};
      p.node().inputs.resize(kind == OpKind::kMatMul ? 2 : 1);
      p.inputs.resize(p.node().inputs.size());
      p.node().weights.resize(std::min<std::size_t>(p.weights.size(), 1));
      p.weights.resize(p.node().weights.size());
      const Shape &in = p.shape(0), &out = p.output().shape;
      REQUIRE(in[k.input_axis] == k.extent);
      if (kind == OpKind::kMatMul) REQUIRE(p.shape(1)[k.second_axis] == k.extent);
      if (kind == OpKind::kMatMul && out.element_count() != out[out.rank() - 2] * out.back()) continue;  // one matrix is enough
      if (kind == OpKind::kConv && !(in[1] == out[1] && in[2] == out[2])) continue;
      const auto x = kernels::test::values_of<float>(p.inputs[0]);
      const auto y = kernels::test::values_of<float>(kernels::test::run_reference(p));
      const auto b = kind == OpKind::kMatMul ? kernels::test::values_of<float>(p.inputs[1]) : p.unpacked;
      const std::int64_t columns = out.back(), split = k.extent / 2;
      bool chains = true;
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / columns, n = static_cast<std::int64_t>(i) % columns;
        float sum = 0.0f;
        for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{0, split}, {split, k.extent}})
          for (std::int64_t j = first; j < last; ++j)
            sum = std::fma(x[static_cast<std::size_t>(row * k.extent + j)],
                           b[static_cast<std::size_t>(kind == OpKind::kMatMul ? j * columns + n : n * k.extent + j)], sum);
        chains = chains && std::memcmp(&sum, &y[i], sizeof sum) == 0;
      }
      INFO(text_of(p));
      CHECK(chains);
      ++there;
    }
  }
  CHECK(there > 40);
}

}  // namespace sluice::operators::test
