#include "src/importer/rewrite/dense_part.h"

#include "src/importer/rewrite/perm.h"

namespace sluice::importer {
namespace {

void keep_range(std::vector<float>& of_outputs, std::int64_t begin, std::int64_t count) {
  if (of_outputs.empty()) return;
  of_outputs = std::vector<float>(of_outputs.begin() + begin, of_outputs.begin() + begin + count);
}

/// Leaves places [begin, begin + count) of an axis.
void keep_places(Constant& values, int axis, std::int64_t begin, std::int64_t count) {
  Shape kept = values.shape;
  kept[axis] = count;
  if (values.absent) {
    values = make_absent(values.dtype, kept);
  } else {
    values.data += begin * values.strides[static_cast<std::size_t>(axis)] * static_cast<std::int64_t>(size_of(values.dtype));
    values.shape = kept;
  }
}

}  // namespace

Shape physical_shape_of(const Draft& draft, ValueId value) { return physical(draft.value(value).shape, draft.value(value).layout); }

std::vector<bool> seen_by_caller(const Draft& draft) {
  std::vector<bool> seen(draft.values.size(), false);
  for (const auto* ports : {&draft.inputs, &draft.outputs})
    for (const DraftPort& port : *ports) {
      seen[port.value.index()] = true;
      if (const ValueId storage = draft.value(port.value).storage; storage.valid()) seen[storage.index()] = true;
    }
  return seen;
}

Value value_like(const Value& value, const std::string& name, const Shape& physical_shape) {
  Value made;
  made.name = name;
  made.dtype = value.dtype;
  made.bytes = value.bytes;
  made.shape = physical_shape;
  return made;
}

DraftNode made_again(Draft& draft, const DraftNode& node, const std::string& suffix) {
  DraftNode again = node;
  again.name += suffix;
  Value value = draft.value(node.output);
  value.name += suffix;
  again.output = draft.add_value(std::move(value));
  return again;
}

bool has_parts(const DraftNode& node) {
  return node.op == model::OpKind::kDense && node.numeric != model::NumericClass::kInt8 && !node.epilogue.has_residual && node.panels &&
         node.panels->run_order.empty() && node.inputs.size() == 1;
}

DraftNode dense_part(const DraftNode& dense, std::int64_t begin, std::int64_t count) {
  DraftNode part = dense;
  std::get<model::DenseAttributes>(part.attributes).out_features = count;
  PanelValues& panels = *part.panels;
  panels.name += ":" + std::to_string(begin);
  keep_places(panels.values, 0, begin, count);
  keep_range(panels.scale, begin, count);
  keep_range(part.bias, begin, count);
  return part;
}

bool has_terms(const DraftNode& node) {
  if (node.op != model::OpKind::kDense || node.numeric == model::NumericClass::kInt8 || !node.panels) return false;
  const PanelValues& panels = *node.panels;
  return panels.run_order.empty() && panels.k_inner == 1 && !panels.values.quantised;
}

DraftNode dense_term(const DraftNode& dense, std::int64_t begin, std::int64_t count) {
  DraftNode term = dense;
  std::get<model::DenseAttributes>(term.attributes).in_features = count;
  PanelValues& panels = *term.panels;
  panels.name += ":in" + std::to_string(begin);
  keep_places(panels.values, 1, begin, count);
  return term;
}

}  // namespace sluice::importer
