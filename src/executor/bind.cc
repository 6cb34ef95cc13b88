#include "src/executor/bind.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sluice/kernels/left_out.h"
#include "sluice/kernels/registry.h"
#include "src/core/build_list.h"
#include "src/executor/body_step.h"
#include "src/executor/operand_places.h"
#include "src/executor/stretch_place.h"
#include "src/model/built_features.h"
#include "src/plan/built_needs.h"

namespace sluice::executor {
namespace {

using kernels::KernelDescriptor;
using kernels::Operand;

class Binder {
 public:
  explicit Binder(const BindContext& context)
      : context_(context), graph_(context.graph), plan_(context.plan), arena_(context.arena), pool_(context.pool), places_(graph_, plan_) {}

  Result<BoundPlan> bind() {
    reserve();
    for (const plan::Step& step : plan_.steps) SLUICE_RETURN_IF_ERROR(bind_step(step));
    if constexpr (plan::kHasPassing) bind_blocks();
    place_parameters();
    announce_weights();
    bound_.guards = BoundGuards(graph_, plan_, arena_);
    for (const model::Port& port : graph_.inputs) bound_.inputs.push_back(activation_view(port.tensor));
    for (const model::Port& port : graph_.outputs) {
      bound_.output_extents.push_back(extents_of(port.tensor));
      SLUICE_ASSIGN_OR_RETURN(const RowView view, output_view(port));
      bound_.outputs.push_back(view);
    }
    return std::move(bound_);
  }

 private:
  // Spans point into the vectors, so these must never grow while steps are bound.
  void reserve() {
    bound_.steps.reserve(plan_.steps.size());
    bound_.operands.reserve(count_shared_operands(graph_, plan_));
    bound_.weights.reserve(count_operands(graph_, plan_).weights);
    bound_.blocks.reserve(plan_.blocks.size());
    bound_.parts.reserve(static_cast<std::size_t>(std::count_if(plan_.steps.begin(), plan_.steps.end(), plan::adds_part)));
    resolved_.resize(graph_.nodes.size());
    bound_.inputs.reserve(graph_.inputs.size());
    bound_.outputs.reserve(graph_.outputs.size());
    bound_.output_extents.reserve(graph_.outputs.size());
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (graph_.tensors[t].bounded == 0) continue;
      bounded_.push_back(TensorId(t));
      bound_.extents.push_back(graph_.tensors[t].shape);
    }
  }

  /// The place of a bounded tensor's extents; null for any other. Places stay where they are, also when the vector moves.
  Shape* extents_of(TensorId id) noexcept {
    const auto found = std::lower_bound(bounded_.begin(), bounded_.end(), id);
    return found == bounded_.end() || *found != id ? nullptr : &bound_.extents[static_cast<std::size_t>(found - bounded_.begin())];
  }

  /// Tells each step the weights of the next step that has enough to wait for.
  void announce_weights() noexcept {
    constexpr std::size_t kWorthFetching = 32 * 1024;
    std::span<const std::byte> next;
    for (auto step = bound_.steps.rbegin(); step != bound_.steps.rend(); ++step) {
      if (step->prologue_only) continue;
      step->call.next_weights = next;
      const std::span<const std::byte> own = weights_of(step->call);
      if (own.size() >= kWorthFetching || step->call.derived.data != nullptr) next = own;
    }
  }

  static std::span<const std::byte> weights_of(const kernels::KernelCall& call) noexcept {
    if (call.derived.data != nullptr || call.weights.empty() || call.weights[0].data == nullptr) return {};
    const kernels::WeightOperand& weight = call.weights[0];
    return {weight.data, static_cast<std::size_t>(weight.panels.size()) * weight.panel_bytes.count()};
  }

  static Status refuse(const model::Node& node, const char* reason) { return fail(ErrorCode::kInvalidPlan, node.name, reason); }

