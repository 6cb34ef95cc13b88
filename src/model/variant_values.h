// What a column of a form by axis is at a point of its box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/model/variants.h"

namespace sluice::model {

/// `places`: by dimension, an index into the positions of its axis. Any numbers of a file give some value.
std::uint64_t value_by_axis(const Form& form, std::size_t column, std::span<const std::size_t> places);

}  // namespace sluice::model
