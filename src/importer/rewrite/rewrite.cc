#include "src/importer/rewrite/rewrite.h"

#include <algorithm>

#include "sluice/kernels/plain.h"

namespace sluice::importer {

namespace {

/// A plan has at least one step. Where all nodes may be views of the inputs (or there is nothing to make at all), one that copies.
void ensure_step(Draft& draft) {
  if (std::any_of(draft.nodes.begin(), draft.nodes.end(), [](const DraftNode& node) { return node.op != model::OpKind::kReshape; })) return;
  const kernels::PlainOperator* identity = kernels::find_plain("Identity");
  model::PlainAttributes attributes;
  attributes.op = identity->number;
  attributes.present = 1;
  ValueId from;
  if (draft.nodes.empty()) {
    Value nothing;
    nothing.name = "nothing";
    nothing.constant = make_fill(Shape{}, 0.0f);
    from = draft.add_value(std::move(nothing));
  } else {
    from = draft.nodes[0].inputs[0];
  }
  Value copied = draft.value(from);
  copied.name += ":copied";
  copied.constant.reset();
  copied.storage = {};
  if (is_float(copied.dtype)) copied.dtype = DType::kF32;
  DraftNode copy;
  copy.name = copied.name;
  copy.op = model::OpKind::kPlain;
  copy.attributes = std::move(attributes);
  copy.inputs = {from};
  copy.output = draft.add_value(std::move(copied));
  if (!draft.nodes.empty()) draft.nodes[0].inputs[0] = copy.output;
  draft.nodes.insert(draft.nodes.begin(), std::move(copy));
}

}  // namespace

void rewrite(Draft& draft, bool fuse, bool exact) {
  compact(draft);
  for (DraftNode& node : draft.nodes)
    for (DraftBody& body : node.bodies) rewrite(*body.draft, fuse, exact);
  if (fuse) {
    if (!draft.exact && !draft.in_body) merge_quantisers(draft);  // nor does ONNX Runtime in bodies
    compact(draft);
    for (const auto pass :
         {recognise_activations, recognise_layer_norms, recognise_attention, sink_reshapes, fold_padding, fold_affine, hoist_quantise,
          form_integer, scale_sums, fuse_tables, fold_padding, drop_idle_taps, fuse_residual, fuse_activation}) {
      pass(draft);
      compact(draft);
    }
    if (!exact) transposed_by_phases(draft);
  }
  lay_out(draft);
  drop_reshapes(draft);
  if (fuse) {
    lift_reshapes(draft);
    drop_reshapes(draft);
    compact(draft);
    split_queries(draft);
    compact(draft);
    part_heads(draft, exact);
  }
  compact(draft);
  ensure_step(draft);
}

}  // namespace sluice::importer
