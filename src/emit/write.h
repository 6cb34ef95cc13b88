// The two files of an emission, from a network and its memory plan.
#pragma once

#include <string>
#include <string_view>

#include "sluice/emit/emit.h"
#include "src/emit/kernels.h"
#include "src/emit/parameters.h"

namespace sluice::emit {

std::string write_source(const model::Graph& graph, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         const std::string& parameters);
std::string write_header(const model::Graph& graph, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         const StackBytes& stack);

/// A part of the source, for the measurer too: the portable headers that the stages and `walk` need.
std::string copied_headers(const Network& network, std::string_view walk);

/// How often a run asks for each row of a streamed input: once for each strip of the first region.
std::int64_t input_passes(const MemoryPlan& plan);

}  // namespace sluice::emit
