// Sequences and optionals, which exist at convert only.
//
// A sequence is a Value with `items`, the values that it holds; an optional without a value is a Value that is `absent`. Its operators give
// other lists of the same values, or become ordinary operators on the items, so that nothing of it is left in the draft: what decides a
// length or a place must be constant. Every other operator refuses such a value by name (check_inputs.h).
//
// A sequence among the model's inputs has as many items as `--dim NAME=COUNT` says, inputs NAME.0, NAME.1 and so on; one among its outputs
// is outputs of such names.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/importer/lowering.h"

namespace sluice::importer {

/// SequenceAt and its like, SequenceMap, Optional and its like.
bool is_sequence_operator(std::string_view op) noexcept;
void lower_sequence(NodeContext& c, BodyLowering& bodies);

inline Value sequence_of(std::vector<ValueId> items) {
  Value value;
  value.items = std::make_shared<const std::vector<ValueId>>(std::move(items));
  return value;
}
inline Value absent_value() {
  Value value;
  value.absent = true;
  return value;
}

/// A sequence of these values; counted, so that lists cannot grow without bound (allowance.h).
ValueId add_sequence(NodeContext& c, std::vector<ValueId> items);

/// Is this a sequence, or an optional without a value?
inline bool is_list(const Value& value) noexcept { return value.items != nullptr || value.absent; }

}  // namespace sluice::importer