  Status bind_step(const plan::Step& step) {
    const model::Node& node = graph_.node(step.node);
    const KernelDescriptor* kernel = context_.find_kernel(step.kernel);
    SLUICE_RETURN_IF_ERROR(check_kernel(kernel, step, node));
    SLUICE_ASSIGN_OR_RETURN(const Resolved resolved, resolve(*kernel, step, node));
    BoundStep bound;
    bound.run = step.prepare ? resolved.prepare : resolved.run;
    bound.prologue_only = step.prepare;
    bound.alone = step.alone;
    bound.call.rows = step.rows;
    bound.call.channels = step.channels;
    bound.call.pool = &pool_;
    if (kHasSums && plan::adds_part(step)) {
      auto* const sums = reinterpret_cast<float*>(arena_ + plan_.buffer(step.sums).offset.count());
      bound.call.part = &bound_.parts.emplace_back(kernels::SumsPart{step.reduction, sums});
    }
    SLUICE_ASSIGN_OR_RETURN(bound.call.inputs, bind_tensors(step, node, node.inputs, true));
    SLUICE_ASSIGN_OR_RETURN(bound.call.outputs, bind_tensors(step, node, node.outputs, false));
    SLUICE_ASSIGN_OR_RETURN(bound.call.weights, bind_weights(step, node));
    SLUICE_ASSIGN_OR_RETURN(bound.call.derived, bind_derived(*kernel, step, node));
    if (!step.prepare) {
      SLUICE_RETURN_IF_ERROR(check_views(*kernel, node, bound.call));
      SLUICE_ASSIGN_OR_RETURN(bound.call.workspace, bind_workspace(*kernel, step, node));
      SLUICE_ASSIGN_OR_RETURN(const std::span<std::byte> window, bind_window(*kernel, step, node));
      if (!window.empty()) {
        bound_.windows.push_back(window);
        bound.window = static_cast<std::uint32_t>(bound_.windows.size()) & kMostWindows;
      }
    }
    if (model::kRunsSubgraphs && node.subgraph_count > 0) SLUICE_RETURN_IF_ERROR(bind_bodies(step, node, bound));
    bound_.steps.push_back(bound);
    return {};
  }

  /// The plans of the subgraphs that the step runs, in its workspace.
  Status bind_bodies(const plan::Step& step, const model::Node& node, BoundStep& bound) {
    if (step.prepare || !step.workspace.valid() || plan_.subplans.size() != graph_.subgraphs.size())
      return refuse(node, "the plan has no room for the subgraphs that it runs");
    auto bodies = std::make_shared<BodyStep>(pool_);
    const std::uint64_t workspace = plan_.buffer(step.workspace).offset.count();
    std::map<WeightId, const std::byte*> held;
    for (const plan::WeightOperand& operand : std::span(plan_.operands).subspan(step.first_operand, step.operand_count))
      held.try_emplace(operand.weight, operand.load.valid() ? weight_address(operand) : lies_outside(operand.weight));
    for (std::uint32_t i = 0; i < node.subgraph_count; ++i) {
      const plan::Plan& sub = plan_.subplans[node.first_subgraph + i];
      model::Body body = model::body_of(graph_, node, node.first_subgraph + i);
      BoundOutside outside{std::vector<std::size_t>(body.graph.tensors.size(), BoundOutside::kInside),
                           std::vector<const std::byte*>(body.weights.size(), nullptr)};
      for (std::size_t c = 0; c < body.count_captures(); ++c) outside.tensors[body.captured(c).index()] = body.captures[c];
      for (std::size_t w = 0; w < body.weights.size(); ++w)
        if (const auto found = held.find(body.weights[w]); found != held.end()) outside.weights[w] = found->second;
      std::byte* const arena = arena_ + align_up(workspace, sub.loads.empty() ? 64 : sub.block);
      SLUICE_RETURN_IF_ERROR(bodies->add(std::move(body), sub, arena, context_.find_kernel, outside));
    }
    bound.call.bodies = bodies.get();
    bound.runs_bodies = true;
    bound_.bodies.push_back(std::move(bodies));
    bound.window = static_cast<std::uint32_t>(bound_.bodies.size()) & kMostWindows;
    return {};
  }

