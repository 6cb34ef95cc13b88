// What a node may not ask, whatever its form: kinds and types of values that only few operators know, looked at before it is lowered.
#pragma once

#include <string_view>

#include "src/importer/lowering.h"

namespace sluice::importer {

/// Values of 4 and 2 bits are bytes here: right for what reads or moves them, wrong for what would make others of their type.
void check_narrow_inputs(const NodeContext& c, std::string_view op);

/// Refuses a Cast to a type that no tensor of ours has: before it, for its forms may take it to have one.
void check_cast_type(const NodeContext& c, std::string_view op);

/// Refuses a sequence or an optional without a value where an operator wants a tensor.
void check_no_sequences(const NodeContext& c, std::string_view op);

}  // namespace sluice::importer
