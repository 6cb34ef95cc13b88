// What the passes on encoders share: values that the caller sees, values like others, nodes made again, dense layers of some of another's
// columns, or of some of its input's features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/importer/draft.h"

namespace sluice::importer {

/// Physical axes.
Shape physical_shape_of(const Draft& draft, ValueId value);

/// Values that the caller sees, themselves or by another name.
std::vector<bool> seen_by_caller(const Draft& draft);

/// A value of the same type, of that shape.
Value value_like(const Value& value, const std::string& name, const Shape& physical_shape);
/// The same node with a name and an output of its own, which end in `suffix`.
DraftNode made_again(Draft& draft, const DraftNode& node, const std::string& suffix);

/// Is it a dense layer of floats whose columns can be weights of their own? Whatever follows its sums is by column.
bool has_parts(const DraftNode& node);

/// Columns [begin, begin + count) of such a layer: the same chains of the same products. Its name and output are still those of the whole.
DraftNode dense_part(const DraftNode& dense, std::int64_t begin, std::int64_t count);

/// Is it a dense layer of floats that can be a sum of two layers, each of some of the input's features?
bool has_terms(const DraftNode& node);

/// The layer of features [begin, begin + count) of the input, with the bias, residual and activation of the whole.
DraftNode dense_term(const DraftNode& dense, std::int64_t begin, std::int64_t count);

}  // namespace sluice::importer
