// Where a byte of a weight lies in the file.
#pragma once

#include "sluice/model/graph.h"

namespace sluice::executor {

/// Of byte `at` of the weight, raw, in a stretch that is stored as it is: other stretches of the weight may have shrunk.
inline Bytes file_offset_of(const model::Graph& graph, const model::Weight& weight, Bytes at) noexcept {
  std::uint32_t s = weight.first_stretch;
  Bytes begin;
  for (; s + 1 < weight.first_stretch + weight.stretch_count && at >= begin + graph.stretches[s].raw_size; ++s)
    begin += graph.stretches[s].raw_size;
  return graph.stretches[s].offset + (at - begin);
}

}  // namespace sluice::executor
