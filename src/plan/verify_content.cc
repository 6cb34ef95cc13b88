// (I1) (I3) (I6): the contents of the buffers. Every byte that a step reads must hold the value that its tensor's maker wrote.
//
// The maker of a tensor's bytes is a step's node, or the caller for a graph input: such tensors are called *made*. The others are views:
// outputs of Reshape, Concat and Slice nodes that have no step, whose bytes must be those of their inputs. A made tensor's bytes are needed
// until the last read of it or of a view that holds it; until then nothing else may be written there, save by a node that replaces element
// for element what nobody else still needs, or that replaces rows of which others need none any more while they make and read later ones.
//
// A node in bands is read before it is whole. Its steps then follow the rows, all channels of a band before the next, and a reader takes
// rows of finished bands only. A ring holds the newest rows: a reader takes none that are older, and none is read that a band has replaced.
// Tensors on the same bytes may take turns, row by row: whenever a row matters, no other does that has a byte of it, but for that of the
// concatenation in whose ring a part is made at its place.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "sluice/core/sort.h"
#include "src/core/build_list.h"
#include "src/plan/row_lives.h"
#include "src/plan/span_index.h"
#include "src/plan/step_records.h"
#include "src/plan/verify_parts.h"
#include "src/plan/verify_rows.h"
#include "src/plan/verify_views.h"

namespace sluice::plan {
namespace {

constexpr std::size_t kMaxMeetings = std::size_t{1}
                                     << 22;  // pairs of tensors that overlap in one buffer at one time; real plans have thousands
constexpr std::int64_t kMaxWalked = std::int64_t{1} << 26;  // steps looked at for tensors that are replaced while they are read

class ContentVerifier {
 public:
  ContentVerifier(const Plan& plan, const model::Graph& graph, const VerifyContext& context)
      : plan_(plan),
        graph_(graph),
        context_(context),
        steps_(static_cast<std::int64_t>(plan.steps.size())),
        steps_of_(graph.nodes.size()),
        first_write_(graph.tensors.size(), -1),
        ready_(graph.tensors.size(), -1),
        reads_(graph.tensors.size()),
        made_(graph.tensors.size(), false),
        progress_(graph.tensors.size()),
        has_views_(graph.tensors.size(), false),
        passes_(graph.tensors.size(), false),
        row_lives_(plan, graph) {
    for (const PassingTensor& passing : plan.passing) passes_[passing.tensor.index()] = true;
  }

