// The two files of an emission, from a network and its memory plan.
#pragma once

#include <string>

#include "sluice/emit/emit.h"
#include "src/emit/parameters.h"

namespace sluice::emit {

std::string write_source(const model::Graph& graph, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         const std::string& parameters);
std::string write_header(const model::Graph& graph, const EmitOptions& options, const Network& network, const MemoryPlan& plan,
                         std::uint64_t stack_bound);

/// "uint8_t" of a port's values.
const char* c_type_of(DType type);

}  // namespace sluice::emit
