#include "sluice/operators/guards.h"

#include <map>
#include <tuple>

namespace sluice::operators {
namespace {

constexpr std::uint32_t kMaxDepth = 64;  // what is nested deeper runs with what is around it: a file cannot make this slow
constexpr std::uint32_t kNobody = ~std::uint32_t{0};

bool is_choose(const model::Node& node) noexcept {
  const auto* plain = std::get_if<model::PlainAttributes>(&node.attributes);
  return plain != nullptr && plain->op == kChoose && node.inputs.size() == 3;
}

/// Goes through the nodes from the last to the first, so that all readers of a tensor are known before its maker comes.
class Search {
 public:
  explicit Search(const model::Graph& graph) : graph_(graph), wanted_(graph.tensors.size(), kNobody), made_at_(graph.tensors.size(), 0) {}

  Guards run() {
    made_.guards.push_back({});
    made_.of_node.assign(graph_.nodes.size(), kAlways);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const TensorId out : graph_.nodes[n].outputs) made_at_[out.index()] = n + 1;
    for (const model::Port& port : graph_.outputs) want(port.tensor, kAlways);
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const std::uint32_t guard = guard_of(n);
      made_.of_node[n] = before(guard, n);
      const model::Node& node = graph_.nodes[n];
      const bool chooses = is_choose(node) && can_guard(node.inputs[0]);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        want(node.inputs[i], chooses && i > 0 ? inside(guard, node.inputs[0], i == 1) : guard);
    }
    return std::move(made_);
  }

 private:
  std::uint32_t guard_of(std::size_t n) const noexcept {
    std::uint32_t guard = kNobody;
    for (const TensorId out : graph_.nodes[n].outputs)
      if (const std::uint32_t wanted = wanted_[out.index()]; wanted != kNobody)
        guard = guard == kNobody ? wanted : made_.common(guard, wanted);
    return guard == kNobody ? kAlways : guard;
  }

  /// The guard, or the innermost around it of which all conditions are known before node `n`.
  std::uint32_t before(std::uint32_t guard, std::size_t n) const noexcept {
    std::uint32_t known = guard;
    for (std::uint32_t g = guard; g != kAlways; g = made_.guards[g].around)
      if (made_at_[made_.guards[g].condition.index()] > n) known = made_.guards[g].around;
    return known;
  }

  void want(TensorId tensor, std::uint32_t guard) noexcept {
    std::uint32_t& wanted = wanted_[tensor.index()];
    wanted = wanted == kNobody ? guard : made_.common(wanted, guard);
  }

  /// The condition must be one truth value that exists from the node that makes it (or the beginning of the run) to the Choose.
  bool can_guard(TensorId id) const noexcept {
    const model::Tensor& tensor = graph_.tensor(id);
    return tensor.dtype == DType::kBool && tensor.shape.element_count() == 1 && tensor.bounded == 0 && !tensor.weight.valid();
  }

  std::uint32_t inside(std::uint32_t around, TensorId condition, bool wanted) {
    if (made_.guards[around].depth == kMaxDepth) return around;
    const auto [found, is_new] = numbers_.try_emplace({around, condition.index(), wanted}, static_cast<std::uint32_t>(made_.guards.size()));
    if (is_new) made_.guards.push_back({condition, wanted, around, made_.guards[around].depth + 1});
    return found->second;
  }

  const model::Graph& graph_;
  Guards made_;
  std::vector<std::uint32_t> wanted_;  // by tensor: where one of the readers so far is met
  std::vector<std::size_t> made_at_;   // by tensor: the number of its node, one more; 0: there from the beginning
  std::map<std::tuple<std::uint32_t, std::size_t, bool>, std::uint32_t> numbers_;
};

}  // namespace

std::uint32_t Guards::common(std::uint32_t a, std::uint32_t b) const noexcept {
  while (a != b) {
    std::uint32_t& deeper = guards[a].depth >= guards[b].depth ? a : b;
    deeper = guards[deeper].around;
  }
  return a;
}

Guards find_guards(const model::Graph& graph) {
  for (const model::Node& node : graph.nodes)
    if (is_choose(node)) return Search(graph).run();
  return {};
}

}  // namespace sluice::operators