  /// Where a weight lies whole while the step runs; null where it does not.
  const std::byte* held_address(const plan::Step& step, WeightId id) const noexcept {
    const plan::WeightOperand* operand = operand_of(step, id);
    if (operand == nullptr) return nullptr;
    return operand->load.valid() ? weight_address(*operand) : lies_outside(id);
  }

  /// Where the step around this subgraph holds a weight; null where it does not.
  const std::byte* lies_outside(WeightId id) const noexcept {
    return context_.outside == nullptr ? nullptr : context_.outside->weights[id.index()];
  }
  /// Of a tensor that this subgraph captures: which input of the step around it is; else kInside.
  std::size_t captured_input(TensorId id) const noexcept {
    return context_.outside == nullptr ? BoundOutside::kInside : context_.outside->tensors[id.index()];
  }

  /// A node as its steps run it. The kernel is that of the node's last steps: a plan has no reason for another.
  struct Resolved {
    KernelId kernel = KernelId::kNone;
    kernels::KernelEntry run = nullptr, prepare = nullptr;
    std::size_t parameters = 0;  // where they begin
  };
  Result<Resolved> resolve(const KernelDescriptor& kernel, const plan::Step& step, const model::Node& node) {
    Resolved& resolved = resolved_[step.node.index()];
    if (resolved.kernel != step.kernel) {
      const kernels::ResolvedCall call = kernel.resolve(graph_, node, active_isa());
      SLUICE_DCHECK(call.parameters.size() == kernel.parameter_bytes, "a descriptor says how large its parameters are");
      resolved = {step.kernel, call.run, call.prepare, keep_parameters(call.parameters)};
    }
    if (step.prepare && resolved.prepare == nullptr) return fail(ErrorCode::kInvalidPlan, node.name, "the kernel has no derived weights");
    parameters_of_step_.push_back(resolved.parameters);
    return resolved;
  }

  /// Nodes of repeated blocks have the same.
  std::size_t keep_parameters(const operators::Parameters& parameters) {
    const std::span<const std::byte> bytes(parameters.data(), parameters.size());
    for (const auto& [begin, size] : kept_parameters_)
      if (size == bytes.size() && std::equal(bytes.begin(), bytes.end(), bound_.parameters.begin() + static_cast<std::ptrdiff_t>(begin)))
        return begin;
    const std::size_t begin = bound_.parameters.size();
    kept_parameters_.emplace_back(begin, bytes.size());
    bound_.parameters.insert(bound_.parameters.end(), bytes.begin(), bytes.end());
    bound_.parameters.resize((bound_.parameters.size() + kWord - 1) / kWord * kWord);
    return begin;
  }

  /// Once all are known: the table moves while it grows.
  void place_parameters() {
    bound_.parameters.shrink_to_fit();
    for (std::size_t i = 0; i < bound_.steps.size(); ++i)
      bound_.steps[i].call.parameter_data = bound_.parameters.data() + parameters_of_step_[i];
  }

  bool passes(TensorId id) const {
    return plan::kHasPassing && std::any_of(plan_.passing.begin(), plan_.passing.end(),
                                            [&](const plan::PassingTensor& passing) { return passing.tensor == id; });
  }

  /// The tensor whose blocks are an output's: its own, or, where a reshape only shows what passes, that one's.
  TensorId passes_as(const model::Port& port) const {
    for (const model::Node& node : graph_.nodes)
      if (node.op == model::OpKind::kReshape && node.outputs[0] == port.tensor && passes(port.tensor) && passes(node.inputs[0]))
        return node.inputs[0];
    return port.tensor;
  }

  void bind_blocks() {
    std::vector<TensorId> of_port;
    if (!plan_.blocks.empty())
      for (const model::Port& port : graph_.outputs) of_port.push_back(passes_as(port));
    for (const plan::PassingBlock& block : plan_.blocks) {
      const model::Tensor& tensor = graph_.tensor(block.tensor);
      const RowView view = block_view(block);
      BoundBlock bound{view, block_data(block), static_cast<std::size_t>(plan::bytes_of(block, tensor).count()), {}, 0};
      const auto passing =
          std::find_if(plan_.passing.begin(), plan_.passing.end(), [&](const plan::PassingTensor& p) { return p.tensor == block.tensor; });
      bound.file_offset = passing->file_offset + Bytes(static_cast<std::uint64_t>(block.rows.begin * view.row_pitch));
      for (std::size_t port = 0; port < of_port.size(); ++port)
        if (of_port[port] == block.tensor) bound.port = static_cast<std::uint32_t>(port);
      bound_.blocks.push_back(bound);
    }
  }

