#include "src/engine/budget.h"

#include <algorithm>

#include "src/engine/process_memory.h"
#include "src/executor/bind.h"

namespace sluice::engine {
namespace {

using namespace literals;

constexpr std::uint64_t kPage = 4096;
constexpr Bytes kProcessStep = 256_KiB;   // overheads are rounded up to it, so that small changes of the floor do not change a plan
constexpr Bytes kCounterError = 256_KiB;  // VmHWM wobbles by 80 to 270 KiB: the kernel counts pages in batches for each thread
// Pages that a session touches after the measurement: code of kernels and of the loader, stacks, the system's buffers.
constexpr Bytes kLaterPages = 768_KiB;
// Peak of `sluice run` less its arena, graph and tables, on one thread.
constexpr Bytes kProcessFloor = 6_MiB;
// Pages of a thread's stack that are touched, its control block and guard included.
constexpr Bytes kThreadBytes = 48_KiB;
constexpr Bytes kSessionBytes = 64_KiB;  // the session's own objects and the allocator's slack
// A vector's or string's allocation costs its bytes and a header.
constexpr std::uint64_t kAllocationHeader = 16;

template <class T>
std::uint64_t vector_bytes(const std::vector<T>& items) noexcept {
  return items.capacity() * sizeof(T) + (items.capacity() == 0 ? 0 : kAllocationHeader);
}
std::uint64_t string_bytes(const std::string& text) noexcept { return text.capacity() <= 15 ? 0 : text.capacity() + kAllocationHeader; }

/// Tables cannot be known before the plan; each node has a step or more, and large weights are cut. Plans of real models stay below this;
/// `Session::create` plans again when one does not.
Bytes table_bound(const model::Graph& graph) noexcept {
  constexpr std::uint64_t kNodeTables = 1280;
  constexpr std::uint64_t kSliceTables = 512;
  constexpr std::uint64_t kSliceBytes = 256 * 1024;
  std::uint64_t weights = 0;
  for (const model::Weight& weight : graph.weights) weights += weight.bytes.count();
  return Bytes(graph.nodes.size() * kNodeTables + weights / kSliceBytes * kSliceTables);
}

Bytes threads_bytes(int threads) noexcept {
  return static_cast<std::uint64_t>(threads) * kThreadBytes;
}  // the loader's in place of the caller's

}  // namespace

Bytes graph_bytes(const model::Graph& graph) noexcept {
  std::uint64_t sum = sizeof(graph) + vector_bytes(graph.tensors) + vector_bytes(graph.weights) + vector_bytes(graph.stretches) +
                      vector_bytes(graph.nodes) + vector_bytes(graph.inputs) + vector_bytes(graph.outputs) + vector_bytes(graph.labels);
  for (const model::Tensor& tensor : graph.tensors) sum += string_bytes(tensor.name);
  for (const model::Weight& weight : graph.weights) sum += string_bytes(weight.name);
  for (const std::string& label : graph.labels) sum += string_bytes(label);
  for (const model::Node& node : graph.nodes) {
    sum += string_bytes(node.name) + vector_bytes(node.inputs) + vector_bytes(node.outputs) + vector_bytes(node.weights);
  }
  return Bytes(sum);
}

Bytes table_bytes(const model::Graph& graph, const plan::Plan& plan) noexcept {
  std::uint64_t sum = sizeof(plan) + vector_bytes(plan.buffers) + vector_bytes(plan.tensors) + vector_bytes(plan.steps) +
                      vector_bytes(plan.operands) + vector_bytes(plan.loads);
  for (const plan::Step& step : plan.steps) {
    const model::Node& node = graph.node(step.node);
    sum += sizeof(executor::BoundStep) + (node.inputs.size() + node.outputs.size()) * sizeof(kernels::Operand) +
           node.weights.size() * sizeof(kernels::WeightOperand);
  }
  return Bytes(sum);
}

Bytes overhead_of(const Model& model, const SessionOptions& options) noexcept {
  const Bytes tables = table_bound(model.graph()) + kSessionBytes;
  const Bytes threads = threads_bytes(options.threads);
  if (options.scope == BudgetScope::kLibrary) return align_up(graph_bytes(model.graph()) + tables + threads, kPage);
  release_free_heap();
  const Bytes constant = kProcessFloor + graph_bytes(model.graph()) + tables + threads;
  const Bytes now = read_process_memory().resident + kLaterPages + tables + threads;
  return align_up(std::max(constant, now), kProcessStep.count()) + kCounterError;
}

Bytes capacity_of(Bytes budget, Bytes overhead) noexcept {
  if (budget <= overhead) return {};
  return Bytes(align_down((budget - overhead).count(), kPage));
}

Bytes budget_of(Bytes capacity, Bytes overhead) noexcept { return overhead + align_up(capacity, kPage); }

Status check_floor(const Model& model, const SessionOptions& options, const plan::Plan& plan) noexcept {
  if (options.scope == BudgetScope::kLibrary) return {};
  release_free_heap();
  const Bytes arena = align_up(plan.arena_bytes, kPage);
  const Bytes floor = read_process_memory().resident + kLaterPages;
  if (floor + arena <= options.budget) return {};
  return fail(make_error(ErrorCode::kBudgetTooSmall, model.file().path(), "the process already holds more than the overhead of its budget",
                         (align_up(floor, kProcessStep.count()) + kCounterError + arena).count(), options.budget.count()));
}

}  // namespace sluice::engine
