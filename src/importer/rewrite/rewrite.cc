#include "src/importer/rewrite/rewrite.h"

namespace sluice::importer {

void rewrite(Draft& draft, bool fuse) {
  compact(draft);
  if (fuse) {
    for (const auto pass : {recognise_activations, recognise_layer_norms, recognise_attention, sink_reshapes, fold_padding, fold_affine,
                            fuse_residual, fuse_activation}) {
      pass(draft);
      compact(draft);
    }
  }
  lay_out(draft);
  drop_reshapes(draft);
  compact(draft);
}

}  // namespace sluice::importer
