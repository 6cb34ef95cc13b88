// The words of --dim where a model is opened, and how a model's own extents are printed.
#pragma once

#include <string>
#include <vector>

#include "sluice/engine/engine.h"
#include "src/cli/json.h"
#include "src/cli/parse_dim.h"

namespace sluice::cli {

/// Parses `--dim NAME=EXTENT --dim ...`. Throws Failure (kInvalidArgument) for anything not of this form, and for a name that comes twice.
model::Extents parse_dims(const std::vector<std::string>& words);

/// " at N=4, S=16"; empty for a model of one shape.
std::string dims_text(const Model& model);
/// {"N": 4, "S": 16}
Json json_of_dims(const Model& model);

}  // namespace sluice::cli
