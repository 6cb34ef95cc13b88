// Families of the long tail: what a trimmed build has or has not, each whole (docs/small-binaries.md).
#pragma once

#include <string_view>

#include "sluice/operators/generic.h"

namespace sluice::operators {

/// The family whose line it is, as src/operators/generic/table.cc names it.
std::string_view family_of(const PlainOperator& op) noexcept;

}  // namespace sluice::operators
