// The features of model files that this build has code for: all that are supported, or those of the models that it was trimmed to.
#pragma once

#include "sluice/model/attributes.h"
#include "sluice/model/features.h"
#include "src/core/build_list.h"

namespace sluice::model {

constexpr bool is_built(Feature feature) noexcept { return has_feature(static_cast<int>(feature)); }

inline constexpr Features kBuiltFeatures = [] {
  Features built = kSupportedFeatures;
  for (int i = 0; i < kFeatureCount; ++i)
    if (!is_built(static_cast<Feature>(i))) built &= ~bit_of(static_cast<Feature>(i));
  return built;
}();

/// Subgraphs and branches: plain operators run and choose them, and no others.
inline constexpr bool kRunsSubgraphs = has_operator(static_cast<int>(OpKind::kPlain));

}  // namespace sluice::model
