// The long tail: what holds of every plain operator. Types, shapes and arguments are checked by code that knows the operator: by its
// kernel, which the planner and the executor ask (operators/generic.h).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

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

/// Of an output of those operators of the long tail that compute much and say by their shapes how much (operators/generic.h has the numbers), at the
/// speed of layers; 0 of all others.
std::uint64_t plain_flops(const Graph& graph, const Node& node) noexcept {
  const auto shape = [&](std::size_t input) -> Shape {
    return input < node.inputs.size() ? graph.tensor(node.inputs[input]).shape : Shape{1};
  };
  const auto count = [](const Shape& s) { return static_cast<double>(std::max<std::int64_t>(s.element_count(), 1)); };
  const auto extent = [](const Shape& s, int axis) { return static_cast<double>(s.rank() > 0 ? std::max<std::int64_t>(s[axis], 1) : 1); };
  const auto products = [&](const Shape& weights) { return 2 * count(weights) / extent(weights, 0); };  // all inputs and taps of an output
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  constexpr double kOneAfterTheOther = 40;  // in time a running sum's addition is so many of a layer
  double flops = 0;
  switch (node.as<PlainAttributes>().op) {
    case 380:  // Conv
    case 381:  // ConvInteger
      flops = products(shape(1));
      break;
    case 382:  // QLinearConv
      flops = products(shape(3));
      break;
    case 383:  // ConvTranspose
      flops = products(shape(1)) * count(shape(0)) / count(out);
      break;
    case 460:    // DFT
    case 461: {  // STFT: as many steps as the transform's extent has bits, which is the longest one of most
      double longest = 2;
      for (int axis = 0; axis < out.rank(); ++axis) longest = std::max(longest, extent(out, axis));
      flops = kOneAfterTheOther * std::log2(longest);
      break;
    }
    case 480:  // MatMulInteger
    case 481:  // QLinearMatMul
    case 482:  // MatMul
      flops = 2 * extent(shape(0), std::max(shape(0).rank() - 1, 0));
      break;
    case 182:  // CumSum
    case 183:  // CumProd
      flops = kOneAfterTheOther;
      break;
    default:
      break;
  }
  constexpr double kMost = 1e12;
  return static_cast<std::uint64_t>(std::min(flops, kMost));
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
};

}  // namespace sluice::operators
