// How exporters write the attention of several heads:
//
//     q [B, H, S, d] --------------------- MatMul -- * scale -- mask -- Softmax -- MatMul -- [B, H, S, e]
//     k [B, H, T, d], transposed [.. d, T] --'                                       |
//     v [B, H, T, e] ----------------------------------------------------------------'
//
// or without B. A few queries of keys that lie head after head, as caches keep them, stay as they are: moving keys and values would take longer
// than all that follows. Whatever led to q, k and v stays: the node wants its heads beside each other, [B, S, H * d], which is where they came from,
// so the transposes put round it here meet their inverses and `lay_out` lets both vanish.
#include "src/importer/rewrite/pattern.h"
#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {
namespace {

using model::BinaryFunction;
using model::OpKind;

// What a mask adds to a score that must not count; its exponential is nothing beside any that counts.
constexpr double kMaskedScore = -1e4;

/// A matrix of numbers that repeats over all other axes of its scores.
std::optional<std::vector<double>> matrix_of(const Draft& draft, ValueId value, std::int64_t rows, std::int64_t columns) {
  const auto& constant = draft.value(value).constant;
  if (!constant || !is_float(constant->dtype) || constant->elements() != rows * columns || constant->elements() > kMaxFoldedElements)
    return std::nullopt;
  const Shape& shape = constant->shape;
  if (shape.rank() < 2 || shape[shape.rank() - 2] != rows || shape.back() != columns) return std::nullopt;
  return reals(*constant);
}

/// Does it hide from row r just the columns behind r + columns - rows? `shown` and `hidden` say what values mean which.
template <class Shown, class Hidden>
bool is_triangle(const std::vector<double>& values, std::int64_t rows, std::int64_t columns, const Shown& shown, const Hidden& hidden) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double value = values[static_cast<std::size_t>(r * columns + c)];
      if (!(c <= r + columns - rows ? shown(value) : hidden(value))) return false;
    }
  }
  return rows <= columns;
}

struct Found {
  ValueId q, k_transposed, v;
  double scale = 1.0;
  bool causal = false;
};

class Matcher {
 public:
  explicit Matcher(const Draft& draft) : draft_(draft), pattern_(draft) {}

  std::optional<Found> match(const DraftNode& node) const {
    if (node.op != OpKind::kMatMul) return std::nullopt;
    const DraftNode* softmax = only_reader(node.inputs[0], OpKind::kSoftmax);
    if (softmax == nullptr || std::get_if<model::SoftmaxAttributes>(&softmax->attributes)->log) return std::nullopt;
    const int rank = shape(node.output).rank();
    if (rank < 3 || rank > 4 || softmax->axis != rank - 1 || !pattern_.single_reader(softmax->inputs[0])) return std::nullopt;

    Found found;
    ValueId scores = softmax->inputs[0];
    if (const auto unmasked = without_triangle(scores)) {
      found.causal = true;
      scores = *unmasked;
    }
    scores = unscaled(scores, found.scale);
    const DraftNode* product = only_reader(scores, OpKind::kMatMul);
    if (product == nullptr) return std::nullopt;
    found.q = unscaled(product->inputs[0], found.scale);
    found.k_transposed = unscaled(product->inputs[1], found.scale);
    found.v = node.inputs[1];
    return fits(found, rank) && !for_kept_keys(found, rank) ? std::optional(found) : std::nullopt;
  }

 private:
  const Shape& shape(ValueId value) const { return draft_.value(value).shape; }

  const DraftNode* only_reader(ValueId value, OpKind op) const {
    const DraftNode* maker = pattern_.maker(value);
    return maker != nullptr && maker->op == op && pattern_.single_reader(value) ? maker : nullptr;
  }

  ValueId unscaled(ValueId value, double& scale) const {
    const Pattern::Scaled s = pattern_.scaled(value);
    scale *= s.factor;
    return s.x;
  }

  /// s in s + T, or s * M + T (a Where), whose matrices hide what lies above the diagonal.
  std::optional<ValueId> without_triangle(ValueId value) const {
    const Shape& s = shape(value);
    const std::int64_t rows = s[s.rank() - 2], columns = s.back();
    const auto nothing = [](double v) { return v == 0.0; };
    const auto far_below = [](double v) { return v <= kMaskedScore; };
    const auto one = [](double v) { return v == 1.0; };
    const auto inner = beside_triangle(value, BinaryFunction::kAdd, rows, columns, nothing, far_below);
    if (!inner) return std::nullopt;
    const auto kept = beside_triangle(*inner, BinaryFunction::kMul, rows, columns, one, nothing);
    return kept ? kept : inner;
  }

