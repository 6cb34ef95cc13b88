#include "src/importer/check_inputs.h"

#include <algorithm>

#include "src/importer/lower_sequence.h"

namespace sluice::importer {

void check_narrow_inputs(const NodeContext& c, std::string_view op) {
  constexpr std::string_view kReaders[] = {"Cast",
                                           "DequantizeLinear",
                                           "Flatten",
                                           "Gather",
                                           "Identity",
                                           "Reshape",
                                           "Shape",
                                           "Size",
                                           "Slice",
                                           "Split",
                                           "Squeeze",
                                           "Transpose",
                                           "Unsqueeze",
                                           "com.microsoft::DequantizeLinear",
                                           "com.microsoft::GatherBlockQuantized"};
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const Constant* known = c.has_input(i) ? c.input_constant(i) : nullptr;
    if (known == nullptr || known->bits == 8 || std::find(std::begin(kReaders), std::end(kReaders), op) != std::end(kReaders)) continue;
    refuse_unsupported("an input of " + std::to_string(known->bits) + " bits; supported are weights behind DequantizeLinear");
  }
}

void check_cast_type(const NodeContext& c, std::string_view op) {
  if (op != "Cast" || dtype_of(c.integer("to", 0))) return;
  c.refuse("it casts to " + type_text(c.integer("to", 0)) + ", a type that is not supported");
}

void check_no_sequences(const NodeContext& c, std::string_view op) {
  if (op == "Identity" || is_sequence_operator(op)) return;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i) || !is_list(c.draft().value(c.input(i)))) continue;
    if (op == "Loop" && i >= 2) continue;  // carried from one iteration to the next
    c.refuse("input " + std::to_string(i) + " is a sequence or an optional without a value, where the operator wants a tensor");
  }
}

}  // namespace sluice::importer
