#include "sluice/emit/network.h"

#include <algorithm>
#include <string>

#include "sluice/operators/definition.h"
#include "src/emit/kernels.h"

namespace sluice::emit {
namespace {

using model::Graph;
using model::Node;
using model::OpKind;
using operators::AxisKind;
using operators::AxisRelation;

/// What the emitted tables hold of an extent, a stage's number and what a window reads, and of a place in the arena.
constexpr std::int64_t kMostExtent = 32767;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;

bool reads_all(const AxisRelation& r) { return (r.kind != AxisKind::kSame && r.kind != AxisKind::kWindow) || r.stride < 0; }

Along along_of(const AxisRelation& r, std::int64_t extent) {
  if (reads_all(r)) return {.stride = 0, .ahead = extent - 1, .extent = extent};
  return {.stride = r.stride,
          .ahead = (r.kernel - 1) * r.dilation - r.pad_before,
          .behind = r.pad_before,
          .divisor = r.divisor,
          .extent = extent};
}

bool same_position(const Along& along, std::int64_t out_extent) {
  return along.stride == 1 && along.ahead == 0 && along.behind == 0 && along.divisor == 1 && along.extent == out_extent;
}

/// Images of one row each, as many in as out: their rows are those of one image, over which nothing reaches from row to row.
bool images_are_rows(const Shape& in, const Shape& out) {
  return in.rank() == 4 && out.rank() == 4 && in[0] == out[0] && in[1] == 1 && out[1] == 1;
}

/// Converts the relations of the operator to what a pixel reads.
std::optional<Reach> reach_of(const Graph& graph, const Node& node, std::size_t input) {
  const Shape& in = graph.tensor(node.inputs[input]).shape;
  const Shape& out = graph.tensor(node.outputs[0]).shape;
  const RowExtents view = row_extents(in), made = row_extents(out);
  const operators::AxisRelations relations = operators::Relations(graph, node).input(input);
  if (in.rank() == 4 && out.rank() == 4 && in[0] == 1 && out[0] == 1 && (reads_all(relations[1]) || relations[1].output_axis == 1) &&
      (reads_all(relations[2]) || relations[2].output_axis == 2)) {
    const Reach reach{along_of(relations[1], view.rows), along_of(relations[2], view.pixels)};
    if (same_position(reach.row, made.rows) && same_position(reach.pixel, made.pixels)) return std::nullopt;
    return reach;
  }
  if (images_are_rows(in, out)) {
    const Reach reach{{.extent = view.rows}, along_of(relations[2], view.pixels)};
    if (same_position(reach.pixel, made.pixels)) return std::nullopt;
    return reach;
  }
  bool same = in.rank() == out.rank();
  for (int axis = 0; same && axis + 1 < in.rank(); ++axis)
    same = relations[axis].kind == AxisKind::kSame && relations[axis].output_axis == axis && in[axis] == out[axis];
  if (same) return std::nullopt;
  return Reach{{.stride = 0, .ahead = view.rows - 1, .extent = view.rows}, {.stride = 0, .ahead = view.pixels - 1, .extent = view.pixels}};
}

/// Does the kernel go from pixel to pixel by a step of its own? A product does, down the columns of its second input, and a transposition
/// that makes channels of another axis.
bool steps_over_pixels(const Node& node, std::size_t input, int rank) {
  if (node.op == OpKind::kMatMul) return input == 1;
  return node.op == OpKind::kTranspose && node.as<model::TransposeAttributes>().perm[static_cast<std::size_t>(rank - 1)] != rank - 1;
}

class Maker {
 public:
  Maker(const Graph& graph, const NetworkOptions& options)
      : graph_(graph), options_(options), storage_of_(graph.tensors.size(), kNoStorage) {}

  Result<Network> make() {
    if (!graph_.subgraphs.empty()) return fail(ErrorCode::kUnsupported, graph_.name, "branches and loops (If, Loop, Scan) are not emitted");
    for (const model::Tensor& tensor : graph_.tensors)
      if (tensor.bounded != 0)
        return fail(ErrorCode::kUnsupported, tensor.name, "its extents are known at run only; emitted code wants them all known");
    SLUICE_RETURN_IF_ERROR(add_inputs());
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) SLUICE_RETURN_IF_ERROR(add_node(NodeId(i)));
    for (const model::Port& port : graph_.outputs) SLUICE_RETURN_IF_ERROR(add_output(port));
    const auto computes = [](const Stage& stage) { return !reads_rows(stage.kernel); };
    if (std::none_of(network_.stages.begin(), network_.stages.end(), computes))
      return fail(ErrorCode::kUnsupported, graph_.outputs[0].name, "the network gives its input as it comes: there is nothing to emit");
    see_readers();
    SLUICE_RETURN_IF_ERROR(check_sizes());
    return std::move(network_);
  }

