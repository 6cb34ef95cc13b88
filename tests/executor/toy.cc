#include "tests/executor/toy.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "sluice/core/hash.h"
#include "sluice/operators/parameters/weighted.h"
#include "src/kernels/reference/kernels.h"

namespace sluice::toy {
namespace {

using model::kPanelLanes;

constexpr KernelId kReferenceDense = kernels::offset_id(kernels::kernel_id::kReferenceBase, static_cast<int>(model::OpKind::kDense));
constexpr std::byte kScramble{0x5A};
std::atomic<int> prepared{0};

const kernels::KernelDescriptor& reference_dense() noexcept { return *kernels::find_kernel(kReferenceDense); }

Bytes derived_panel_bytes(const operators::Parameters& parameters) noexcept {
  return parameters.as<operators::DenseParameters>().weighted.panels.panel_bytes;
}

void scramble(const std::byte* from, std::size_t size, std::byte* to) noexcept {
  std::transform(from, from + size, to, [](std::byte b) { return b ^ kScramble; });
}

void prepare_dense(const kernels::KernelCall& call) noexcept {
  ++prepared;
  const kernels::WeightOperand& raw = call.weights[0];
  const std::uint64_t each = raw.panel_bytes.count();
  const auto first = static_cast<std::uint64_t>(raw.panels.begin - call.derived.panels.begin);
  scramble(raw.data, each * static_cast<std::uint64_t>(raw.panels.end - raw.panels.begin), call.derived.data + first * each);
}

/// The reference, after the raw panels were made again in the workspace.
void run_dense(const kernels::KernelCall& call) noexcept {
  if (call.derived.data == nullptr) return kernels::reference::dense(call);
  const PanelRange panels{call.channels.begin / kPanelLanes, ceil_div(call.channels.end, kPanelLanes)};
  const std::uint64_t each = call.weights[0].panel_bytes.count();
  const auto first = static_cast<std::uint64_t>(panels.begin - call.derived.panels.begin);
  scramble(call.derived.data + first * each, each * static_cast<std::uint64_t>(panels.end - panels.begin), call.workspace);
  const std::array<kernels::WeightOperand, 2> weights = {{{call.workspace, panels, call.weights[0].panel_bytes}, call.weights[1]}};
  kernels::KernelCall raw = call;
  raw.weights = weights;
  raw.derived = {};
  kernels::reference::dense(raw);
}

Bytes dense_workspace(const operators::Parameters& parameters, const kernels::StepExtent& extent) noexcept {
  const std::int64_t panels = ceil_div(extent.channels.end - extent.channels.begin, kPanelLanes);
  return extent.derived ? derived_panel_bytes(parameters) * static_cast<std::uint64_t>(panels) : Bytes();
}

kernels::KernelDescriptor make_deriving_kernel() noexcept {
  kernels::KernelDescriptor kernel = reference_dense();
  kernel.id = kDerivingKernel;
  kernel.name = "toy/deriving";
  kernel.workspace = &dense_workspace;
  kernel.resolve = [](const model::Graph& graph, const model::Node& node, Isa isa) noexcept {
    kernels::ResolvedCall call = reference_dense().resolve(graph, node, isa);
    call.run = &run_dense;
    call.prepare = &prepare_dense;
    return call;
  };
  kernel.derived_panel_bytes = &derived_panel_bytes;
  return kernel;
}

class ModelBuilder {
 public:
  explicit ModelBuilder(const ToyOptions& options) : options_(options), random_(options.seed) {}

  ToyModel build() {
    model_.graph.name = "toy";
    const std::size_t layers = options_.widths.size() - 1;
    for (std::size_t i = 0; i <= layers; ++i) {
      model_.graph.tensors.push_back({"t" + std::to_string(i), DType::kF32, Shape{options_.rows, options_.widths[i]}, WeightId()});
    }
    model_.graph.inputs.push_back({"in", TensorId(0), model_.graph.tensors.front().shape, {}});
    model_.graph.outputs.push_back({"out", TensorId(layers), model_.graph.tensors.back().shape, {}});
    for (auto* port : {&model_.graph.inputs[0], &model_.graph.outputs[0]}) port->perm = {0, 1, 2, 3, 4, 5, 6, 7};
    model_.file.resize(kBlock);
    for (float& x : values_ = std::vector<float>(options_.rows * options_.widths[0])) x = draw();
    model_.input = values_;
    for (std::size_t i = 0; i < layers; ++i) make_bias(i);
    model_.file.resize(align_up(model_.file.size(), kBlock));
    for (std::size_t i = 0; i < layers; ++i) make_layer(i);
    model_.expected = values_;
    return std::move(model_);
  }

