// `sluice convert --cluster`, `--prune` with `--data`: the report of the changed weights.
#pragma once

#include "sluice/quantiser/compressor.h"
#include "src/cli/json.h"

namespace sluice::cli {

/// The key `compressed` of `sluice convert --json`.
Json json_of_compressed(const quantiser::CompressReport& report);
void print_compressed(const quantiser::CompressReport& report);

}  // namespace sluice::cli
