// Makes layers of f32 those of nets of other types, by the rules of `convert`: weights of fewer bits, or 8-bit integers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "sluice/kernels/packing.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/net_type.h"

namespace sluice::profiler {

/// How nets of a type store their weights; nothing of integers.
std::optional<kernels::PanelStorage> storage_of(NetType type) noexcept;

/// The type of nets for which a node was made; of one that nets of all types have, f32.
NetType type_of(const model::Graph& graph, const model::Node& node) noexcept;

/// Does a net of type `nets` have nodes of type `node`? Beside its own those of f32, and, where its own would not be smaller, wider ones.
bool may_have(NetType nets, NetType node) noexcept;

/// Makes the first `count` nodes, which are of f32, those of nets of this type.
void make_of(NetType type, std::size_t count, model::Graph& graph);

/// Adds some of the convolutions and dense layers once more, with weights of these types.
void add_stored(std::span<const kernels::PanelStorage> storages, model::Graph& graph);

/// Adds layers, pools and elementwise nodes once more over bytes: of the first 200 nodes all, of the others a fifth.
void add_integers(model::Graph& graph);

/// Adds the nodes where 8-bit values of this shape begin and end.
void add_borders_of_integers(const Shape& shape, model::Graph& graph);

}  // namespace sluice::profiler