 private:
  float draw() {
    const float value = std::uniform_real_distribution<float>(-1.0f, 1.0f)(random_);
    return options_.coarse ? std::round(value * 64.0f) / 64.0f : value;
  }

  void append_weight(model::Weight weight, const std::vector<float>& values, std::int64_t panels_per_stretch) {
    const std::size_t start = model_.file.size();
    weight.offset = Bytes(start);
    weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(weight.panels);
    weight.first_stretch = static_cast<std::uint32_t>(model_.graph.stretches.size());
    model_.file.resize(start + weight.bytes.count());
    std::memcpy(model_.file.data() + start, values.data(), values.size() * sizeof(float));
    for (std::int64_t p = 0; p < weight.panels; p += panels_per_stretch) {
      const auto panels = static_cast<std::uint64_t>(std::min(panels_per_stretch, weight.panels - p));
      const Bytes offset = weight.offset + weight.panel_bytes * static_cast<std::uint64_t>(p);
      const Bytes size = weight.panel_bytes * panels;
      model_.graph.stretches.push_back({offset, size, size, xxh3_64({model_.file.data() + offset.count(), size.count()})});
      ++weight.stretch_count;
    }
    model_.graph.weights.push_back(weight);
  }

  void make_bias(std::size_t layer) {
    const std::int64_t outputs = options_.widths[layer + 1];
    std::vector<float> bias(align_up(static_cast<std::uint64_t>(outputs), kPanelLanes));
    for (std::int64_t n = 0; n < outputs; ++n) bias[static_cast<std::size_t>(n)] = draw();
    model::Weight weight;
    weight.name = "bias" + std::to_string(layer);
    weight.shape = Shape{static_cast<std::int64_t>(bias.size())};
    weight.panel_bytes = Bytes(bias.size() * sizeof(float));
    weight.always_resident = true;
    append_weight(weight, bias, 1);
    biases_.push_back(bias);
  }

  void make_layer(std::size_t layer) {
    const std::int64_t inputs = options_.widths[layer];
    const std::int64_t outputs = options_.widths[layer + 1];
    model::Weight weight;
    weight.name = "weight" + std::to_string(layer);
    weight.panel_layout = {model::WeightLayout::kPanels};
    weight.shape = Shape{outputs, inputs};
    weight.panels = ceil_div(outputs, kPanelLanes);
    weight.panel_bytes = Bytes(static_cast<std::uint64_t>(inputs * kPanelLanes) * sizeof(float));
    std::vector<float> packed(static_cast<std::size_t>(weight.panels * inputs * kPanelLanes));
    const auto at = [&](std::int64_t n, std::int64_t k) -> float& {
      return packed[static_cast<std::size_t>((n / kPanelLanes * inputs + k) * kPanelLanes + n % kPanelLanes)];
    };
    for (std::int64_t n = 0; n < outputs; ++n)
      for (std::int64_t k = 0; k < inputs; ++k) at(n, k) = draw();
    std::vector<float> next(static_cast<std::size_t>(options_.rows * outputs));
    for (std::int64_t row = 0; row < options_.rows; ++row) {
      for (std::int64_t n = 0; n < outputs; ++n) {
        float sum = 0.0f;
        for (std::int64_t k = 0; k < inputs; ++k) sum = std::fma(values_[static_cast<std::size_t>(row * inputs + k)], at(n, k), sum);
        sum += biases_[layer][static_cast<std::size_t>(n)];
        next[static_cast<std::size_t>(row * outputs + n)] = std::max(sum, 0.0f);
      }
    }
    values_ = next;
    append_weight(weight, packed, options_.panels_per_stretch);
    model::Node node;
    node.name = "dense" + std::to_string(layer);
    node.op = model::OpKind::kDense;
    node.attributes = model::DenseAttributes{inputs, outputs};
    node.epilogue.has_bias = true;
    node.epilogue.activation.function = model::Function::kRelu;
    node.inputs = {TensorId(layer)};
    node.outputs = {TensorId(layer + 1)};
    node.weights = {WeightId(biases_.size() + layer), WeightId(layer)};
    model_.graph.nodes.push_back(node);
  }

  const ToyOptions options_;
  std::mt19937 random_;
  ToyModel model_;
  std::vector<float> values_;
  std::vector<std::vector<float>> biases_;
};

class PlanBuilder {
 public:
  PlanBuilder(const ToyModel& model, const ToyPlanOptions& options) : model_(model), graph_(model.graph), options_(options) {}

  plan::Plan build() {
    plan_.policy = "toy";
    plan_.threads = options_.threads;
    plan_.block = kBlock;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) place_tensor(graph_.tensors[i]);
    add_resident_biases();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) add_node(NodeId(i));
    place_loads();
    plan_.arena_bytes = Bytes(top_);
    plan_.capacity = plan_.arena_bytes;
    return std::move(plan_);
  }

