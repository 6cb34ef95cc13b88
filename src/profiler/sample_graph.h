// Layers of well-known networks, as nodes of one graph that is never run: what a profile measures when it is given no model.
#pragma once

#include <vector>

#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/net_type.h"
#include "src/profiler/shape_corpus.h"

namespace sluice::profiler {

/// Nets of one type, and beside them some layers of others.
struct SampledNets {
  NetType type = NetType::kF32;
  std::vector<NetType> few = {NetType::kBf16, NetType::kInt8, NetType::kInt4, NetType::kIntegers};
};

/// Its weights have sizes but no place in a file. Convolutions that have a Winograd form appear in both numeric classes.
model::Graph sample_graph(const SampledNets& nets = {});

/// The layers of a corpus alone, of floats and of bytes.
model::Graph graph_of(const ShapeCorpus& corpus);

/// The kernel on which a node of such a graph is measured: the preferred one, which plans take. None of a node that runs subgraphs.
std::vector<const kernels::KernelDescriptor*> sampled_kernels(const model::Graph& graph, const model::Node& node);

}  // namespace sluice::profiler
