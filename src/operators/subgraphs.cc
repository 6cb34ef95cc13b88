#include "src/operators/subgraphs.h"

#include <array>

#include "sluice/operators/generic/control.h"
#include "src/operators/node_check.h"

namespace sluice::operators {
namespace {

using namespace generic;
using namespace generic::control;

bool alike(const Tensor& a, const Tensor& b) noexcept {
  return a.dtype == b.dtype && a.shape == b.shape && a.bounded == 0 && b.bounded == 0;
}
bool one(const Tensor& t, DType dtype) noexcept { return t.dtype == dtype && t.shape.element_count() == 1 && t.bounded == 0; }

/// `tensor`, with an axis of `extent` places before its `axis`.
bool is_stacked(const Planned& result, const Tensor& tensor, int axis, std::int64_t extent) noexcept {
  return tensor.bounded == 0 && result.dtype == tensor.dtype && is_slice(tensor.shape, axis, result.shape) && result.shape[axis] == extent;
}

class SubgraphNodeCheck {
 public:
  SubgraphNodeCheck(const Graph& graph, const Node& node) : check_(graph, node), graph_(graph), node_(node) {
    for (const TensorId id : node.inputs)
      if (count_ < tensors_.size()) tensors_[count_++] = {graph.tensor(id).dtype, graph.tensor(id).shape, nullptr};
  }

  Status run(std::uint16_t op) {
    const auto* a = check_.attributes<PlainAttributes>();
    const std::uint32_t subgraphs = op == kRunIf ? 2 : 1;
    if (node_.subgraph_count != subgraphs)
      return check_.invalid("G2: it has not the subgraphs that it runs", subgraphs, node_.subgraph_count);
    const PlainOperator* line = find_plain(op);
    if (line == nullptr) return {};  // a trimmed build has no kernel for it, and says so
    const PlainNode node(*line, {a->result, a->present, a->arguments}, std::span(tensors_).first(count_));
    if (node.argument_count() != (op == kRunIf ? 1u : op == kRunLoop ? 2u : 4u)) return check_.invalid("G2: it has not its arguments");
    return op == kRunIf ? check_if(node) : op == kRunLoop ? check_loop(node) : check_scan(node);
  }

 private:
  const Subgraph& body(std::size_t i = 0) const noexcept { return graph_.subgraphs[node_.first_subgraph + i]; }
  static const Tensor& input(const Subgraph& s, std::size_t i) noexcept { return s.tensors[s.inputs[i].index()]; }
  static const Tensor& output(const Subgraph& s, std::size_t i) noexcept { return s.tensors[s.outputs[i].index()]; }
  Status unfit(const char* reason) const { return check_.invalid(reason); }

  Status check_if(const PlainNode& node) const {
    Results results;
    if (read_results(node, 0, results) != nullptr) return unfit("G2: its results are malformed");
    for (std::size_t b = 0; b < 2; ++b) {
      if (!body(b).inputs.empty() || body(b).outputs.size() != results.results())
        return unfit("G2: a branch has not the inputs and outputs of one");
      for (std::size_t i = 0; i < results.results(); ++i) {
        const Planned most = results.planned(i);
        const Tensor& given = output(body(b), i);
        bool fits = given.dtype == most.dtype && given.shape.rank() == most.shape.rank();
        for (int axis = 0; fits && axis < most.shape.rank(); ++axis) fits = given.shape[axis] <= most.shape[axis];
        if (!fits) return unfit("G2: a branch gives what its result cannot hold");
      }
    }
    return {};
  }

  Status check_loop(const PlainNode& node) const {
    Loop loop;
    if (read_loop(node, loop) != nullptr) return unfit("G2: what its loop is is malformed");
    const Subgraph& b = body();
    if (b.inputs.size() != 2 + loop.carried || b.outputs.size() != 1 + loop.results.results())
      return unfit("G2: its body has not the inputs and outputs of a loop's");
    if (!one(input(b, 0), DType::kI64) || !one(input(b, 1), DType::kBool) || !one(output(b, 0), DType::kBool))
      return unfit("G2: its body counts or decides in another type");
    for (std::size_t i = 0; i < loop.carried; ++i) {
      const Tensor& taken = input(b, 2 + i);
      const Planned result = loop.results.planned(i);
      if (!alike(taken, output(b, 1 + i)) || !alike(taken, check_.input(loop.own_inputs() + i)) || result.dtype != taken.dtype ||
          !(result.shape == taken.shape))
        return unfit("G2: a carried value is not the alike before, within and after its body");
    }
    for (std::size_t i = loop.carried; i < loop.results.results(); ++i)
      if (!is_stacked(loop.results.planned(i), output(b, 1 + i), 0, loop.most))
        return unfit("G2: a stacked result is not what its body gives, turn by turn");
    return {};
  }

  Status check_scan(const PlainNode& node) const {
    Scan scan;
    if (read_scan(node, scan) != nullptr) return unfit("G2: what its scan is is malformed");
    const Subgraph& b = body();
    if (b.inputs.size() != scan.states + scan.sequences() || b.outputs.size() != scan.results.results())
      return unfit("G2: its body has not the inputs and outputs of a scan's");
    for (std::size_t i = 0; i < scan.states; ++i) {
      const Planned result = scan.results.planned(i);
      if (!alike(input(b, i), output(b, i)) || !alike(input(b, i), check_.input(i)) || result.dtype != input(b, i).dtype ||
          !(result.shape == input(b, i).shape))
        return unfit("G2: a state is not the alike before, within and after its body");
    }
    for (std::size_t i = 0; i < scan.sequences(); ++i) {
      const Tensor &slice = input(b, scan.states + i), &sequence = check_.input(scan.states + i);
      const int axis = Scan::course(scan.inputs, i).axis;
      const auto others = static_cast<std::uint8_t>(~(scan.bounded ? 1u << axis : 0u));
      if (slice.dtype != sequence.dtype || slice.bounded != 0 || (sequence.bounded & others) != 0 ||
          !is_slice(slice.shape, axis, sequence.shape) || sequence.shape[axis] > scan.most ||
          (!scan.bounded && sequence.shape[axis] != scan.most))
        return unfit("G2: a slice is not one place of its sequence");
    }
    for (std::size_t i = scan.states; i < scan.results.results(); ++i)
      if (!is_stacked(scan.results.planned(i), output(b, i), scan.of_result(i).axis, scan.most))
        return unfit("G2: a stacked result is not what its body gives, place by place");
    return {};
  }

  const NodeCheck check_;
  const Graph& graph_;
  const Node& node_;
  std::array<PlainTensor, 32> tensors_;
  std::size_t count_ = 0;
};

}  // namespace

Status validate_subgraphs(const Graph& graph, const Node& node) {
  const NodeCheck check(graph, node);
  const std::uint16_t op = check.attributes<PlainAttributes>()->op;
  if (op == 560 || op == 562 || op == 570)
    return fail(ErrorCode::kUnsupported, node.name, "a loop or branch as builds before this one wrote it: convert the ONNX file again");
  if (op == kRunIf || op == kRunLoop || op == kRunScan) return SubgraphNodeCheck(graph, node).run(op);
  if (node.subgraph_count > 0) return check.invalid("G2: its operator runs no subgraphs");
  return {};
}

}  // namespace sluice::operators