 private:
  BufferId add_buffer(plan::BufferKind kind, std::uint64_t size) {
    const std::uint64_t offset = align_up(top_, kBlock);
    top_ = offset + size + kBlock;  // a block of canaries
    plan::Buffer buffer;
    buffer.kind = kind;
    buffer.size = Bytes(size);
    buffer.alignment = kBlock;
    buffer.offset = Bytes(offset);
    plan_.buffers.push_back(buffer);
    return BufferId(plan_.buffers.size() - 1);
  }

  void place_tensor(const model::Tensor& tensor) {
    const std::int64_t pitch = tensor.shape.back() * 4;
    const BufferId buffer = add_buffer(plan::BufferKind::kActivation, tensor.bytes().count() + kernels::kReadTail.count());
    plan_.tensors.push_back({buffer, Bytes(), pitch, pitch, 0});
  }

  void add_resident_biases() {
    const std::size_t layers = graph_.nodes.size();
    plan::Load load;
    load.file.offset = Bytes(align_down(graph_.weights.front().offset.count(), kBlock));
    load.file.size = align_up(graph_.weights[layers - 1].range().end(), kBlock) - load.file.offset;
    load.stretch_count = static_cast<std::uint32_t>(layers);
    load.resident = true;
    load.target = add_buffer(plan::BufferKind::kWeight, load.file.size.count());
    plan_.loads.push_back(load);
  }

  void add_node(NodeId id) {
    const model::Node& node = graph_.node(id);
    const model::Weight& weight = graph_.weight(node.weights[0]);
    plan::DerivedPanels derived;
    const bool derives = id.index() < static_cast<std::size_t>(options_.derived_layers);
    if (derives) {
      derived = {add_buffer(plan::BufferKind::kDerived, weight.bytes.count()), {0, weight.panels}};
      steps_in_load_ = 0;
      for (std::int64_t p = 0; p < weight.panels; p += options_.panels_per_step) add_step(id, panels_from(weight, p), derived, true);
      steps_in_load_ = 0;
    }
    for (std::int64_t p = 0; p < weight.panels; p += options_.panels_per_step) add_step(id, panels_from(weight, p), derived, false);
  }

  PanelRange panels_from(const model::Weight& weight, std::int64_t p) const {
    return {p, std::min(p + options_.panels_per_step, weight.panels)};
  }

  void add_step(NodeId id, PanelRange panels, const plan::DerivedPanels& derived, bool prepare) {
    const model::Node& node = graph_.node(id);
    plan::Step step;
    step.node = id;
    step.kernel = options_.derived_layers > 0 ? kDerivingKernel : kReferenceDense;
    step.derived = derived;
    step.prepare = prepare;
    step.rows = {0, graph_.tensor(node.outputs[0]).shape[0]};
    step.channels = {panels.begin * kPanelLanes, std::min(panels.end * kPanelLanes, graph_.tensor(node.outputs[0]).shape.back())};
    step.first_operand = static_cast<std::uint32_t>(plan_.operands.size());
    if (!prepare) step.workspace = workspace_for(node, step);
    if (prepare || !derived.buffer.valid()) {
      add_to_load(graph_.weight(node.weights[0]), panels);
      plan_.loads.back().prologue_only = prepare;
      plan_.operands.push_back({node.weights[0], panels, LoadId(plan_.loads.size() - 1)});
    }
    if (!prepare) plan_.operands.push_back({node.weights[1], {0, 1}, LoadId(0)});
    step.operand_count = static_cast<std::uint32_t>(plan_.operands.size()) - step.first_operand;
    step.loads_needed = static_cast<std::uint32_t>(plan_.loads.size());
    plan_.steps.push_back(step);
    if (prepare || !derived.buffer.valid()) plan_.loads.back().uses.end = static_cast<std::int64_t>(plan_.steps.size());
  }

  BufferId workspace_for(const model::Node& node, const plan::Step& step) {
    const kernels::KernelDescriptor* kernel = find_toy_kernel(step.kernel);
    if (kernel == nullptr) return BufferId();
    const Bytes bytes = kernels::workspace_bytes(
        *kernel, graph_, node, {step.rows, step.channels, static_cast<int>(options_.threads), step.derived.buffer.valid()});
    return bytes == Bytes() ? BufferId() : add_buffer(plan::BufferKind::kWorkspace, bytes.count());
  }

