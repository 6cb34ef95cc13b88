// Parts of `validate` for what no kernel of this build may run, but every reader of the format must understand: quantisation, subgraphs,
// units. Each knows the graph only, and says which rule of model/graph.h is broken.
#pragma once

#include <string_view>

#include "sluice/model/graph.h"

namespace sluice::model {

/// What `subject` breaks.
inline tl::unexpected<Error> invalid(std::string_view subject, const char* reason) {
  return fail(ErrorCode::kInvalidModel, subject, reason);
}

/// (G1) (G3) (G6) of one tensor, of the graph or of a subgraph. In validate.cc.
Status check_tensor(const Graph& graph, const Tensor& tensor);

/// (G7) Of all tensors, those of subgraphs too, and weights that name a quantisation. Weights have passed.
Status check_quantisations(const Graph& graph);
/// (G8) Weights have passed.
Status check_subgraphs(const Graph& graph);
/// (G9) All nodes of the graph have passed.
Status check_units(const Graph& graph);

}  // namespace sluice::model
