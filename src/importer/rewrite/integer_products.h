// The weights of a convolution or dense layer as integers: what the panels, biases and multipliers of the class int8 hold.
#pragma once

#include <optional>

#include "src/importer/draft.h"

namespace sluice::importer {

/// `node` over an input of scale `in`, its sums rounded to `out`; without `out` they stay real. Nothing where integers cannot say what the
/// node computes: its weight is not one of bytes with one scale a channel, or a sum could leave 32 bits.
std::optional<IntegerProducts> integer_products(const DraftNode& node, const ByteScale& in, const std::optional<ByteScale>& out);

/// `node` over bytes whose zero point comes at run time, with a bias of zeros: the bytes of its weight, which stand for themselves less
/// their zero points, and the sum of each output channel's in place of a bias.
std::optional<IntegerProducts> run_time_products(const DraftNode& node);

/// A constant of bytes with one scale as u8 and that scale; nothing: it is none.
struct ByteConstant {
  Constant values;
  ByteScale scale;
};
std::optional<ByteConstant> byte_constant(const Constant& constant);

}  // namespace sluice::importer
