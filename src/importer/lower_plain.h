// Plain operators (operators/generic.h): any ONNX node of the table becomes a kPlain node, or a constant when all it needs is constant.
#pragma once

#include "sluice/kernels/plain.h"
#include "src/importer/fold.h"
#include "src/importer/lowering.h"

namespace sluice::importer {

/// Makes a node for each output that is used, by the operator's line of the table; refuses in the operator's words.
void lower_plain(NodeContext& c, const kernels::PlainOperator& op);

/// One result of an operator over values that are there already, for lowerings that are made of several operators. `arguments` are as the
/// operator's list says, one list an argument; absent inputs are invalid ids. `whole`: it is the ONNX node's result of that number, so that
/// a bound stated for it counts.
ValueId add_plain(NodeContext& c, std::string_view op, std::vector<ValueId> inputs, std::vector<std::vector<std::int64_t>> arguments = {},
                  int result = 0, bool whole = false);

/// The floats that bytes at run time stand for: input `at`, its scale and its zero point behind it, one or one for each place of `axis`.
ValueId real_input(NodeContext& c, std::size_t at, std::int64_t axis = 1);

/// Gives `y` as result 0, in bytes of the scale at input `scale` and of the zero point behind it.
void set_quantised(NodeContext& c, ValueId y, std::size_t scale);

/// A real argument as it is stored.
std::int64_t real_bits(double value) noexcept;

}  // namespace sluice::importer