  std::byte* block_data(const plan::PassingBlock& block) const noexcept {
    return arena_ + (plan_.buffer(plan_.steps[block.step].workspace).offset + block.offset).count();
  }

  /// Of the whole tensor, of which only the block is there: rows and channels count from the tensor's first.
  RowView block_view(const plan::PassingBlock& block) const noexcept {
    const model::Tensor& tensor = graph_.tensor(block.tensor);
    const RowExtents extents = row_extents(tensor.shape);
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
    RowView view{nullptr, extents.rows, extents.pixels, extents.channels, 0, block.channels.size() * size, 0, tensor.dtype};
    view.row_pitch = extents.pixels * view.pixel_pitch;
    view.data = block_data(block) - block.rows.begin * view.row_pitch - block.channels.begin * size;
    return view;
  }

  /// Where a kernel's own part of its step's workspace ends.
  Bytes workspace_end(const plan::Step& step) const noexcept {
    if (!step.workspace.valid()) return {};
    Bytes end = plan_.buffer(step.workspace).size;
    if constexpr (!plan::kHasPassing) return end;
    const auto before = [](const plan::PassingBlock& block, std::size_t at) { return block.step < at; };
    const auto index = static_cast<std::size_t>(&step - plan_.steps.data());
    for (auto block = std::lower_bound(plan_.blocks.begin(), plan_.blocks.end(), index, before);
         block != plan_.blocks.end() && block->step == index; ++block)
      end = std::min(end, block->offset);
    return end;
  }

  Status check_kernel(const KernelDescriptor* kernel, const plan::Step& step, const model::Node& node) const {
    if (kernel == nullptr && !kLooksForKernels) return fail(ErrorCode::kUnsupported, node.name, kernels::kLeftOut);
    if (kernel == nullptr) return refuse(node, "this build has no kernel of the number that the plan names");
    if (kernel->resolve == nullptr)
      return fail(ErrorCode::kUnsupported, std::string(node.name) + " (" + std::string(kernel->name) + ")", kernels::kLeftOut);
    if (kernel->op != node.op || kernel->numeric != node.numeric || !kernel->supports(graph_, node)) {
      return refuse(node, "the kernel that the plan names does not run this node");
    }
    if (node.outputs.empty()) return refuse(node, "a node without an output cannot be a step");
    if (plan::adds_part(step) && !kernel->cuts_sums) return refuse(node, "the kernel does not take a part of its sums");
    if (step.prepare || step.derived.buffer.valid()) {
      if (kernel->derived_panel_bytes == nullptr || node.weights.empty()) {
        return refuse(node, "the kernel has no derived weights");
      }
    }
    if (step.prepare && !step.derived.buffer.valid()) return refuse(node, "a prepare step writes no derived panels");
    const RowExtents whole = row_extents(graph_.tensor(node.outputs.front()).shape);
    if (!kernel->slices_rows && !step.prepare && step.rows != RowRange{0, whole.rows})
      return refuse(node, "the kernel does not run on a part of the rows");
    if (!kernel->slices_channels && step.channels != ChannelRange{0, model::step_channels(graph_, node)}) {
      return refuse(node, "the kernel does not run on a part of the channels");
    }
    return {};
  }

