// The families of the long tail, each a file of this folder with its lines of the table. A number is stored in model files: a new line
// takes the next free one of its family's range.
#pragma once

#include <span>

#include "sluice/operators/generic.h"

namespace sluice::operators::generic {

/// The types of elements that a function of one or two values takes, and whether its result is a truth: what `detail` of its line points at.
struct Takes {
  bool reals = false, integers = false, bools = false, to_bool = false;
};
inline constexpr Takes kNumbers{.reals = true, .integers = true}, kWhole{.integers = true};
inline const Takes& taken_by(const PlainNode& node) noexcept { return *static_cast<const Takes*>(node.op().detail); }

std::span<const PlainOperator> unary_operators() noexcept;      // unary.cc        1-99
std::span<const PlainOperator> binary_operators() noexcept;     // binary.cc       100-149
std::span<const PlainOperator> cast_operators() noexcept;       // cast.cc         150-169
std::span<const PlainOperator> reduce_operators() noexcept;     // reduce.cc       170-199
std::span<const PlainOperator> select_operators() noexcept;     // select.cc       200-249: TopK, OneHot, Trilu, ...
std::span<const PlainOperator> gather_operators() noexcept;     // gather.cc       250-279
std::span<const PlainOperator> scatter_operators() noexcept;    // scatter.cc      280-299
std::span<const PlainOperator> normalize_operators() noexcept;  // normalize.cc    300-329
std::span<const PlainOperator> loss_operators() noexcept;       // loss.cc         330-339
std::span<const PlainOperator> quantize_operators() noexcept;   // quantize.cc     340-369
std::span<const PlainOperator> pool_operators() noexcept;       // pool.cc         370-379
std::span<const PlainOperator> convolve_operators() noexcept;   // convolve.cc     380-399
std::span<const PlainOperator> recurrent_operators() noexcept;  // recurrent.cc    400-409
std::span<const PlainOperator> attention_operators() noexcept;  // attention.cc    410-429
std::span<const PlainOperator> resize_operators() noexcept;     // resize.cc       430
std::span<const PlainOperator> image_operators() noexcept;      // image.cc        431-459
std::span<const PlainOperator> signal_operators() noexcept;     // signal.cc       460-479
std::span<const PlainOperator> matrix_operators() noexcept;     // matrix.cc       480-499

std::span<const PlainOperator> extents_operators() noexcept;   // extents.cc      500-539: Reshape, Slice, Pad, ...
std::span<const PlainOperator> sized_operators() noexcept;     // sized.cc        540-549: NonZero, Unique, ...
std::span<const PlainOperator> suppress_operators() noexcept;  // suppress.cc     550-559: NonMaxSuppression
std::span<const PlainOperator> control_operators() noexcept;   // control.cc      560-569: If and Loop at run time
std::span<const PlainOperator> scan_operators() noexcept;      // control.cc      570-579: Scan

}  // namespace sluice::operators::generic