  Status run(const std::vector<InnerBuffer>& inner) {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i)
      if (writes_output(graph_, plan_.steps[i])) steps_of_[plan_.steps[i].node.index()].push_back(i);
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) SLUICE_RETURN_IF_ERROR(check_placement(t));
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      SLUICE_RETURN_IF_ERROR(steps_of_[n].empty() ? check_view_node(n) : check_coverage(n));
    }
    find_ready();
    SLUICE_RETURN_IF_ERROR(check_steps());
    find_reads();
    SLUICE_RETURN_IF_ERROR(check_lifetimes());
    SLUICE_RETURN_IF_ERROR(check_meetings());
    return check_inner(inner);
  }

 private:
  const model::Tensor& tensor(std::size_t t) const noexcept { return graph_.tensors[t]; }
  bool is_empty(const model::Port& port) const noexcept { return graph_.tensor(port.tensor).shape.element_count() == 0; }
  bool outside(TensorId t) const noexcept { return context_.outside != nullptr && context_.outside->tensors[t.index()]; }
  /// Bytes that are there without a step: a constant's, or what a subgraph captures.
  bool constant(TensorId t) const noexcept { return graph_.tensor(t).weight.valid() || outside(t); }
  bool lies_somewhere(TensorId t) const noexcept { return plan_.tensors[t.index()].buffer.valid() || passes_[t.index()]; }

  Status check_placement(std::size_t t) const {
    const TensorPlacement& placement = plan_.tensors[t];
    if (tensor(t).weight.valid()) {
      if (placement.buffer.valid()) return broken("tensor", t, "I6: a constant lies in a load, not in a buffer of its own");
      return {};
    }
    if (outside(TensorId(t)) && placement.buffer.valid()) return broken("tensor", t, "I6: what lies outside has no buffer here");
    if (!placement.buffer.valid()) return {};  // check_steps and check_view_node refuse it where it is used
    const Buffer& buffer = plan_.buffer(placement.buffer);
    if (buffer.kind == BufferKind::kWeight || buffer.kind == BufferKind::kWorkspace || buffer.kind == BufferKind::kDerived ||
        buffer.kind == BufferKind::kSums)
      return broken("tensor", t, "I6: it lies in a buffer that holds weights, sums or a workspace");
    if (placement.ring_rows < 0) return broken("tensor", t, "I6: a ring of less than no rows");
    const auto bytes = view_span(tensor(t), placement);
    if (!bytes) return broken("tensor", t, "I6: its pitches make its own elements overlap");
    const auto end = checked_add(placement.offset.count(), *bytes);
    const auto end_with_tail = end ? checked_add(*end, context_.read_tail.count()) : std::nullopt;
    if (!end_with_tail || *end_with_tail > buffer.size.count())
      return broken("tensor", t, "I3: it ends, with the tail that kernels read, beyond its buffer");
    return {};
  }

  /// Each element of the output is written by exactly one step: the areas sum to the whole, and no two meet.
  Status check_coverage(std::size_t n) {
    const model::Node& node = graph_.nodes[n];
    const RowExtents whole = row_extents(graph_.tensor(node.outputs[0]).shape);
    std::uint64_t area = 0;  // each term fits 63 bits (G3), and the sum is compared before it can grow beyond twice that
    const std::uint64_t all = static_cast<std::uint64_t>(whole.rows) * static_cast<std::uint64_t>(model::step_channels(graph_, node));
    for (std::size_t i : steps_of_[n]) {
      const Step& step = plan_.steps[i];
      area += static_cast<std::uint64_t>(step.rows.size()) * static_cast<std::uint64_t>(step.channels.size());
      if (area > all) return broken("node", n, "I6: its steps write some elements twice");
    }
    if (area < all) return broken("node", n, "I6: its steps leave elements unwritten");
    if (!rectangles_disjoint(steps_of_[n])) return broken("node", n, "I6: its steps write some elements twice");
    made_[node.outputs[0].index()] = true;
    return check_turns(n);
  }

  /// What a recurrent node computes follows from what it has computed: time step after time step, gate after gate.
  Status check_turns(std::size_t n) const {
    const model::Node& node = graph_.nodes[n];
    const std::int64_t turn = model::rows_of_turn(graph_, node);
    if (turn == 0) return {};
    for (const TensorId out : node.outputs)
      if (out.valid() && plan_.tensors[out.index()].ring_rows != 0)
        return broken("tensor", out.index(), "I6: a ring of what each turn reads again");
    const std::int64_t channels = model::step_channels(graph_, node);
    const bool reverse = node.as<model::RecurrentAttributes>().reverse;
    RowRange rows;
    std::int64_t done = channels;
    for (std::size_t i : steps_of_[n]) {
      const Step& step = plan_.steps[i];
      if (step.rows.begin % turn != 0 || step.rows.end % turn != 0 || step.rows.empty())
        return broken("step", i, "I6: it cuts a time step");
      if (done == channels) {
        if (i != steps_of_[n].front() && (reverse ? step.rows.end != rows.begin : step.rows.begin != rows.end))
          return broken("step", i, "I6: it leaves out a time step");
        rows = step.rows;
        done = 0;
      }
      if (step.rows != rows || step.channels.begin != done || (step.channels.size() < channels && rows.size() != turn))
        return broken("step", i, "I6: it comes before what it follows from");
      done = step.channels.end;
    }
    return {};
  }

  bool rectangles_disjoint(const std::vector<std::size_t>& steps) const {
    struct Edge {
      std::int64_t row;
      bool begins;
      ChannelRange channels;
    };
    std::vector<Edge> edges;
    for (std::size_t i : steps) {
      edges.push_back({plan_.steps[i].rows.begin, true, plan_.steps[i].channels});
      edges.push_back({plan_.steps[i].rows.end, false, plan_.steps[i].channels});
    }
    sluice::sort(edges.begin(), edges.end(),
                 [](const Edge& a, const Edge& b) { return a.row != b.row ? a.row < b.row : a.begins < b.begins; });
    const auto by_begin = [](const ChannelRange& a, const ChannelRange& b) { return a.begin < b.begin; };
    std::set<ChannelRange, decltype(by_begin)> active(by_begin);
    for (const Edge& edge : edges) {
      if (!edge.begins) {
        active.erase(edge.channels);
        continue;
      }
      const auto next = active.lower_bound(edge.channels);
      if (next != active.end() && next->overlaps(edge.channels)) return false;
      if (next != active.begin() && std::prev(next)->overlaps(edge.channels)) return false;
      active.insert(next, edge.channels);
    }
    return true;
  }

  /// A node without steps is true only if its output's bytes are those of its inputs.
  Status check_view_node(std::size_t n) const {
    const model::Node& node = graph_.nodes[n];
    const TensorId out = node.outputs[0];
    if (passes_[out.index()] && node.op == model::OpKind::kReshape && passes_[node.inputs[0].index()]) return {};  // see check_passing
    if (!plan_.tensors[out.index()].buffer.valid()) return broken("node", n, "I6: it has no step, and its output lies nowhere");
    if (plan_.tensors[out.index()].ring_rows != 0) return broken("tensor", out.index(), "I6: a ring that no step writes");
    for (TensorId in : node.inputs)
      if (constant(in) || !plan_.tensors[in.index()].buffer.valid())
        return broken("node", n, "I6: it has no step, and an input lies in no buffer");
    switch (node.op) {
      case model::OpKind::kReshape:
        if (!same_bytes(placed(node.inputs[0]), placed(out))) return broken("node", n, "I6: a reshape without step is not the same bytes");
        return {};
      case model::OpKind::kConcat:
        if constexpr (has_operator(static_cast<int>(model::OpKind::kConcat))) return check_concat_view(n);
        break;
      case model::OpKind::kSlice:
        if constexpr (has_operator(static_cast<int>(model::OpKind::kSlice))) return check_slice_view(n);
        break;
      default:
        break;
    }
    return broken("node", n, "I6: it has no step");
  }

  Status check_concat_view(std::size_t n) const {
    const model::Node& node = graph_.nodes[n];
    const auto axis = static_cast<std::size_t>(node.as<model::AxisAttributes>().axis);
    std::array<std::int64_t, Shape::kMaxRank> start{};
    for (TensorId in : node.inputs) {
      if (!part_of(placed(in), placed(node.outputs[0]), start))
        return broken("node", n, "I6: a concatenation without step is not made of its inputs");
      start[axis] += graph_.tensor(in).shape[static_cast<int>(axis)];
    }
    return {};
  }

  Status check_slice_view(std::size_t n) const {
    const model::Node& node = graph_.nodes[n];
    const auto& slice = node.as<model::SliceAttributes>();
    const Shape& shape = graph_.tensor(node.outputs[0]).shape;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] > 1 && slice.step[static_cast<std::size_t>(axis)] != 1)
        return broken("node", n, "I6: a slice with strides has no step");
    if (!part_of(placed(node.outputs[0]), placed(node.inputs[0]), slice.start))
      return broken("node", n, "I6: a slice without step is not a part of its input");
    return {};
  }

  PlacedTensor placed(TensorId t) const noexcept { return {&graph_.tensor(t), &plan_.tensors[t.index()]}; }

  /// From which step on a tensor is whole. Nodes are in topological order (G1).
  void find_ready() {
    for (const model::Port& port : graph_.inputs) {
      ready_[port.tensor.index()] = 0;
      made_[port.tensor.index()] = !is_empty(port) && !outside(port.tensor);
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const model::Node& node = graph_.nodes[n];
      const std::size_t out = node.outputs[0].index();
      if (!steps_of_[n].empty()) {
        first_write_[out] = static_cast<std::int64_t>(steps_of_[n].front());
        ready_[out] = static_cast<std::int64_t>(steps_of_[n].back()) + 1;
        continue;
      }
      for (TensorId in : node.inputs) {
        ready_[out] = std::max(ready_[out], ready_[in.index()]);
        has_views_[in.index()] = true;
      }
    }
  }

  std::int64_t channels_of(NodeId id) const { return model::step_channels(graph_, graph_.node(id)); }

  /// Are the rows that a step reads of an input there?
  Status check_input(std::size_t i, std::size_t input) const {
    const Step& step = plan_.steps[i];
    const model::Node& node = graph_.node(step.node);
    const std::size_t t = node.inputs[input].index();
    const std::int64_t ring = plan_.tensors[t].ring_rows;
    if (ring == 0 && ready_[t] >= 0 && ready_[t] <= static_cast<std::int64_t>(i)) return {};
    const auto rows = rows_of_input(graph_, node, input, step.rows);
    const NodeId maker = maker_[t];
    if (!rows || !maker.valid() || progress_[t].whole(channels_of(maker)) < rows->end)
      return broken("step", i, "I6: it reads a tensor that is not whole yet");
    if (ring > 0 && progress_[t].band.end - rows->begin > ring) return broken("step", i, "I6: it reads rows that a ring no longer holds");
    return {};
  }

  Status check_output(std::size_t i) {
    const Step& step = plan_.steps[i];
    if (!writes_output(graph_, step)) return {};
    for (TensorId out : graph_.node(step.node).outputs)
      if (!lies_somewhere(out)) return broken("step", i, "I6: its output lies in no buffer");
    progress_[graph_.node(step.node).outputs[0].index()].add(step, channels_of(step.node));
    const std::size_t t = graph_.node(step.node).outputs[0].index();
    const std::int64_t ring = plan_.tensors[t].ring_rows;
    if (ring == 0) return {};
    if (step.rows.size() > ring) return broken("step", i, "I6: it writes more rows than its ring holds");
    if (!progress_[t].in_order) return broken("step", i, "I6: it does not follow the rows of its ring");
    return {};
  }

  Status check_steps() {
    maker_.assign(graph_.tensors.size(), NodeId::invalid());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!steps_of_[n].empty()) maker_[graph_.nodes[n].outputs[0].index()] = NodeId(n);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const auto now = static_cast<std::int64_t>(i);
      const model::Node& node = graph_.node(step.node);
      if (step.prepare) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (constant(node.inputs[k])) continue;
        if (!lies_somewhere(node.inputs[k])) return broken("step", i, "I6: an input lies in no buffer");
        SLUICE_RETURN_IF_ERROR(check_input(i, k));
      }
      SLUICE_RETURN_IF_ERROR(check_output(i));
      if (!step.workspace.valid()) continue;
      const Buffer& workspace = plan_.buffer(step.workspace);
      if (workspace.kind != BufferKind::kWorkspace) return broken("step", i, "I6: its workspace is a buffer of another kind");
      if (!workspace.lifetime.contains(now)) return broken("step", i, "I1: its workspace does not live at that time");
    }
    return {};
  }

  void find_reads() {
    for (const model::Port& port : graph_.outputs) reads_[port.tensor.index()].add(steps_, NodeId::invalid());
    for (const model::Port& port : graph_.inputs) {
      const TensorPlacement& placement = plan_.tensors[port.tensor.index()];
      if (placement.buffer.valid() && plan_.buffer(placement.buffer).whole_period)
        reads_[port.tensor.index()].add(steps_, NodeId::invalid());
    }
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const model::Node& node = graph_.nodes[n];
      for (TensorId in : node.inputs) {
        if (steps_of_[n].empty())
          reads_[in.index()].add(reads_[node.outputs[0].index()]);
        else
          reads_[in.index()].add(static_cast<std::int64_t>(steps_of_[n].back()), NodeId(n));
      }
    }
  }

  /// The steps between which a made tensor's bytes matter, both included.
  Interval<std::int64_t> needed(std::size_t t) const noexcept { return {std::max<std::int64_t>(first_write_[t], 0), last_touch(t)}; }
  std::int64_t last_touch(std::size_t t) const noexcept { return std::max({reads_[t].last, ready_[t] - 1, std::int64_t{0}}); }

  Status check_lifetimes() const {
    for (const model::Port& port : graph_.inputs)
      if (!is_empty(port) && !outside(port.tensor) && !plan_.tensors[port.tensor.index()].buffer.valid())
        return broken("tensor", port.tensor.index(), "I6: a graph input lies in no buffer");
    for (const model::Port& port : graph_.outputs)
      if (!is_empty(port) && !lies_somewhere(port.tensor))
        return broken("tensor", port.tensor.index(), "I6: a graph output lies in no buffer");
    for (const auto* ports : {&graph_.inputs, &graph_.outputs})
      for (const model::Port& port : *ports)
        if (plan_.tensors[port.tensor.index()].ring_rows != 0)
          return broken("tensor", port.tensor.index(), "I6: the caller cannot see a ring");
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!made_[t] || passes_[t]) continue;
      const Buffer& buffer = plan_.buffer(plan_.tensors[t].buffer);
      if (buffer.whole_period) continue;
      const Interval<std::int64_t> need = needed(t);
      if (buffer.lifetime.begin > need.begin) return broken("tensor", t, "I1: its buffer's lifetime begins after its first write");
      if (buffer.lifetime.end < std::min(need.end + 1, steps_))
        return broken("tensor", t, "I1: its buffer's lifetime ends before its last read");
    }
    return {};
  }

  /// Made tensors of one buffer that matter at the same time have no byte in common, or one replaces the other element by element.
  Status check_meetings() {
    std::vector<std::size_t> order;
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
      if (made_[t] && plan_.tensors[t].buffer.valid()) order.push_back(t);
    sluice::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const BufferId x = plan_.tensors[a].buffer;
      const BufferId y = plan_.tensors[b].buffer;
      if (x != y) return x < y;
      return first_write_[a] != first_write_[b] ? first_write_[a] < first_write_[b] : a < b;
    });
    SpanIndex active;  // of the current buffer
    BufferId buffer;
    std::size_t meetings = 0;
    for (std::size_t t : order) {
      if (plan_.tensors[t].buffer != buffer) active.clear();
      buffer = plan_.tensors[t].buffer;
      bool clean = true;
      active.visit_meeting(span_of(t), [&](std::size_t earlier) {
        if (last_touch(earlier) < first_write_[t]) return false;
        clean = clean && (++meetings > kMaxMeetings || may_meet(earlier, t));
        return true;
      });
      if (meetings > kMaxMeetings) return broken("tensor", t, "I6: more tensors share its buffer than can be checked");
      if (!clean) return broken("tensor", t, "I6: it overwrites bytes of a tensor that is still needed");
      active.add(span_of(t), t);
    }
    return {};
  }

  /// A workspace that lies in a buffer of tensors is written and read at its step: no row that matters then has a byte of it. Of tensors
  /// that are read through views it is not known which rows matter.
  Status check_inner(const std::vector<InnerBuffer>& inner) {
    std::map<std::size_t, std::vector<std::size_t>> tensors;  // by buffer that has workspaces
    for (const InnerBuffer& pair : inner) tensors[pair.outer];
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
      if (const BufferId b = plan_.tensors[t].buffer; b.valid())
        if (const auto at = tensors.find(b.index()); at != tensors.end()) at->second.push_back(t);
    for (const InnerBuffer& pair : inner) {
      const Buffer &workspace = plan_.buffers[pair.workspace], &outer = plan_.buffers[pair.outer];
      const auto begin = static_cast<std::int64_t>((workspace.offset - outer.offset).count());
      const Interval<std::int64_t> bytes{begin, begin + static_cast<std::int64_t>(workspace.size.count())};
      for (const std::size_t t : tensors[pair.outer])
        if (!made_[t] || has_views_[t] || !row_lives_.none_in(t, bytes, workspace.lifetime))
          return broken("buffer", pair.workspace, "I2: it overlaps rows of a tensor that are needed at that time");
    }
    return {};
  }

  /// The bytes from a made tensor's first element to the end of its last.
  SpanIndex::Span span_of(std::size_t t) const {
    const std::uint64_t begin = plan_.tensors[t].offset.count();
    return {begin, begin + *view_span(tensor(t), plan_.tensors[t])};
  }

  bool may_meet(std::size_t earlier, std::size_t later) {
    const PlacedTensor a = placed(TensorId(earlier));
    const PlacedTensor b = placed(TensorId(later));
    if (views_disjoint(a, b)) return true;
    const bool seen = !has_views_[earlier] && !has_views_[later];
    if (seen && row_lives_.apart(earlier, later)) return true;
    if (first_write_[later] < 0) return false;
    const NodeId writer = plan_.steps[static_cast<std::size_t>(first_write_[later])].node;
    if (seen && first_write_[earlier] >= 0 && row_lives_.part_of_ring(earlier, later, graph_.node(writer))) return true;
    const LastReads& reads = reads_[earlier];
    const std::int64_t by_others = std::max(reads.node == writer && reads.last >= 0 ? reads.by_other : reads.last, ready_[earlier] - 1);
    if (by_others >= first_write_[later] && !reads_stay_ahead(earlier, later, by_others)) return false;
    const model::Node& node = graph_.node(writer);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (constant(node.inputs[i])) continue;
      const PlacedTensor in = placed(node.inputs[i]);
      if (in.placement->buffer != b.placement->buffer || views_disjoint(in, b)) continue;
      if (!replaces_elementwise(writer, i) || !same_view(in, b)) return false;
    }
    return true;
  }

  /// Other nodes write and read `earlier` until step `last`, while `later` takes its place row by row: none of them a row that is gone.
  bool reads_stay_ahead(std::size_t earlier, std::size_t later, std::int64_t last) {
    walked_ += last - first_write_[later];
    if (last >= steps_ || walked_ > kMaxWalked || has_views_[earlier] || !same_view(placed(TensorId(earlier)), placed(TensorId(later))))
      return false;
    const NodeId writer = plan_.steps[static_cast<std::size_t>(first_write_[later])].node;
    std::int64_t replaced = 0;
    for (std::int64_t i = first_write_[later]; i <= last; ++i) {
      const Step& step = plan_.steps[static_cast<std::size_t>(i)];
      if (step.node == writer) replaced = std::max(replaced, step.rows.end);
      if (step.node == writer || step.prepare) continue;
      const model::Node& node = graph_.node(step.node);
      const bool makes = std::any_of(node.outputs.begin(), node.outputs.end(), [&](TensorId out) { return out.index() == earlier; });
      // What goes turn by turn reads again what it made in the turn before.
      if (makes && (step.rows.begin < replaced || model::rows_of_turn(graph_, node) != 0)) return false;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        if (node.inputs[k].index() != earlier) continue;
        const auto rows = rows_of_input(graph_, node, k, step.rows);
        if (!rows || rows->begin < replaced) return false;
      }
    }
    return true;
  }

  /// Does step after step read of this input only the elements that it writes?
  bool replaces_elementwise(NodeId id, std::size_t input) const {
    const model::Node& node = graph_.node(id);
    const model::Tensor& in = graph_.tensor(node.inputs[input]);
    const model::Tensor& out = graph_.tensor(node.outputs[0]);
    if (in.shape != out.shape || in.dtype != out.dtype) return false;
    const operators::Relations relations(graph_, node);
    const operators::InPlace allowed = relations.definition().in_place;
    const bool residual = node.epilogue.has_residual && input + 1 == node.inputs.size();
    if (!residual && allowed != operators::InPlace::kAny && (allowed != operators::InPlace::kFirst || input != 0)) return false;
    const operators::AxisRelations axes = relations.input(input);
    bool along_last = false;
    for (int axis = 0; axis < axes.rank(); ++axis) {
      if (axes[axis].kind == operators::AxisKind::kSame && axes[axis].output_axis == axis) continue;
      along_last = axis + 1 == axes.rank() && axes[axis].kind == operators::AxisKind::kReduced;
      if (!along_last) return false;
    }
    // What reads all channels of the rows that it writes may be cut into rows only.
    const std::int64_t channels = row_extents(out.shape).channels;
    const auto& steps = steps_of_[id.index()];
    return !along_last ||
           std::all_of(steps.begin(), steps.end(), [&](std::size_t i) { return plan_.steps[i].channels.size() == channels; });
  }

  const Plan& plan_;
  const model::Graph& graph_;
  const VerifyContext& context_;
  const std::int64_t steps_;
  std::vector<std::vector<std::size_t>> steps_of_;  // by node, rising
  std::vector<std::int64_t> first_write_;           // by tensor; -1: a graph input or a view
  std::vector<std::int64_t> ready_;                 // by tensor: the first step that may read it
  std::vector<LastReads> reads_;                    // by tensor, through views of it
  std::vector<bool> made_;
  std::vector<NodeId> maker_;       // by tensor: whose steps write it
  std::vector<Progress> progress_;  // by tensor
  std::vector<bool> has_views_;     // by tensor: a node without steps reads it
  std::vector<bool> passes_;        // by tensor: it has no buffer, see check_passing
  RowLives row_lives_;
  std::int64_t walked_ = 0;
};

}  // namespace

Status check_content(const Plan& plan, const model::Graph& graph, const VerifyContext& context, const std::vector<InnerBuffer>& inner) {
  return ContentVerifier(plan, graph, context).run(inner);
}

}  // namespace sluice::plan