  Result<std::span<const Operand>> bind_tensors(const plan::Step& step, const model::Node& node, const std::vector<TensorId>& ids,
                                                bool inputs) {
    std::uint32_t* const place = places_.find(step, ids, inputs);
    if (place != nullptr && *place != OperandPlaces::kNone) return std::span<const Operand>(bound_.operands).subspan(*place, ids.size());
    const std::size_t first = bound_.operands.size();
    if (place != nullptr) *place = static_cast<std::uint32_t>(first);
    for (TensorId id : ids) {
      const model::Tensor& tensor = graph_.tensor(id);
      RowView view;
      if (step.prepare) {  // reads no input and writes no output: they have shapes, and no place yet
        view = dense_view(nullptr, tensor.shape, tensor.dtype);
      } else if (tensor.weight.valid()) {
        const plan::WeightOperand* operand = operand_of(step, tensor.weight);
        const std::byte* const held = operand == nullptr ? nullptr : held_address(step, tensor.weight);
        if (held == nullptr) return refuse_operand(node);
        view = dense_view(const_cast<std::byte*>(held), tensor.shape, tensor.dtype);  // kernels write to outputs alone
      } else if (const std::size_t input = captured_input(id); input != BoundOutside::kInside) {
        view = dense_view(nullptr, tensor.shape, tensor.dtype);
        bound_.captured.push_back({static_cast<std::uint32_t>(bound_.operands.size()), static_cast<std::uint32_t>(input)});
      } else {
        const plan::PassingBlock* block =
            plan::kHasPassing ? plan::block_of(plan_, static_cast<std::size_t>(&step - plan_.steps.data()), id) : nullptr;
        view = block != nullptr ? block_view(*block) : activation_view(id);
        if (view.data == nullptr) return fail(ErrorCode::kInvalidPlan, node.name, "a tensor of the step has no place");
      }
      bound_.operands.push_back({view, tensor.shape, extents_of(id)});
    }
    return std::span<const Operand>(bound_.operands).subspan(first);
  }

  static tl::unexpected<Error> refuse_operand(const model::Node& node) {
    return fail(ErrorCode::kInvalidPlan, node.name, "the plan brings no load for a weight of the step");
  }

  Result<std::span<const kernels::WeightOperand>> bind_weights(const plan::Step& step, const model::Node& node) {
    const std::size_t first = bound_.weights.size();
    for (std::size_t i = 0; i < node.weights.size(); ++i) {
      const WeightId id = node.weights[i];
      const model::Weight& weight = graph_.weight(id);
      const plan::WeightOperand* operand = operand_of(step, id);
      const bool elsewhere = i == 0 ? step.derived.buffer.valid() && !step.prepare : step.prepare;
      if (operand != nullptr && operand->load.valid()) {
        bound_.weights.push_back({weight_address(*operand), operand->panels, weight.panel_bytes});
      } else if (operand != nullptr && lies_outside(id) != nullptr) {
        const Bytes at = model::panel_range(weight, operand->panels).offset - weight.offset;
        bound_.weights.push_back({lies_outside(id) + at.count(), operand->panels, weight.panel_bytes});
      } else if (operand != nullptr || elsewhere) {
        bound_.weights.push_back({nullptr, {0, weight.panels}, weight.panel_bytes});
      } else {
        return refuse_operand(node);
      }
    }
    return std::span<const kernels::WeightOperand>(bound_.weights).subspan(first);
  }

  Result<kernels::DerivedOperand> bind_derived(const KernelDescriptor& kernel, const plan::Step& step, const model::Node& node) const {
    const plan::DerivedPanels& derived = step.derived;
    if (!plan::is_built(plan::Need::kDerived) || !derived.buffer.valid()) return kernels::DerivedOperand{};
    const model::Weight& weight = graph_.weight(node.weights.front());
    const PanelRange used = model::panels_of_channels(step.channels, model::outputs_per_group(node));
    if (derived.panels.begin < 0 || derived.panels.end > weight.panels || used.begin < derived.panels.begin ||
        used.end > derived.panels.end) {
      return fail(ErrorCode::kInvalidPlan, node.name, "the derived panels are not those of the step's channels");
    }
    const plan::Buffer& buffer = plan_.buffer(derived.buffer);
    const auto panels = static_cast<std::uint64_t>(derived.panels.end - derived.panels.begin);
    const auto needed = checked_mul(kernels::derived_panel_bytes(kernel, graph_, node).count(), panels);
    if (buffer.kind != plan::BufferKind::kDerived || !needed || *needed > buffer.size.count()) {
      return fail(make_error(ErrorCode::kInvalidPlan, node.name, "the buffer of the derived panels is too small", needed.value_or(0),
                             buffer.size.count()));
    }
    return kernels::DerivedOperand{arena_ + buffer.offset.count(), derived.panels};
  }

