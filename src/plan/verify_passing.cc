// (I1) (I3) (I6): tensors that pass, which have no buffer. Their blocks lie in the workspaces of the steps that make and read them:
//
//     maker    | ws |made|  | ws |stored|          each band whole into the scratch file, or each block to the caller
//     reader   | ws |fetched|  | ws |still there|   the rows that the step reads, brought before it
//
// Shown here: where each block lies, that it is what its step makes or reads, and that what is said to be there still was not overwritten.
// That rows are made before they are read is shown with those of all other tensors (content).
#include <algorithm>
#include <optional>
#include <vector>

#include "sluice/core/sort.h"
#include "src/plan/verify_parts.h"
#include "src/plan/verify_rows.h"

namespace sluice::plan {
namespace {

class PassingVerifier {
 public:
  PassingVerifier(const Plan& plan, const model::Graph& graph, const VerifyContext& context)
      : plan_(plan), graph_(graph), context_(context), passing_(graph.tensors.size(), nullptr), maker_(graph.tensors.size()) {}

  Status run() {
    SLUICE_RETURN_IF_ERROR(check_tensors());
    SLUICE_RETURN_IF_ERROR(check_file());
    for (std::size_t b = 0; b < plan_.blocks.size(); ++b) SLUICE_RETURN_IF_ERROR(check_block(b));
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) SLUICE_RETURN_IF_ERROR(check_step(i));
    return {};
  }

 private:
  Status check_tensors() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (TensorId out : graph_.nodes[n].outputs) maker_[out.index()] = NodeId(n);
    for (const PassingTensor& tensor : plan_.passing) {
      const PassingTensor*& known = passing_[tensor.tensor.index()];
      if (known != nullptr) return broken("tensor", tensor.tensor.index(), "I6: it passes twice");
      known = &tensor;
      SLUICE_RETURN_IF_ERROR(check_tensor(tensor));
    }
    return {};
  }

  Status check_tensor(const PassingTensor& passing) const {
    const std::size_t t = passing.tensor.index();
    const model::Tensor& tensor = graph_.tensors[t];
    if (plan_.tensors[t].buffer.valid() || plan_.tensors[t].ring_rows != 0)
      return broken("tensor", t, "I6: it passes, and has a buffer or a ring too");
    if (tensor.weight.valid() || tensor.bounded != 0 || !maker_[t].valid())
      return broken("tensor", t, "I6: what passes is made by a node, in extents that are known");
    const model::Node& maker = graph_.node(maker_[t]);
    SLUICE_RETURN_IF_ERROR(check_receiver(passing));
    if (maker.op == model::OpKind::kReshape) return check_shown(passing);
    const bool by_turns = model::rows_of_turn(graph_, maker) != 0;
    if (maker.outputs.size() != 1 || by_turns || model::step_channels(graph_, maker) != row_extents(tensor.shape).channels)
      return broken("tensor", t, "I6: its maker's steps do not make rows and channels of it");
    return {};
  }

  std::ptrdiff_t times_wanted(TensorId t) const {
    return std::count_if(graph_.outputs.begin(), graph_.outputs.end(), [&](const model::Port& port) { return port.tensor == t; });
  }

  /// A tensor that is handed over goes only to the caller, under the name of an output; a spilled one goes only to other nodes.
  Status check_receiver(const PassingTensor& passing) const {
    const std::size_t t = passing.tensor.index();
    std::ptrdiff_t receivers = times_wanted(passing.tensor);
    if (passing.spilled) return receivers > 0 ? broken("tensor", t, "I6: outputs are handed over, and nothing else is") : Status();
    for (const model::Node& node : graph_.nodes) {
      if (std::find(node.inputs.begin(), node.inputs.end(), passing.tensor) == node.inputs.end()) continue;
      if (node.op != model::OpKind::kReshape) return broken("tensor", t, "I6: it is handed over, but a node reads it");
      ++receivers;
    }
    if (receivers != 1) return broken("tensor", t, "I6: outputs are handed over, and nothing else is");
    return {};
  }