 private:
  static constexpr std::size_t kNoStorage = static_cast<std::size_t>(-1);

  std::size_t add_storage(TensorId id) {
    const model::Tensor& tensor = graph_.tensor(id);
    network_.storages.push_back({.name = tensor.name, .dtype = tensor.dtype, .elements = tensor.shape.element_count()});
    return network_.storages.size() - 1;
  }

  /// The tensor as its first reader that does not only reshape it sees it; the node that makes it the bytes of the network, if it alone
  /// reads it.
  TensorId seen_tensor(TensorId id, std::optional<NodeId>& begins) const {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.inputs.empty() || node.inputs[0] != id) continue;
      if (node.op == OpKind::kReshape) return seen_tensor(node.outputs[0], begins);
      const bool made_bytes = node.op == OpKind::kQuantize || (is_sign_table(NodeId(i)) && is_signed(id));
      if (made_bytes && readers_of(id) == 1 && !begins) {
        begins = NodeId(i);
        return seen_tensor(node.outputs[0], begins);
      }
      break;
    }
    return id;
  }
  bool is_sign_table(NodeId id) const { return options_.sign_tables.contains(id); }
  bool is_signed(TensorId id) const { return graph_.tensor(id).dtype == DType::kI8; }
  std::size_t readers_of(TensorId id) const {
    std::size_t count = 0;
    for (const Node& node : graph_.nodes) count += static_cast<std::size_t>(std::count(node.inputs.begin(), node.inputs.end(), id));
    for (const model::Port& port : graph_.outputs) count += port.tensor == id ? 1 : 0;
    return count;
  }

  Status add_inputs() {
    if (graph_.inputs.size() != 1 && options_.input == InputForm::kStreamed)
      return fail(ErrorCode::kInvalidArgument, "--input streamed", "is for networks of one input; give --input held");
    for (const model::Port& port : graph_.inputs) {
      std::optional<NodeId> begins;
      const TensorId seen = seen_tensor(port.tensor, begins);
      const bool flips = begins && is_sign_table(*begins);
      TensorId tensor = port.tensor;
      if (begins && (flips || !options_.float_ports)) {
        tensor = graph_.node(*begins).outputs[0];
        skipped_.insert(*begins);
      }
      const std::size_t storage = add_storage(tensor);
      storage_of_[port.tensor.index()] = storage_of_[tensor.index()] = storage;
      const RowExtents view = row_extents(graph_.tensor(seen).shape);
      network_.inputs.push_back({port.name, storage, view, tensor, flips});
      if (options_.input == InputForm::kHeld) continue;
      network_.storages[storage].maker = network_.stages.size();
      network_.stages.push_back({.kernel = flips ? Kernel::kReadSignedRow : Kernel::kReadRow,
                                 .storage = storage,
                                 .out = view,
                                 .walked = view,
                                 .whole_rows = true});
    }
    return {};
  }

  Status add_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (skipped_.contains(id)) return {};
    if (gives_signs(id)) {
      storage_of_[node.outputs[0].index()] = storage_of_[node.inputs[0].index()];
      flipped_.insert(node.outputs[0]);
      return {};
    }
    if (node.op == OpKind::kReshape) {
      storage_of_[node.outputs[0].index()] = storage_of_[node.inputs[0].index()];
      if (storage_of_[node.inputs[0].index()] == kNoStorage) return fail(refusal(node, "a constant is reshaped, which is not emitted"));
      return {};
    }
    SLUICE_ASSIGN_OR_RETURN(Stage stage, make_stage(graph_, id));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::size_t storage = storage_of_[node.inputs[i].index()];
      if (storage == kNoStorage) continue;  // a constant: kernels.h has seen to it
      stage.inputs.push_back(input_of(node, i, storage, stage));
    }
    stage.storage = storage_of_[node.outputs[0].index()] = add_storage(node.outputs[0]);
    network_.storages[stage.storage].maker = network_.stages.size();
    network_.macs += stage.macs = operators::macs_of(graph_, node);
    network_.stages.push_back(std::move(stage));
    return {};
  }

  /// Unsigned bytes of the run become signed ones of an output, and the storage is no other output: it is flipped when the run is over.
  bool gives_signs(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!is_sign_table(id) || !is_signed(node.outputs[0])) return false;
    const std::size_t storage = storage_of_[node.inputs[0].index()];
    if (storage == kNoStorage || !network_.storages[storage].maker) return false;
    const auto is_it = [&](const model::Port& port) { return port.tensor == node.outputs[0]; };
    const auto shares = [&](const model::Port& port) { return storage_of_[port.tensor.index()] == storage; };
    const auto& ports = graph_.outputs;
    return readers_of(node.outputs[0]) == 1 && std::any_of(ports.begin(), ports.end(), is_it) &&
           std::none_of(ports.begin(), ports.end(), shares);
  }

  Status add_output(const model::Port& port) {
    const std::size_t storage = storage_of_[port.tensor.index()];
    if (storage == kNoStorage) return fail(ErrorCode::kUnsupported, port.name, "an output that is a constant is not emitted");
    const bool flips = flipped_.contains(port.tensor);
    for (const NetworkPort& other : network_.outputs)
      if (other.storage == storage && (flips || other.flips))
        return fail(ErrorCode::kUnsupported, port.name, "has the bytes of another output, which are signed in one of the two");
    network_.storages[storage].is_output = true;
    TensorId tensor = port.tensor;
    for (const NodeId id : options_.sign_tables)  // which has the scale
      if (flips && graph_.node(id).outputs[0] == tensor) tensor = graph_.node(id).inputs[0];
    network_.outputs.push_back({port.name, storage, row_extents(graph_.tensor(port.tensor).shape), tensor, flips});
    return {};
  }

  StageInput input_of(const Node& node, std::size_t i, std::size_t storage, const Stage& stage) const {
    const model::Tensor &in = graph_.tensor(node.inputs[i]), &out = graph_.tensor(node.outputs[0]);
    StageInput input{.storage = storage, .view = row_extents(in.shape)};
    if (stage.folds) return input;  // a fold reads the pixels one after the other
    input.reach = reach_of(graph_, node, i);
    input.rows_in_one = steps_over_pixels(node, i, in.shape.rank());
    const bool is_residual = node.epilogue.has_residual && i + 1 == node.inputs.size();
    const bool one_by_one = is_residual || operators::definition_of(node.op).elementwise;
    input.in_place = one_by_one && !input.reach && in.shape == out.shape && in.dtype == out.dtype;
    return input;
  }

  void see_readers() {
    for (std::size_t i = 0; i < network_.stages.size(); ++i)
      for (const StageInput& input : network_.stages[i].inputs) {
        std::vector<std::size_t>& readers = network_.storages[input.storage].readers;
        if (readers.empty() || readers.back() != i) readers.push_back(i);
      }
  }

  static bool fits(const Along& along) {
    return std::max({along.stride, along.ahead, -along.ahead, along.divisor, along.extent}) <= kMostExtent;
  }

  Status check_sizes() const {
    if (network_.stages.size() > static_cast<std::size_t>(kMostExtent))
      return fail(ErrorCode::kUnsupported, graph_.name, "a network of more than 32,767 stages is not emitted");
    for (const Storage& storage : network_.storages)
      if (storage.bytes() > kMostBytes) return fail(ErrorCode::kUnsupported, storage.name, "a tensor of more than 2 GiB is not emitted");
    for (const Stage& stage : network_.stages) {
      for (const StageInput& input : stage.inputs)
        if (std::max({input.view.rows, input.view.pixels, input.view.channels}) > kMostExtent)
          return fail(ErrorCode::kUnsupported, network_.storages[input.storage].name, "an extent beyond 32,767 is not emitted");
      for (const StageInput& input : stage.inputs)
        if (input.reach && !(fits(input.reach->row) && fits(input.reach->pixel)))
          return fail(ErrorCode::kUnsupported, network_.storages[stage.storage].name, "a window beyond 32,767 pixels is not emitted");
      if (std::max({stage.walked.rows, stage.walked.pixels, stage.out.rows, stage.out.pixels, stage.out.channels}) > kMostExtent)
        return fail(ErrorCode::kUnsupported, network_.storages[stage.storage].name, "an extent beyond 32,767 is not emitted");
    }
    return {};
  }

  const Graph& graph_;
  const NetworkOptions& options_;
  std::vector<std::size_t> storage_of_;  // by tensor
  std::set<NodeId> skipped_;             // the caller gives what they would make
  std::set<TensorId> flipped_;           // outputs
  Network network_;
};

}  // namespace

Result<Network> make_network(const model::Graph& graph, const NetworkOptions& options) { return Maker(graph, options).make(); }

}  // namespace sluice::emit