  // K4: a tensor may be read and written at the same bytes only where the kernel says so; K-contract on pitches likewise.
  Status check_views(const KernelDescriptor& kernel, const model::Node& node, const kernels::KernelCall& call) const {
    const std::uint32_t in_place = kernel.in_place_inputs == nullptr ? 0 : kernel.in_place_inputs(graph_, node);
    const RowView& output = call.outputs.front().view;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const RowView& input = call.inputs[i].view;
      // Of what passes the view begins before the block of rows that is there, at an address that may be anything.
      if (i < node.inputs.size() && (passes(node.inputs[i]) || passes(node.outputs.front()))) continue;
      if (input.data == output.data && (i >= 32 || (in_place >> i & 1u) == 0)) {
        return refuse(node, "the kernel does not run in place on this input");
      }
    }
    if (kernel.takes_pitches) return {};
    const auto dense = [](const Operand& operand) { return operand.view.dense(); };
    if (!std::all_of(call.inputs.begin(), call.inputs.end(), dense) || !std::all_of(call.outputs.begin(), call.outputs.end(), dense)) {
      return refuse(node, "the kernel wants dense tensors");
    }
    return {};
  }

  kernels::StepExtent extent_of(const plan::Step& step) const noexcept {
    return {step.rows, step.channels, pool_.thread_count(), step.derived.buffer.valid()};
  }

  Result<std::byte*> bind_workspace(const KernelDescriptor& kernel, const plan::Step& step, const model::Node& node) const {
    const Bytes needed = kernels::workspace_bytes(kernel, graph_, node, extent_of(step));
    const Bytes given = workspace_end(step);
    if (needed > given) {
      return fail(make_error(ErrorCode::kInvalidPlan, node.name, "the step's workspace is too small", needed.count(), given.count()));
    }
    return step.workspace.valid() ? arena_ + plan_.buffer(step.workspace).offset.count() : nullptr;
  }

  /// What the workspace has beyond the kernel's own, for a step that reads weights by itself.
  Result<std::span<std::byte>> bind_window(const KernelDescriptor& kernel, const plan::Step& step, const model::Node& node) const {
    if constexpr (!plan::is_built(plan::Need::kReads)) return std::span<std::byte>();
    std::uint64_t least = 0;
    for (std::uint32_t i = 0; i < step.operand_count; ++i) {
      const plan::WeightOperand& operand = plan_.operands[step.first_operand + i];
      if (!operand.load.valid() && lies_outside(operand.weight) == nullptr)
        least = std::max(least, model::least_piece(graph_, graph_.weight(operand.weight)).count());
    }
    if (least == 0 || node.subgraph_count > 0) return std::span<std::byte>();  // what subgraphs read, the loads of their plans bring
    if (kernel.weight_turns == nullptr || !step.workspace.valid()) return refuse_operand(node);
    const plan::Buffer& buffer = plan_.buffer(step.workspace);
    const std::uint64_t begin =
        align_up(buffer.offset.count() + kernels::workspace_bytes(kernel, graph_, node, extent_of(step)).count(), plan_.block);
    const std::uint64_t end = (buffer.offset + workspace_end(step)).count();
    const std::uint64_t tail = kernels::kReadTail.count();
    if (end < begin + tail || end - begin - tail < least)
      return fail(make_error(ErrorCode::kInvalidPlan, node.name, "the step's workspace has no room for a weight that it reads", least,
                             buffer.size.count()));
    return std::span(arena_ + begin, end - begin - tail);
  }

  const plan::WeightOperand* operand_of(const plan::Step& step, WeightId weight) const noexcept {
    for (std::uint32_t i = 0; i < step.operand_count; ++i) {
      const plan::WeightOperand& operand = plan_.operands[step.first_operand + i];
      if (operand.weight == weight) return &operand;
    }
    return nullptr;
  }