  /// An output that only reshapes another tensor passes with that one: blocks belong to that one.
  Status check_shown(const PassingTensor& passing) const {
    const std::size_t t = passing.tensor.index();
    const TensorId made = graph_.node(maker_[t]).inputs[0];
    const auto with = std::find_if(plan_.passing.begin(), plan_.passing.end(), [&](const PassingTensor& p) { return p.tensor == made; });
    const RowExtents a = row_extents(graph_.tensor(made).shape), b = row_extents(graph_.tensor(passing.tensor).shape);
    if (passing.spilled || with == plan_.passing.end() || with->spilled || times_wanted(passing.tensor) == 0)
      return broken("tensor", t, "I6: a reshape shows what nobody hands over");
    const NodeId by = maker_[made.index()];
    if (!by.valid() || graph_.node(by).op == model::OpKind::kReshape || a.rows != b.rows || a.pixels != b.pixels ||
        a.channels != b.channels)
      return broken("tensor", t, "I6: a reshape shows other rows than it is given");
    return {};
  }

  /// Each spilled tensor has bytes of its own in the scratch file.
  Status check_file() const {
    struct Extent {
      std::uint64_t begin, end;
      std::size_t tensor;
    };
    std::vector<Extent> extents;
    for (const PassingTensor& passing : plan_.passing) {
      if (!passing.spilled) continue;
      const auto end = checked_add(passing.file_offset.count(), graph_.tensor(passing.tensor).bytes().count());
      if (!end || *end > kUnlimitedBytes.count()) return broken("tensor", passing.tensor.index(), "I3: it ends beyond any scratch file");
      extents.push_back({passing.file_offset.count(), *end, passing.tensor.index()});
    }
    sluice::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (std::size_t e = 1; e < extents.size(); ++e)
      if (extents[e].begin < extents[e - 1].end) return broken("tensor", extents[e].tensor, "I2: it overlaps another in the scratch file");
    return {};
  }

  static bool made_here(Passage passage) noexcept { return passage != Passage::kFetched && passage != Passage::kStillThere; }

  /// The block for itself: what it is, and where.
  Status check_block(std::size_t b) const {
    const PassingBlock& block = plan_.blocks[b];
    const Step& step = plan_.steps[block.step];
    const model::Node& node = graph_.node(step.node);
    const PassingTensor* passing = passing_[block.tensor.index()];
    if (passing == nullptr) return broken("block", b, "I6: its tensor does not pass");
    const RowExtents whole = row_extents(graph_.tensor(block.tensor).shape);
    if (block.rows.begin < 0 || block.rows.empty() || block.rows.end > whole.rows || block.channels.begin < 0 || block.channels.empty() ||
        block.channels.end > whole.channels)
      return broken("block", b, "I6: it lies outside its tensor");
    if (step.prepare) return broken("block", b, "I6: a prepare step makes and reads nothing that passes");
    SLUICE_RETURN_IF_ERROR(check_place(b));
    const bool all_channels = block.channels == ChannelRange{0, whole.channels};
    if (!made_here(block.passage)) return check_read(b, node, passing->spilled && all_channels);
    if (node.outputs[0] != block.tensor || block.rows != step.rows) return broken("block", b, "I6: it is not what its step makes");
    if (!passing->spilled)
      return block.passage == Passage::kHandedOver && block.channels == step.channels
                 ? Status()
                 : broken("block", b, "I6: an output's block is handed over as its step makes it");
    if (block.passage == Passage::kHandedOver || !all_channels) return broken("block", b, "I6: what is spilled is stored in whole rows");
    return block.passage == Passage::kMade ? check_goes_on(b) : Status();
  }

  Status check_place(std::size_t b) const {
    const PassingBlock& block = plan_.blocks[b];
    const Step& step = plan_.steps[block.step];
    if (!step.workspace.valid()) return broken("block", b, "I6: its step has no workspace that it could lie in");
    if (block.offset.count() % model::kWeightAlignment != 0)
      return broken("block", b, "I4: its offset is less aligned than a kernel may rely on");
    const auto end = end_of(block);
    if (!end || *end > plan_.buffer(step.workspace).size.count())
      return broken("block", b, "I3: it ends, with the tail that kernels read, beyond its step's workspace");
    for (std::size_t other = b; other-- > 0 && plan_.blocks[other].step == block.step;) {
      const PassingBlock& before = plan_.blocks[other];
      if (before.tensor == block.tensor) return broken("block", b, "I6: its step has two blocks of one tensor");
      if (before.offset < Bytes(*end) && block.offset < Bytes(*end_of(before)))
        return broken("block", b, "I2: it overlaps another of its step");
    }
    return {};
  }