  template <class Shown, class Hidden>
  std::optional<ValueId> beside_triangle(ValueId value, BinaryFunction function, std::int64_t rows, std::int64_t columns,
                                         const Shown& shown, const Hidden& hidden) const {
    const DraftNode* node = pattern_.binary(value, function);
    if (node == nullptr || !pattern_.single_reader(value)) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto values = matrix_of(draft_, node->inputs[1 - i], rows, columns);
      if (values && shape(node->inputs[i]) == shape(value) && is_triangle(*values, rows, columns, shown, hidden)) return node->inputs[i];
    }
    return std::nullopt;
  }

  /// Nothing is broadcast, nothing is constant.
  bool fits(const Found& f, int rank) const {
    for (const ValueId value : {f.q, f.k_transposed, f.v})
      if (draft_.value(value).constant || shape(value).rank() != rank) return false;
    for (int axis = 0; axis + 2 < rank; ++axis)
      if (shape(f.q)[axis] != shape(f.k_transposed)[axis] || shape(f.q)[axis] != shape(f.v)[axis]) return false;
    return true;
  }

  /// Few queries of keys that lie head after head, turned or not: no transpose put them so.
  bool for_kept_keys(const Found& f, int rank) const {
    constexpr std::int64_t kFewQueries = 16;
    if (shape(f.q)[rank - 2] > kFewQueries) return false;
    const DraftNode* maker = beyond_reshape(f.k_transposed);
    if (is(maker, OpKind::kTranspose) && swaps_last(*maker)) maker = beyond_reshape(maker->inputs[0]);
    return !is(maker, OpKind::kTranspose);
  }
  const DraftNode* beyond_reshape(ValueId value) const {
    const DraftNode* maker = pattern_.maker(value);
    return is(maker, OpKind::kReshape) ? pattern_.maker(maker->inputs[0]) : maker;
  }
  static bool is(const DraftNode* node, OpKind op) { return node != nullptr && node->op == op; }
  bool swaps_last(const DraftNode& transpose) const {
    const auto& perm = std::get<model::TransposeAttributes>(transpose.attributes).perm;
    const int rank = shape(transpose.output).rank();
    for (int axis = 0; axis + 2 < rank; ++axis)
      if (perm[static_cast<std::size_t>(axis)] != axis) return false;
    return rank >= 2 && perm[static_cast<std::size_t>(rank - 1)] == rank - 2;
  }

  const Draft& draft_;
  Pattern pattern_;
};

class Rewriter {
 public:
  explicit Rewriter(Draft& draft) : draft_(draft) {}

  void run() {
    const Matcher matcher(draft_);
    std::vector<std::optional<Found>> found;
    for (const DraftNode& node : draft_.nodes) found.push_back(matcher.match(node));
    std::vector<DraftNode> nodes;
    nodes.swap(draft_.nodes);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (found[n])
        replace(nodes[n], *found[n]);
      else
        draft_.nodes.push_back(std::move(nodes[n]));
    }
  }

 private:
  /// The heads of [B, H, S, d] beside each other: [B, S, H * d]. `from_last` axes before the last is the sequence.
  ValueId heads_last(const std::string& name, ValueId value, bool sequence_last) {
    const Shape shape = draft_.value(value).shape;
    const int rank = shape.rank();
    const int sequence = sequence_last ? rank - 1 : rank - 2, depth = sequence_last ? rank - 2 : rank - 1;
    model::TransposeAttributes move;
    Shape turned = shape;
    const int order[] = {0, sequence, rank - 3, depth};
    for (int axis = 0; axis < rank; ++axis) {
      const int from = order[static_cast<std::size_t>(axis + 4 - rank)];
      move.perm[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(from);
      turned[axis] = shape[from];
    }
    const ValueId heads = add(name + ":heads", OpKind::kTranspose, {value}, turned, move);
    return add(name + ":flat", OpKind::kReshape, {heads}, flat(shape, shape[sequence], shape[depth]));
  }

  static Shape flat(const Shape& heads, std::int64_t sequence, std::int64_t depth) {
    const int rank = heads.rank();
    return {rank == 4 ? heads[0] : 1, sequence, heads[rank - 3] * depth};
  }

  ValueId add(std::string name, OpKind op, std::vector<ValueId> inputs, const Shape& shape, model::Attributes attributes = {}) {
    Value value;
    value.name = name;
    value.shape = shape;
    const ValueId id = draft_.add_value(std::move(value));
    push(std::move(name), op, std::move(inputs), id, std::move(attributes));
    return id;
  }

  void push(std::string name, OpKind op, std::vector<ValueId> inputs, ValueId output, model::Attributes attributes = {}) {
    DraftNode node;
    node.name = std::move(name);
    node.op = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    node.output = output;
    draft_.nodes.push_back(std::move(node));
  }

  void replace(const DraftNode& node, const Found& found) {
    const Shape out = draft_.value(node.output).shape;  // [B, H, S, e]
    const int rank = out.rank();
    const ValueId q = heads_last(node.name + ":q", found.q, false);
    const ValueId k = heads_last(node.name + ":k", found.k_transposed, true);
    const ValueId v = heads_last(node.name + ":v", found.v, false);
    const model::AttentionAttributes attributes{out[rank - 3], static_cast<float>(found.scale), found.causal};
    const ValueId joined = add(node.name, OpKind::kAttention, {q, k, v}, flat(out, out[rank - 2], out[rank - 1]), attributes);
    Shape heads = out;
    std::swap(heads[rank - 2], heads[rank - 3]);
    const ValueId split = add(node.name + ":split", OpKind::kReshape, {joined}, heads);
    model::TransposeAttributes back;
    std::swap(back.perm[static_cast<std::size_t>(rank - 2)], back.perm[static_cast<std::size_t>(rank - 3)]);
    push(node.name + ":back", OpKind::kTranspose, {split}, node.output, back);
  }

  Draft& draft_;
};

}  // namespace

void recognise_attention(Draft& draft) { Rewriter(draft).run(); }

}  // namespace sluice::importer
