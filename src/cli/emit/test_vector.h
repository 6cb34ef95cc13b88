// One run of the engine, as the emitted code's ports see it.
#pragma once

#include <memory>
#include <string>

#include "sluice/emit/emit.h"
#include "sluice/engine/engine.h"

namespace sluice::cli {

/// Runs `model` on what `argument` names (as `sluice run --input` does) and gives its ports' values in the order and type of `network`'s.
/// Throws Failure.
emit::TestVector make_test_vector(const std::shared_ptr<const Model>& model, const emit::Network& network,
                                  const std::vector<std::string>& arguments);

}  // namespace sluice::cli