  /// Adds the stretches of `panels` to the last load, or to a new one when that has its share of steps.
  void add_to_load(const model::Weight& weight, PanelRange panels) {
    if (steps_in_load_ == 0 || steps_in_load_ == options_.steps_per_load) {
      plan::Load load;
      load.first_stretch = first_stretch_at(weight, panels);
      load.file.offset = Bytes(align_down(model::panel_range(weight, panels).offset.count(), kBlock));
      load.resident = options_.resident;
      load.uses.begin = static_cast<std::int64_t>(plan_.steps.size());
      plan_.loads.push_back(load);
      steps_in_load_ = 0;
    }
    ++steps_in_load_;
    plan::Load& load = plan_.loads.back();
    const Bytes end = align_up(model::panel_range(weight, panels).end(), kBlock);
    load.file.size = std::min(end, Bytes(model_.file.size())) - load.file.offset;
    while (load.first_stretch + load.stretch_count < graph_.stretches.size() &&
           graph_.stretches[load.first_stretch + load.stretch_count].offset < model::panel_range(weight, panels).end()) {
      ++load.stretch_count;
    }
  }

  std::uint32_t first_stretch_at(const model::Weight& weight, PanelRange panels) const {
    const Bytes begin = model::panel_range(weight, panels).offset;
    std::uint32_t stretch = weight.first_stretch;
    while (graph_.stretches[stretch].offset < begin) ++stretch;
    return stretch;
  }

  void place_loads() {
    std::uint64_t largest = 0;
    for (const plan::Load& load : plan_.loads) largest = std::max(largest, align_up(load.file.size.count(), kBlock));
    std::vector<BufferId> slots;
    if (!options_.resident)
      for (int i = 0; i < options_.slots; ++i) slots.push_back(add_buffer(plan::BufferKind::kWeight, largest));
    for (std::size_t i = 1; i < plan_.loads.size(); ++i) {
      plan::Load& load = plan_.loads[i];
      if (options_.resident) {
        load.target = add_buffer(plan::BufferKind::kWeight, align_up(load.file.size.count(), kBlock));
        continue;
      }
      const std::size_t turn = i - 1;
      load.target = slots[turn % slots.size()];
      if (turn >= slots.size()) load.gate = plan_.loads[i - slots.size()].uses.end;
    }
    if (options_.wrap && !options_.resident) wrap_loads(slots.size());
  }

  /// A slot is free again after its last load's last use. Gates of a period never fall.
  void wrap_loads(std::size_t slots) {
    plan_.repeat = true;
    const std::size_t turns = plan_.loads.size() - 1;
    std::int64_t least = -static_cast<std::int64_t>(plan_.steps.size());
    for (std::size_t turn = 0; turn < std::min(slots, turns); ++turn) {
      const std::size_t last = turn + (turns - 1 - turn) / slots * slots;
      least = std::max(least, plan_.loads[1 + last].uses.end - static_cast<std::int64_t>(plan_.steps.size()));
      plan_.loads[1 + turn].gate = least;
    }
  }

  const ToyModel& model_;
  const model::Graph& graph_;
  const ToyPlanOptions options_;
  plan::Plan plan_;
  std::uint64_t top_ = 0;
  int steps_in_load_ = 0;
};

template <class Visit>
void visit_gaps(const plan::Plan& plan, const Visit& visit) {
  std::vector<Interval<std::uint64_t>> taken;
  for (const plan::Buffer& buffer : plan.buffers) taken.push_back({buffer.offset.count(), (buffer.offset + buffer.size).count()});
  std::sort(taken.begin(), taken.end(), [](auto a, auto b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (const auto& range : taken) {
    for (; at < range.begin; ++at) visit(at);
    at = std::max(at, range.end);
  }
  for (; at < plan.arena_bytes.count(); ++at) visit(at);
}

}  // namespace

ToyModel make_toy_model(const ToyOptions& options) { return ModelBuilder(options).build(); }
plan::Plan make_toy_plan(const ToyModel& model, const ToyPlanOptions& options) { return PlanBuilder(model, options).build(); }

int prepare_count() noexcept { return prepared; }
const kernels::KernelDescriptor* find_toy_kernel(KernelId id) noexcept {
  static const kernels::KernelDescriptor deriving = make_deriving_kernel();
  return id == kDerivingKernel ? &deriving : kernels::find_kernel(id);
}

void plant_canaries(const plan::Plan& plan, Arena& arena) {
  visit_gaps(plan, [&](std::uint64_t at) { arena.data()[at] = kCanary; });
}

std::size_t touched_canaries(const plan::Plan& plan, const Arena& arena) {
  std::size_t touched = 0;
  visit_gaps(plan, [&](std::uint64_t at) { touched += arena.data()[at] != kCanary; });
  return touched;
}

}  // namespace sluice::toy
