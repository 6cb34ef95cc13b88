// Heads of an attention in groups, one group after the other. On physical shapes.
//
//     norm -> dense k, dense v;  norm -> dense q -> attention of 12 heads          becomes
//
//     norm -> dense k, v of heads 0-2;  norm -> dense q of heads 0-2 -> attention of 3 heads --+
//     norm -> dense k, v of heads 3-5;  norm -> dense q of heads 3-5 -> attention of 3 heads --+-> concat
//     ...
//
// If a projection follows that adds what the heads read (norms come after the sums), the last group goes past the concatenation: the projection
// is the sum of that of the other groups and that of the last, whose rows can then be projected as they are made, in the place of the residual's rows:
//
//     attentions of groups 0-2 -> concat -> dense, + x --+
//                              attention of group 3 -> dense, + --> ...
//
// An attention reads keys and values whole. In groups those of one group exist at a time, and the concatenation is one buffer that they fill:
// of a layer, its input, the outputs of all heads and the keys and values of a group are in memory, where bands of queries run.
// The bits stay, those of a projection aside: each column is the same chain of the same products, and no head reads what is another's.
#include <algorithm>
#include <map>
#include <utility>

#include "sluice/core/panels.h"
#include "src/importer/rewrite/dense_part.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::OpKind;

/// With four, keys and values take half of what the input takes. Eight would save a quarter of it more, and take eight norms more.
constexpr std::int64_t kMostGroups = 4;

class Grouping {
 public:
  Grouping(Draft& draft, bool exact) : draft_(draft), exact_(exact), uses_(draft), seen_(seen_by_caller(draft)) {}

