// Parameters of layer norms, attention and lookups in tables.
#pragma once

#include <cstdint>

#include "sluice/operators/parameters/parameters.h"
#include "sluice/operators/parameters/weighted.h"

namespace sluice::operators {

struct LayerNormParameters {
  float epsilon = 1e-5f;
};

struct AttentionParameters {
  std::int64_t heads = 1;
  std::int64_t depth = 0;    // of a head's queries and keys
  std::int64_t width = 0;    // of a head's values
  std::int64_t queries = 0;  // of a batch
  std::int64_t keys = 0;     // of a batch
  float scale = 1.0f;
  bool causal = false;  // row s sees the first keys - queries + s + 1 keys only
};

struct EmbeddingParameters {
  std::int64_t table_rows = 0;
  std::int64_t features = 0;
  std::int64_t panels_of_piece = 1;  // the least that a step that reads its table by itself gets, beginning at a multiple of it
  PanelGeometry panels;
};

static_assert(kIsParameters<LayerNormParameters> && kIsParameters<AttentionParameters> && kIsParameters<EmbeddingParameters>);

}  // namespace sluice::operators