  std::optional<std::uint64_t> end_of(const PassingBlock& block) const {
    const model::Tensor& tensor = graph_.tensor(block.tensor);
    const auto pixels =
        checked_mul(static_cast<std::uint64_t>(block.rows.size()), static_cast<std::uint64_t>(row_extents(tensor.shape).pixels));
    const auto elements = pixels ? checked_mul(*pixels, static_cast<std::uint64_t>(block.channels.size())) : std::nullopt;
    const auto bytes = elements ? checked_mul(*elements, size_of(tensor.dtype)) : std::nullopt;
    const auto end = bytes ? checked_add(*bytes, block.offset.count()) : std::nullopt;
    return end ? checked_add(*end, context_.read_tail.count()) : std::nullopt;
  }

  /// All rows that the step reads of the tensor, whichever of its inputs that is. `stored`: whole rows of it come from the scratch file.
  Status check_read(std::size_t b, const model::Node& node, bool stored) const {
    const PassingBlock& block = plan_.blocks[b];
    bool read = false;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != block.tensor) continue;
      read = true;
      const RowRange all{0, row_extents(graph_.tensor(block.tensor).shape).rows};
      const RowRange needed = rows_of_input(graph_, node, k, plan_.steps[block.step].rows).value_or(all);
      if (needed.begin < block.rows.begin || needed.end > block.rows.end)
        return broken("block", b, "I6: its step reads rows that it does not hold");
    }
    if (!read || !stored) return broken("block", b, "I6: it is not what its step reads");
    if (block.passage == Passage::kFetched) return {};
    const PassingBlock* before = block.step == 0 ? nullptr : block_of(plan_, block.step - 1, block.tensor);
    if (before == nullptr || made_here(before->passage) || before->rows != block.rows || !same_place(*before, block))
      return broken("block", b, "I6: the step before does not leave it there");
    return {};
  }

  /// The next step makes other channels of it, at the same place.
  Status check_goes_on(std::size_t b) const {
    const PassingBlock& block = plan_.blocks[b];
    const PassingBlock* next = block.step + 1 < plan_.steps.size() ? block_of(plan_, block.step + 1, block.tensor) : nullptr;
    if (next == nullptr || !made_here(next->passage) || next->rows != block.rows || !same_place(block, *next))
      return broken("block", b, "I6: nobody stores it");
    return {};
  }

  /// Steps of one node that follow each other, and bytes that are theirs alone throughout.
  bool same_place(const PassingBlock& a, const PassingBlock& b) const {
    const Step& first = plan_.steps[a.step];
    const Step& second = plan_.steps[b.step];
    return first.node == second.node && second.workspace.valid() && a.offset == b.offset &&
           plan_.buffer(first.workspace).offset == plan_.buffer(second.workspace).offset;
  }

  /// Each passing tensor that the step reads or makes has a block there; of a stored one all channels have been made.
  Status check_step(std::size_t i) const {
    const Step& step = plan_.steps[i];
    if (step.prepare) return {};
    const model::Node& node = graph_.node(step.node);
    for (TensorId in : node.inputs)
      if (passing_[in.index()] != nullptr && block_of(plan_, i, in) == nullptr)
        return broken("step", i, "I6: nobody fetches what it reads");
    const TensorId out = node.outputs[0];
    if (passing_[out.index()] == nullptr) return {};
    const PassingBlock* block = block_of(plan_, i, out);
    if (block == nullptr) return broken("step", i, "I6: what it makes lies nowhere");
    if (adds_part(step)) return broken("step", i, "I6: parts of sums do not pass");
    if (block->passage != Passage::kStored) return {};
    std::int64_t made = 0;
    for (std::size_t s = i + 1; s-- > 0;) {
      made += plan_.steps[s].channels.size();
      const PassingBlock* before = s == 0 ? nullptr : block_of(plan_, s - 1, out);
      if (before == nullptr || before->passage != Passage::kMade) break;
    }
    return made == block->channels.size() ? Status() : broken("step", i, "I6: it stores channels that nobody has made");
  }

  const Plan& plan_;
  const model::Graph& graph_;
  const VerifyContext& context_;
  std::vector<const PassingTensor*> passing_;  // by tensor
  std::vector<NodeId> maker_;                  // by tensor
};

}  // namespace

Status check_passing(const Plan& plan, const model::Graph& graph, const VerifyContext& context) {
  return PassingVerifier(plan, graph, context).run();
}

}  // namespace sluice::plan