  std::byte* weight_address(const plan::WeightOperand& operand) const noexcept {
    const model::Weight& weight = graph_.weight(operand.weight);
    return address_in(plan_.loads[operand.load.index()], weight, model::panel_range(weight, operand.panels).offset - weight.offset);
  }

  /// Where byte `at` of a weight, raw, lies that a load brings.
  std::byte* address_in(const plan::Load& load, const model::Weight& weight, Bytes at) const noexcept {
    std::byte* const region = arena_ + plan_.buffer(load.target).offset.count();
    if (!load.expands()) return region + (file_offset_of(graph_, weight, at) - load.file.offset).count();
    // Its stretches follow each other without gap: those of the load before the weight's, less those of the weight before the load's.
    std::uint64_t place = at.count();
    for (std::uint32_t s = load.first_stretch; s < weight.first_stretch; ++s) place += graph_.stretches[s].raw_size.count();
    for (std::uint32_t s = weight.first_stretch; s < load.first_stretch; ++s) place -= graph_.stretches[s].raw_size.count();
    return region + place;
  }

  RowView activation_view(TensorId id) const noexcept {
    const plan::TensorPlacement& place = plan_.tensors[id.index()];
    const model::Tensor& tensor = graph_.tensor(id);
    const RowExtents extents = row_extents(tensor.shape);
    RowView view{nullptr,         extents.rows,      extents.pixels,  extents.channels,
                 place.row_pitch, place.pixel_pitch, place.ring_rows, tensor.dtype};
    if (place.buffer.valid()) view.data = arena_ + (plan_.buffer(place.buffer).offset + place.offset).count();
    return view;
  }

  // A model may hand out a constant: then the output is the weight itself, where a resident load keeps it.
  Result<RowView> output_view(const model::Port& port) const {
    const model::Tensor& tensor = graph_.tensor(port.tensor);
    if (!tensor.weight.valid()) {
      const RowView view = activation_view(port.tensor);
      if (!passes(port.tensor) && view.data == nullptr && tensor.shape.element_count() > 0)
        return fail(ErrorCode::kInvalidPlan, port.name, "an output has no place");
      return view;
    }
    const model::Weight& weight = graph_.weight(tensor.weight);
    for (const plan::Load& load : plan_.loads) {
      const bool whole = load.first_stretch <= weight.first_stretch &&
                         weight.first_stretch + weight.stretch_count <= load.first_stretch + load.stretch_count;
      if (load.resident && whole) return dense_view(address_in(load, weight, Bytes()), tensor.shape, tensor.dtype);
    }
    return fail(ErrorCode::kInvalidPlan, port.name, "the plan keeps no load for an output that is a constant");
  }

  const BindContext& context_;
  const model::Graph& graph_;
  const plan::Plan& plan_;
  std::byte* const arena_;
  ThreadPool& pool_;
  BoundPlan bound_;
  std::vector<TensorId> bounded_;                            // by place in bound_.extents
  static constexpr std::size_t kWord = 8;                    // parameters are aligned to it
  static constexpr std::uint32_t kMostWindows = 0x1fffffff;  // fewer than steps, which a file has fewer of
  OperandPlaces places_;
  std::vector<Resolved> resolved_;                                    // by node
  std::vector<std::pair<std::size_t, std::size_t>> kept_parameters_;  // begin and size of those in the table
  std::vector<std::size_t> parameters_of_step_;                       // where they begin
};

}  // namespace

OperandCount count_operands(const model::Graph& graph, const plan::Plan& plan) {
  OperandCount count;
  const std::vector<bool> by_step = lie_by_step(graph, plan);
  const plan::Step* before = nullptr;
  for (const plan::Step& step : plan.steps) {
    const model::Node& node = graph.node(step.node);
    count.weights += node.weights.size();
    if (!shares_tensors(graph, by_step, before, step)) count.tensors += node.inputs.size() + node.outputs.size();
    before = &step;
  }
  return count;
}

Result<BoundPlan> bind(const BindContext& context) { return Binder(context).bind(); }

}  // namespace sluice::executor
