#include "src/engine/budget.h"

#include <algorithm>
#include <bitset>

#include "sluice/planner/place/columns.h"
#include "src/core/build_list.h"
#include "src/core/static_program.h"
#include "src/engine/arena_layout.h"
#include "src/engine/planning.h"
#include "src/engine/process_memory.h"
#include "src/executor/bind.h"
#include "src/model/built_features.h"

namespace sluice::engine {
namespace {

using namespace literals;

constexpr Bytes kProcessStep = 256_KiB;   // what an unusual process holds is rounded up to it, so that small changes do not change a plan
constexpr Bytes kCounterError = 256_KiB;  // VmHWM wobbles by 80 to 270 KiB: the kernel counts pages in batches for each thread
// What `sluice run` holds when it asks for a budget, code pages given back, less graph, inputs and profile: 0.48 to 0.6 MiB over 32 nets,
// 0.40 to 0.42 where it is fully static, and kCodeHeld. This is above it by more than a few options make of a difference (labels, arrays), so that
// `run` makes the plan that `plan` and `predict` have made, which hold less (a process that holds more gets what it holds, in steps). Peaks
// are 0.3 to 0.5 MiB higher while the system holds the program, just linked or copied, in pieces of 2 MiB: of 180 runs one was 66 KiB above
// its budget then with 128 KiB less here, and of static ones several with less than three quarters of a MiB more than they hold.
constexpr Bytes kProcessFloor = 1_MiB + 128_KiB;
constexpr Bytes kStaticProcessFloor = 1216_KiB;
// Pages that are touched later, tables and threads included: nearly all is code of the run, which comes in pieces of 16 KiB
// (`release_code_pages_in_pieces`) and grows with the kernels. The code of opening, planning and making a session is given back before the
// run, so that the peaks do not add up. Nine networks in their smallest budgets, one and two threads: 0.65 to 0.71 MiB of the program's
// code, 0.15 to 0.2 of its constants and as much of libc (in clusters of 64 KiB, as the system brings them by itself, 2.6 in all), and 1.05
// to 1.47 MiB were left of budgets that had 320 KiB more here.
constexpr Bytes kPagesAfterOpen = 512_KiB;
constexpr Bytes kPagesAfterBuild = 256_KiB;
// What is held of it at any time, which `release_code_and_measure` does not count: 0.3 to 0.38 MiB.
constexpr Bytes kCodeHeld = 384_KiB;
// And for models that use more of the kernels, one of 2 MiB or more all of this. A static program has no libraries.
constexpr Bytes kMoreCode = 512_KiB;
constexpr Bytes kMoreStaticCode = 256_KiB;
constexpr std::uint64_t kWeightsForCode = 4;  // bytes of weights for one of that
// Nor is it weights alone: each operator has code of its own, in its own pieces. Nets of few weights and 7, 14, 27 and 36 kinds of nodes
// held, in clusters, up to 0, 0.6, 1.0 and 1.6 MB more than they stated, of the static program nothing, 0, 0 and 0.1. The networks of many
// weights that kMoreCode was measured with have up to eight kinds.
constexpr Bytes kCodeOfKind = 64_KiB;
constexpr Bytes kStaticCodeOfKind = 16_KiB;
constexpr std::uint64_t kFewKinds = 8;
// The peak of the process of a model of a few MiB, most of it planning: 4.6 MiB.
constexpr Bytes kLeastProcess = 5_MiB + 256_KiB;
constexpr Bytes kLeastStaticProcess = 4_MiB;
// Planning holds more of long graphs: 2.55 KiB a node without bands, 3.1 with them, above 2.1 MiB (chains of 1,000 and 3,000 small
// convolutions), and 10.7 to 11.1 bytes for each pair of tensors that live at the same time (nests of 750 and 1,500 skips). For the least activations regions that
// were measured stay in a pool, 2.6 KiB a node, as long as there is one (SearchParameters::band_join_nodes); where bands may cost more
// than usual it remembers more of them: a chain of 400 peaked 2.6 MiB higher.
constexpr std::uint64_t kNodesOfLeastProcess = 750;
constexpr Bytes kPlanningOfNode = 2816_B;
constexpr Bytes kSearchOfNode = 3584_B;
constexpr std::uint64_t kPairsOfLeastProcess = 16'384;
constexpr Bytes kPair = 13_B;
constexpr std::uint64_t kPooledNodesOfLeastProcess = 400, kWidelyPooledNodesOfLeastProcess = 150;
constexpr Bytes kPoolOfNode = 4_KiB, kWidePoolOfNode = 12_KiB;
// OpenSSL, where a model is encrypted: what it writes (its tables, found by loading it: 0.70 MiB), which the process holds from the opening
// on, and code, most of which goes back before the run: 0.9 MiB came again with the first stretch, in clusters that the system chooses.
constexpr Bytes kCipherHeap = 768_KiB;
constexpr Bytes kCipherCode = 1_MiB + 512_KiB;
constexpr Bytes kCipherCodeOfRun = 128_KiB;  // what most runs hold of it
// The peak of a process that loads it: 9.38 to 9.66 MiB.
constexpr Bytes kLeastProcessWithCipher = 10_MiB;
// Pages of a thread's stack that are touched, its control block and guard included.
constexpr Bytes kThreadBytes = 48_KiB;
constexpr Bytes kSessionBytes = 32_KiB;  // the session's own objects and the allocator's slack
// A vector's or string's allocation costs its bytes and a header.
constexpr std::uint64_t kAllocationHeader = 16;

template <class T>
std::uint64_t vector_bytes(const std::vector<T>& items) noexcept {
  return items.capacity() * sizeof(T) + (items.capacity() == 0 ? 0 : kAllocationHeader);
}
std::uint64_t string_bytes(const std::string& text) noexcept { return text.capacity() <= 15 ? 0 : text.capacity() + kAllocationHeader; }

}  // namespace

static std::uint64_t tensor_bytes(const std::vector<model::Tensor>& tensors) noexcept {
  std::uint64_t sum = vector_bytes(tensors);
  for (const model::Tensor& tensor : tensors) sum += string_bytes(tensor.name);
  return sum;
}

static std::uint64_t node_bytes(const std::vector<model::Node>& nodes) noexcept {
  std::uint64_t sum = vector_bytes(nodes);
  for (const model::Node& node : nodes) {
    sum += string_bytes(node.name) + vector_bytes(node.inputs) + vector_bytes(node.outputs) + vector_bytes(node.weights);
    if (const auto* plain = std::get_if<model::PlainAttributes>(&node.attributes)) sum += vector_bytes(plain->arguments);
  }
  return sum;
}

Bytes graph_bytes(const model::Graph& graph) noexcept {
  std::uint64_t sum = sizeof(graph) + tensor_bytes(graph.tensors) + node_bytes(graph.nodes);
  sum += vector_bytes(graph.weights) + vector_bytes(graph.stretches) + vector_bytes(graph.tags) + vector_bytes(graph.codes);
  sum += vector_bytes(graph.inputs) + vector_bytes(graph.outputs) + vector_bytes(graph.labels);
  sum += vector_bytes(graph.quantisations) + vector_bytes(graph.subgraphs) + vector_bytes(graph.units);
  for (const model::Weight& weight : graph.weights) sum += string_bytes(weight.name) + vector_bytes(weight.panel_ends);
  for (const std::string& label : graph.labels) sum += string_bytes(label);
  for (const model::Code& code : graph.codes) sum += vector_bytes(code.frequencies);
  for (const model::Quantisation& q : graph.quantisations) sum += vector_bytes(q.scales) + vector_bytes(q.zero_points);
  for (const model::Subgraph& body : graph.subgraphs)
    sum += string_bytes(body.name) + tensor_bytes(body.tensors) + node_bytes(body.nodes) + vector_bytes(body.captures) +
           vector_bytes(body.inputs) + vector_bytes(body.outputs);
  for (const model::Unit& unit : graph.units) sum += string_bytes(unit.name) + vector_bytes(unit.inputs) + vector_bytes(unit.outputs);
  return Bytes(sum);
}

// Tables of a node's steps, most of them in one.
static constexpr std::uint64_t kNodeTables = 1024;

/// Does a body read weights that its plan may stream?
static bool may_stream(const model::Graph& graph, const model::Subgraph& body) noexcept {
  const auto large = [&](WeightId id) { return id.valid() && !graph.weight(id).always_resident; };
  const auto reads = [&](const model::Node& node) { return std::any_of(node.weights.begin(), node.weights.end(), large); };
  return std::any_of(body.nodes.begin(), body.nodes.end(), reads) ||
         std::any_of(body.tensors.begin(), body.tensors.end(), [&](const model::Tensor& tensor) { return large(tensor.weight); });
}

/// Tables of subgraphs' plans; those of slices beyond kSlicedBody nodes' count in their arenas (planner.cc). They are a part of what is set
/// aside for all tables, as long as that holds them.
static std::uint64_t body_tables(const model::Graph& graph) noexcept {
  if constexpr (!model::kRunsSubgraphs) return 0;
  constexpr std::uint64_t kSlicedBody = 12;
  std::uint64_t nodes = 0;
  for (const model::Subgraph& body : graph.subgraphs) nodes += body.nodes.size() + (may_stream(graph, body) ? kSlicedBody : 0);
  return nodes * kNodeTables;
}

Bytes table_bytes(const model::Graph& graph, const plan::Plan& plan) {
  std::uint64_t sum = sizeof(plan) + vector_bytes(plan.buffers) + vector_bytes(plan.tensors) + vector_bytes(plan.steps) +
                      vector_bytes(plan.operands) + vector_bytes(plan.loads) + vector_bytes(plan.passing) + vector_bytes(plan.blocks) +
                      plan.blocks.size() * sizeof(executor::BoundBlock);
  const executor::OperandCount count = executor::count_operands(graph, plan);
  sum +=
      plan.steps.size() * executor::kStepTable + count.tensors * sizeof(kernels::Operand) + count.weights * sizeof(kernels::WeightOperand);
  const auto bounded = [](const model::Tensor& tensor) { return tensor.bounded != 0; };
  const auto extents = static_cast<std::uint64_t>(std::count_if(graph.tensors.begin(), graph.tensors.end(), bounded));
  const auto parts = static_cast<std::uint64_t>(std::count_if(plan.steps.begin(), plan.steps.end(), plan::adds_part));
  const std::uint64_t guards = executor::BoundGuards(graph, plan, nullptr).bytes();
  return Bytes(sum + body_tables(graph) + guards + extents * (sizeof(Shape) + sizeof(TensorId)) + parts * sizeof(kernels::SumsPart));
}

planner::TableCosts table_costs(const model::Graph& graph) noexcept {
  constexpr std::uint64_t kVectors = 8;
  return {.set_aside = table_bound(graph).count(),
          .any_plan =
              sizeof(plan::Plan) + graph.tensors.size() * sizeof(plan::TensorPlacement) + kVectors * kAllocationHeader + body_tables(graph),
          .buffer = sizeof(plan::Buffer),
          .step = sizeof(plan::Step) + executor::kStepTable,
          .load = sizeof(plan::Load),
          .tensor = sizeof(kernels::Operand),
          .weight = sizeof(kernels::WeightOperand),
          .operand = sizeof(plan::WeightOperand),
          .block = sizeof(plan::PassingBlock) + sizeof(executor::BoundBlock),
          .node = kNodeTables};
}

static std::uint64_t weight_bytes(const model::Graph& graph) noexcept {
  std::uint64_t sum = 0;
  for (const model::Weight& weight : graph.weights) sum += weight.bytes.count();
  return sum;
}

// Tables cannot be known before the plan, so this follows from the graph: a node has a step or more, and large weights are cut. Measured
// at the least budgets, where plans are longest: 47 KB of 94 for MobileNetV2, 235 of 313 for ResNet-152, 144 of 333 for VGG-19.
Bytes table_bound(const model::Graph& graph) noexcept {
  constexpr std::uint64_t kAnyTables = 32 * 1024;
  constexpr std::uint64_t kSliceTables = 512;
  constexpr std::uint64_t kSliceBytes = 1 << 20;
  return Bytes(kAnyTables + graph.nodes.size() * kNodeTables + weight_bytes(graph) / kSliceBytes * kSliceTables);
}

/// Kinds of code that its nodes run: operators, each in a numeric class, and those of the long tail one by one.
static std::uint64_t kinds_of_code(const model::Graph& graph) noexcept {
  constexpr std::size_t kMostPlain = 1024;  // numbers behind that count as one
  std::bitset<model::kOpKindCount * model::kNumericClassCount> operators;
  std::bitset<kMostPlain> plain;
  const auto add = [&](const std::vector<model::Node>& nodes) {
    for (const model::Node& node : nodes) {
      if (const auto* one = std::get_if<model::PlainAttributes>(&node.attributes))
        plain.set(std::min<std::size_t>(one->op, kMostPlain - 1));
      else if (node.op != model::OpKind::kReshape)
        operators.set(static_cast<std::size_t>(node.op) * model::kNumericClassCount + static_cast<std::size_t>(node.numeric));
    }
  };
  add(graph.nodes);
  for (const model::Subgraph& body : graph.subgraphs) add(body.nodes);
  return operators.count() + plain.count();
}

static Bytes more_code(const model::Graph& graph) noexcept {
  const bool is_static = statically_linked();
  const Bytes each = is_static ? kStaticCodeOfKind : kCodeOfKind;
  const std::uint64_t kinds = kinds_of_code(graph), few = std::min(kinds, kFewKinds);
  const Bytes by_weights = std::min(is_static ? kMoreStaticCode : kMoreCode, Bytes(weight_bytes(graph) / kWeightsForCode));
  return std::max(by_weights, few * each) + (kinds - few) * each;
}

/// The program keeps its own copy of the inputs, so plans made without inputs at hand leave room for them.
Bytes input_bytes(const model::Graph& graph) noexcept {
  Bytes sum;
  for (const model::Port& port : graph.inputs) sum += graph.bytes_of(port);
  return sum;
}

static Bytes dimension_bytes(const std::vector<model::Dimension>& dimensions) noexcept {
  std::uint64_t sum = vector_bytes(dimensions);
  for (const model::Dimension& dimension : dimensions) sum += string_bytes(dimension.name) + vector_bytes(dimension.extents);
  return Bytes(sum);
}

Bytes model_bytes(const Model& model) noexcept { return graph_bytes(model.graph()) + dimension_bytes(model.file().dimensions()); }

Bytes profile_copies(const SessionOptions& options) noexcept {
  if (!kUsesProfiles || options.profile == nullptr) return {};
  const profiler::DeviceProfile& profile = *options.profile;
  // By size and not by capacity, which differs from copy to copy.
  const auto bytes = [](const auto& items) { return items.size() * sizeof items.front() + kAllocationHeader; };
  return Bytes(2 * (sizeof profile + bytes(profile.kernels) + bytes(profile.samples) + bytes(profile.placed) + bytes(profile.reads)));
}

Bytes thread_bytes(int threads) noexcept { return static_cast<std::uint64_t>(threads) * kThreadBytes; }

Bytes decoders_bytes(const model::Graph& graph) noexcept {
  const bool turns_read = model::kRunsSubgraphs && std::any_of(graph.subgraphs.begin(), graph.subgraphs.end(),
                                                               [&](const model::Subgraph& body) { return may_stream(graph, body); });
  return (2 + (turns_read ? 1 : 0)) * executor::decoder_bytes(graph);  // loader, step reader, loader of turns
}

static bool encrypted(const Model& model) noexcept { return model.file().key() != nullptr; }

Bytes cipher_bytes(const Model& model) noexcept { return encrypted(model) ? kCipherHeap + kCipherCodeOfRun : Bytes(); }

namespace {

/// What a session has of its own: its tables, and its loader with the threads that read for it.
Bytes own_bytes(const SessionShare& session) {
  const executor::ReadOptions read = reads_of(*session.options);
  const int threads = 1 + (read.method == executor::ReadMethod::kThreads ? read.in_flight : 0);
  return table_bound(session.model->graph()) + thread_bytes(threads) + decoders_bytes(session.model->graph());
}

/// What sessions hold, or cause to be resident, beside their arena: what follows from the models, the options and the build.
struct Parts {
  Bytes graphs, inputs, profiles;
  Bytes code = kPagesAfterOpen;
  Bytes own;      // tables, threads, loaders
  Bytes to_come;  // of those: what is not built yet
  Bytes cipher;   // beside its code
};

Parts parts_of(std::span<const SessionShare> sessions, int threads) {
  Parts parts;
  const Bytes workers = thread_bytes(threads - 1);  // beside the caller's own thread
  parts.own = workers;
  if (std::none_of(sessions.begin(), sessions.end(), [](const SessionShare& s) { return s.threads_run; })) parts.to_come = workers;
  for (auto session = sessions.begin(); session != sessions.end(); ++session) {
    const model::Graph& graph = session->model->graph();
    const Bytes own = own_bytes(*session);
    parts.own += own;
    if (!session->built) parts.to_come += own;
    parts.profiles += profile_copies(*session->options);
    if (std::any_of(sessions.begin(), session, [&](const SessionShare& before) { return before.model == session->model; })) continue;
    parts.graphs += model_bytes(*session->model);
    parts.inputs += input_bytes(graph);
    parts.code = std::max(parts.code, kPagesAfterOpen + more_code(graph));
  }
  if (std::any_of(sessions.begin(), sessions.end(), [](const SessionShare& s) { return encrypted(*s.model); })) {
    parts.cipher = kCipherHeap;
    parts.code += kCipherCode;
  }
  return parts;
}

/// Of a process that holds nothing else; without the counter's error.
Bytes usual_overhead(const Parts& parts, Bytes reserve) noexcept {
  const Bytes held = (statically_linked() ? kStaticProcessFloor : kProcessFloor) + parts.inputs + parts.profiles + parts.graphs +
                     parts.code + parts.cipher + parts.own;
  return align_up(held + reserve, kArenaPage);
}

}  // namespace

Bytes overhead_of(std::span<const SessionShare> sessions, BudgetScope scope, int threads, Bytes arena, Bytes reserve) {
  const Parts parts = parts_of(sessions, threads);
  if (scope == BudgetScope::kLibrary)
    return align_up(
        parts.graphs + parts.own + sessions.size() * kSessionBytes + (parts.cipher > Bytes() ? parts.cipher + kCipherCode : Bytes()),
        kArenaPage);
  release_free_heap();
  const Bytes resident = release_code_and_measure();
  const Bytes now = resident - std::min(resident, arena) + kCodeHeld + parts.code + parts.to_come + reserve;
  const Bytes usual = usual_overhead(parts, reserve);
  return (now <= usual ? usual : align_up(now, kProcessStep.count())) + kCounterError;
}

Bytes usual_overhead(const Model& model, const SessionOptions& options) {
  const SessionShare session{&model, &options};
  return usual_overhead(parts_of({&session, 1}, options.threads), options.reserve) + kCounterError;
}

Bytes overhead_of(const Model& model, const SessionOptions& options) {
  const SessionShare session{&model, &options};
  return overhead_of({&session, 1}, options.scope, options.threads, Bytes(), options.reserve);
}

Bytes capacity_of(Bytes budget, Bytes overhead) noexcept {
  if (budget <= overhead) return {};
  return Bytes(align_down((budget - overhead).count(), kArenaPage));
}

bool plans_tightly(const Model& model, Bytes budget, Bytes resident) noexcept {
  return std::max(resident, least_process(encrypted(model))) + kPlenty > budget;
}

bool runs_tightly(Bytes budget, Bytes overhead, Bytes arena) noexcept {
  // A process holds up to 1 MiB more than its overhead before its code is given back.
  return budget < kUnlimitedBytes && overhead + arena + 1_MiB + kPlenty > budget;
}

Bytes least_process(bool encrypted) noexcept {
  return statically_linked() ? kLeastStaticProcess : encrypted ? kLeastProcessWithCipher : kLeastProcess;
}

namespace {

std::uint64_t beyond(std::uint64_t count, std::uint64_t most) noexcept { return count - std::min(count, most); }

/// Pairs of tensors of the graph that live at the same time, nodes running in the file's order.
std::uint64_t live_pairs(const model::Graph& graph) {
  std::vector<std::uint32_t> last_reader(graph.tensors.size(), 0);
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i)
    for (const TensorId input : graph.nodes[i].inputs)
      if (input.valid()) last_reader[input.index()] = i;
  std::vector<std::uint32_t> ending(graph.nodes.size(), 0);
  std::uint64_t live = 0, pairs = 0;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    for (const TensorId output : graph.nodes[i].outputs) {
      pairs += live++;
      ++ending[std::max(i, last_reader[output.index()])];
    }
    live -= ending[i];
  }
  return pairs;
}

}  // namespace

