// A plan as a picture: time across, addresses up, one rectangle a buffer, as the literature draws memory plans.
//
//     arena  ^ +-------------------------------------------+  resident weights lie there for the whole period
//            | |  +-------+    +--:::::######+             |  a streamed weight: `:` from its gate on it may be loaded,
//            | |  | act 1 |act2|             |             |                     `#` steps use it
//            +-+--+-------+----+-------------+-------------+--> steps
//     loads     |==0==|                                       one below the other, each from its gate to the first step that needs it:
//               |======1========|                             the longer, the more a late disk is forgiven
//                      |===2====|
//
// SVG 1.1, self-contained; each rectangle tells its name, bytes, address and lifetime as a tooltip. For a plan that passed `verify`.
#pragma once

#include <string>

#include "sluice/model/graph.h"
#include "sluice/plan/plan.h"

namespace sluice::plan {

/// O(buffers + tensors + operands). Names are escaped; bytes of them that are not printable ASCII become `?`.
std::string picture_of(const Plan& plan, const model::Graph& graph);

}  // namespace sluice::plan
