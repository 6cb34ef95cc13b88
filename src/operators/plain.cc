// The long tail: what holds of every plain operator. Types, shapes and arguments are checked by code that knows the operator: by its
// kernel, which the planner and the executor ask (operators/generic.h).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "sluice/operators/cost.h"
#include "src/operators/families.h"
#include "src/operators/node_check.h"
#include "src/operators/subgraphs.h"

namespace sluice::operators {
namespace {

Status validate_plain(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const auto* a = check.attributes<PlainAttributes>();
  if (a == nullptr) return check.invalid("G2: a plain operator has its attributes");
  if (!node.weights.empty()) return check.invalid("G4: a plain operator has no weights of its own", 0, node.weights.size());
  const auto present = static_cast<std::size_t>(std::popcount(a->present));
  if (present != node.inputs.size())
    return check.invalid("G2: a plain operator has not the inputs that it names", present, node.inputs.size());
  std::size_t at = 0;
  while (at < a->arguments.size()) {
    const std::int64_t count = a->arguments[at];
    if (count < 0 || static_cast<std::uint64_t>(count) >= a->arguments.size() - at)
      return check.invalid("G2: a plain operator's arguments are cut short");
    at += static_cast<std::size_t>(count) + 1;
  }
  return validate_subgraphs(graph, node);
}

AxisRelations relate_plain(const Graph& graph, const Node& node, std::size_t input) noexcept {
  return AxisRelations(shape_of_input(graph, node, input).rank());
}
AxisRelations relate_weight(const Graph&, const Node&, std::size_t) noexcept { return AxisRelations(kPanelAxes); }

/// What an operator of the long tail takes beyond passing its values (operators/generic.h has the numbers): flops, at the speed of layers, of each
/// output and of each value of its first input; and whether it reads no more of that one than it writes. As measured on an x86-64 CPU of 2024.
struct PlainWork {
  std::uint16_t op;
  double of_output = 0, of_input = 0;
  bool looks_up = false;
};
constexpr PlainWork kPlainWork[] = {
    {107, 180},           // ModC
    {150, 40},            // Cast
    {182, 70},            // CumSum: its additions wait for one another
    {183, 70},            // CumProd
    {200, 0, 90},         // TopK
    {250, 0, 0, true},    // Gather
    {251, 100, 0, true},  // GatherElements
    {252, 40, 0, true},   // GatherND
    {375, 0, 60},         // GlobalLpPool
    {431, 80},            // GridSample
    {433, 270},           // RoiAlign
    {540, 0, 100},        // NonZero
    {550, 0, 600},        // NonMaxSuppression, where few boxes overlap
};
const PlainWork* plain_work(std::uint16_t op) noexcept {
  const auto found = std::find_if(std::begin(kPlainWork), std::end(kPlainWork), [&](const PlainWork& work) { return work.op == op; });
  return found == std::end(kPlainWork) ? nullptr : found;
}

/// Of an output of those operators that say by their shapes how much they compute; of all others what the table has.
std::uint64_t plain_flops(const Graph& graph, const Node& node) noexcept {
  const auto shape = [&](std::size_t input) -> Shape {
    return input < node.inputs.size() ? graph.tensor(node.inputs[input]).shape : Shape{1};
  };
  const auto count = [](const Shape& s) { return static_cast<double>(std::max<std::int64_t>(s.element_count(), 1)); };
  const auto extent = [](const Shape& s, int axis) { return static_cast<double>(s.rank() > 0 ? std::max<std::int64_t>(s[axis], 1) : 1); };
  const auto products = [&](const Shape& weights) { return 2 * count(weights) / extent(weights, 0); };  // all inputs and taps of an output
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const std::uint16_t op = node.as<PlainAttributes>().op;
  double flops = 0;
  switch (op) {
    case 380:  // Conv
    case 381:  // ConvInteger
      flops = products(shape(1));
      break;
    case 382:  // QLinearConv
      flops = products(shape(3));
      break;
    case 383: {  // ConvTranspose, whose products are not made by vectors
      constexpr double kOneByOne = 10;
      flops = kOneByOne * products(shape(1)) * count(shape(0)) / count(out);
      break;
    }
    case 460:                       // DFT
    case 461: {                     // STFT: as many steps as the transform's extent has bits, which is the longest one of most
      constexpr double kStep = 30;  // products of complex numbers and sums, as scalars
      double longest = 2;
      for (int axis = 0; axis < out.rank(); ++axis) longest = std::max(longest, extent(out, axis));
      flops = kStep * std::log2(longest);
      break;
    }
    case 480:  // MatMulInteger
    case 481:  // QLinearMatMul
    case 482:  // MatMul
      flops = 2 * extent(shape(0), std::max(shape(0).rank() - 1, 0));
      break;
    default:
      if (const PlainWork* work = plain_work(op)) flops = work->of_output;
      break;
  }
  constexpr double kMost = 1e12;
  return static_cast<std::uint64_t>(std::min(flops, kMost));
}

CostFeatures plain_cost(const Graph& graph, const Node& node, const StepExtent& extent) noexcept {
  CostFeatures cost = usual_cost_of(graph, node, extent);
  const PlainWork* const work = plain_work(node.as<PlainAttributes>().op);
  if (work == nullptr || node.inputs.empty()) return cost;
  const model::Tensor& from = graph.tensor(node.inputs[0]);
  const std::int64_t rows = row_extents(graph.tensor(node.outputs[0]).shape).rows;
  const std::uint64_t bytes = share_of(from.bytes().count(), extent.rows.size(), rows);
  cost.flops += static_cast<std::uint64_t>(work->of_input * static_cast<double>(bytes) / static_cast<double>(size_of(from.dtype)));
  if (work->looks_up) cost.input_bytes -= bytes - std::min(bytes, cost.output_bytes);
  return cost;
}

}  // namespace

constexpr OperatorDefinition kPlain = {
    .kind = OpKind::kPlain,
    .attributes = kAlternative<PlainAttributes>,
    .inputs = 0,
    .validate = validate_plain,
    .infer = infer_nothing,
    .relate_input = relate_plain,
    .relate_weight = relate_weight,
    .flops_per_output = plain_flops,
    .cost = plain_cost,
};

}  // namespace sluice::operators
