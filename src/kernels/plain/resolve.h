// From a node of the long tail to its parameters, and what its descriptor answers: of these operators the one place that sees a graph.
#pragma once

#include "sluice/kernels/kernel.h"
#include "sluice/operators/parameters/plain.h"

namespace sluice::kernels::plain {

operators::PlainParameters parameters_of(const model::Graph& graph, const model::Node& node) noexcept;
bool supports(const model::Graph& graph, const model::Node& node) noexcept;
std::int64_t weight_turns(const model::Graph& graph, const model::Node& node) noexcept;

}  // namespace sluice::kernels::plain