  void run() {
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    std::vector<std::int64_t> groups(nodes.size(), 1);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      groups[n] = groups_of(nodes, n);
      if (groups[n] > 1) take_makers(nodes, n);
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (taken_.contains(n)) continue;
      if (groups[n] > 1)
        part(nodes, n, groups[n]);
      else if (const auto sum = sums_.find(n); sum != sums_.end())
        add_terms(nodes[n], sum->second);
      else
        draft_.nodes.push_back(std::move(nodes[n]));
    }
  }

 private:
  const DraftNode* maker(const std::vector<DraftNode>& nodes, ValueId value) const {
    const std::size_t at = uses_.maker[value.index()];
    return at == Uses::kNone ? nullptr : &nodes[at];
  }

  /// 1: it stays as it is.
  std::int64_t groups_of(const std::vector<DraftNode>& nodes, std::size_t n) const {
    const DraftNode& node = nodes[n];
    if (node.op != OpKind::kAttention || node.numeric == model::NumericClass::kInt8 || node.inputs.size() != 3) return 1;
    const auto& attention = std::get<model::AttentionAttributes>(node.attributes);
    if (attention.causal || seen_[node.output.index()]) return 1;
    for (const ValueId in : node.inputs) {
      const DraftNode* dense = maker(nodes, in);
      if (dense == nullptr || !has_parts(*dense) || !uses_.single_reader(in) || seen_[in.index()]) return 1;
    }
    for (std::int64_t groups = std::min(kMostGroups, attention.heads); groups > 1; --groups)
      if (attention.heads % groups == 0 && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
            return physical_shape_of(draft_, in).back() % (groups * kPanelLanes) == 0;
          }))
        return groups;
    return 1;
  }

  /// A norm that only layers of one attention read is made for each group.
  const DraftNode* norm_before(const std::vector<DraftNode>& nodes, const DraftNode& attention, const DraftNode& dense) const {
    const ValueId value = dense.inputs[0];
    const DraftNode* norm = maker(nodes, value);
    if (norm == nullptr || norm->op != OpKind::kLayerNorm || seen_[value.index()]) return nullptr;
    const std::vector<std::size_t>& readers = uses_.readers[value.index()];
    const bool alone = std::all_of(readers.begin(), readers.end(), [&](std::size_t r) {
      return std::find(attention.inputs.begin(), attention.inputs.end(), nodes[r].output) != attention.inputs.end();
    });
    return alone ? norm : nullptr;
  }

  void take_makers(const std::vector<DraftNode>& nodes, std::size_t n) {
    for (const ValueId in : nodes[n].inputs) {
      const std::size_t dense = uses_.maker[in.index()];
      taken_.insert(dense);
      if (norm_before(nodes, nodes[n], nodes[dense]) != nullptr) taken_.insert(uses_.maker[nodes[dense].inputs[0].index()]);
    }
  }

  void part(const std::vector<DraftNode>& nodes, std::size_t n, std::int64_t groups) {
    const DraftNode& whole = nodes[n];
    DraftNode concat;
    concat.name = whole.name + ":heads";
    concat.op = OpKind::kConcat;
    concat.axis = physical_shape_of(draft_, whole.output).rank() - 1;
    concat.attributes = model::AxisAttributes{concat.axis};
    concat.output = whole.output;
    const std::size_t projection = projection_behind(nodes, whole);
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::string suffix = ":" + std::to_string(group);
      DraftNode attention = whole;
      attention.name += suffix;
      std::get<model::AttentionAttributes>(attention.attributes).heads /= groups;
      std::map<ValueId, ValueId> norms;  // of keys and values
      for (const std::size_t i : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
        const DraftNode& dense = *maker(nodes, whole.inputs[i]);
        if (i == 0) norms.clear();  // rows of queries do not wait for the last key
        DraftNode part = part_of(dense, group, groups);
        if (const DraftNode* norm = norm_before(nodes, whole, dense)) part.inputs[0] = norm_again(*norm, norms);
        attention.inputs[i] = part.output;
        draft_.nodes.push_back(std::move(part));
      }
      attention.output = part_value(whole.output, suffix, groups);
      concat.inputs.push_back(attention.output);
      draft_.nodes.push_back(std::move(attention));
    }
    if (projection != Uses::kNone) {
      const ValueId last = concat.inputs.back();
      concat.inputs.pop_back();
      concat.output = part_value(whole.output, ":rest", groups, groups - 1);
      sums_[projection] = {concat.inputs.size() == 1 ? concat.inputs[0] : concat.output, last};
      if (concat.inputs.size() == 1) return;
    }
    draft_.nodes.push_back(std::move(concat));
  }

  /// The dense layer that alone reads the heads, if it adds what queries are made of and can be a sum; else kNone. Where norms come before
  /// (ViT-B/16), the next peaks are as high, and tables of more nodes would only make smallest budgets larger.
  std::size_t projection_behind(const std::vector<DraftNode>& nodes, const DraftNode& attention) const {
    if (exact_ || !uses_.single_reader(attention.output)) return Uses::kNone;
    const std::size_t reader = uses_.readers[attention.output.index()][0];
    const DraftNode& dense = nodes[reader];
    const bool adds_source = dense.epilogue.has_residual && dense.inputs.back() == maker(nodes, attention.inputs[0])->inputs[0];
    const bool sums = adds_source && has_terms(dense) && dense.inputs[0] == attention.output;
    return sums && dense.panels->values.shape[1] == physical_shape_of(draft_, attention.output).back() ? reader : Uses::kNone;
  }

  /// Values that a projection reads in place of one.
  struct Terms {
    ValueId rest, last;
  };

  void add_terms(const DraftNode& whole, const Terms& terms) {
    const std::int64_t rest = physical_shape_of(draft_, terms.rest).back(), last = physical_shape_of(draft_, terms.last).back();
    DraftNode first = dense_term(whole, 0, rest), second = dense_term(whole, rest, last);
    const Value& sum = draft_.value(whole.output);
    first.name += ":rest";
    first.inputs[0] = terms.rest;
    first.epilogue.activation = {};
    first.output = draft_.add_value(value_like(sum, sum.name + ":rest", physical_shape_of(draft_, whole.output)));
    second.inputs = {terms.last, first.output};
    second.bias.clear();
    draft_.nodes.push_back(std::move(first));
    draft_.nodes.push_back(std::move(second));
  }

  DraftNode part_of(const DraftNode& dense, std::int64_t group, std::int64_t groups) {
    const std::int64_t count = physical_shape_of(draft_, dense.output).back() / groups;
    DraftNode part = dense_part(dense, group * count, count);
    part.name += ":" + std::to_string(group);
    part.output = part_value(dense.output, ":" + std::to_string(group), groups);
    return part;
  }

  /// A value with the features of `parts` groups of the whole one's.
  ValueId part_value(ValueId whole, const std::string& suffix, std::int64_t groups, std::int64_t parts = 1) {
    Shape shape = physical_shape_of(draft_, whole);
    shape[shape.rank() - 1] = shape.back() / groups * parts;
    const Value of_whole = draft_.value(whole);
    return draft_.add_value(value_like(of_whole, of_whole.name + suffix, shape));
  }

  /// The norm's output, made again unless it is in `made`.
  ValueId norm_again(const DraftNode& norm, std::map<ValueId, ValueId>& made) {
    const auto [known, is_new] = made.try_emplace(norm.output, norm.output);
    if (!is_new) return known->second;
    const int times = times_made_[norm.output]++;
    draft_.nodes.push_back(times == 0 ? norm : made_again(draft_, norm, ":" + std::to_string(times)));
    return known->second = draft_.nodes.back().output;
  }

  Draft& draft_;
  const bool exact_;  // no sum may be cut in two
  const Uses uses_;
  const std::vector<bool> seen_;
  std::set<std::size_t> taken_;        // makers of queries, keys and values that are made in groups, and their norms
  std::map<ValueId, int> times_made_;  // by a norm's output
  std::map<std::size_t, Terms> sums_;  // by projection
};

}  // namespace

void part_heads(Draft& draft, bool exact) { Grouping(draft, exact).run(); }

}  // namespace sluice::importer
