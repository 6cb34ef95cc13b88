// `sluice plan --explain`: why the smallest budget is what it is.
#pragma once

#include "sluice/engine/engine.h"

namespace sluice::cli {

/// Plans for the smallest budget and prints what lives there at the step that needs most, and what would lower it.
void explain_minimum(const Model& model, SessionOptions options, Bytes minimum);

}  // namespace sluice::cli