// A loop's body is planned while the graph around it is.
Bytes planning_bytes(const Model& model, const SessionOptions& options) {
  if (options.plan != nullptr) return {};
  const model::Graph& graph = model.graph();
  std::uint64_t nodes = graph.nodes.size();
  for (const model::Subgraph& body : graph.subgraphs) nodes += body.nodes.size();
  const planner::Partition partition = options.tuning.partition;
  Bytes bytes = beyond(nodes, kNodesOfLeastProcess) * (partition == planner::Partition::kOff ? kPlanningOfNode : kSearchOfNode);
  bytes += beyond(std::min<std::uint64_t>(live_pairs(graph), planner::Overlaps::kMostPairs), kPairsOfLeastProcess) * kPair;
  if (partition != planner::Partition::kLeast || nodes > planner::SearchParameters().band_join_nodes) return bytes;
  const bool wide = options.tuning.max_overhead > Tuning().max_overhead;
  return bytes + (wide ? beyond(nodes, kWidelyPooledNodesOfLeastProcess) * kWidePoolOfNode
                       : beyond(nodes, kPooledNodesOfLeastProcess) * kPoolOfNode);
}

Bytes budget_of(const Model& model, Bytes capacity, Bytes overhead, const SessionOptions& options) {
  const Bytes sum = overhead + align_up(capacity, kArenaPage);
  if (options.scope == BudgetScope::kLibrary) return sum;
  return std::max(sum, least_process(encrypted(model)) + planning_bytes(model, options) + options.reserve);
}

Status check_floor(const Model& model, Bytes budget, Bytes arena, Bytes held, Bytes reserve) noexcept {
  release_free_heap();
  const Bytes whole = align_up(arena, kArenaPage);
  const Bytes code = kCodeHeld + kPagesAfterBuild + more_code(model.graph()) + (encrypted(model) ? kCipherCode : Bytes());
  Bytes floor;
  // Another thread of the process may have fetched code in between, which then counts once too often.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Bytes resident = release_code_and_measure();
    floor = resident - std::min(resident, held) + code + reserve;
    if (floor + whole <= budget) return {};
  }
  return fail(make_error(ErrorCode::kBudgetTooSmall, model.file().path(), "the process already holds more than the overhead of its budget",
                         (align_up(floor, kProcessStep.count()) + kCounterError + whole).count(), budget.count()));
}

}  // namespace sluice::engine
