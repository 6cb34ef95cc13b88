// RNN, GRU, LSTM: X [T, B, I] (layout 1: [B, T, I]), W [D, gates * H, I], R [D, gates * H, H], B [D, 2 * gates * H], lengths, initial
// state.
//
// One direction after the other, one time step after the other; a state of each batch entry lies in the scratch.
#include "sluice/operators/generic/recurrent.h"

#include "src/operators/generic/table.h"

namespace sluice::operators::generic {
using namespace recurrent;
namespace {

#define SLUICE_RECURRENT_ARGUMENTS                                                                                                      \
  "hidden_size:i=0 direction:s=forward|reverse|bidirectional layout:i=0 clip:f=0 linear_before_reset:i=0 input_forget:i=0 functions:I " \
  "alpha:F beta:F"

/// Results: all hidden states, the last one, the last cell.
PlainRefusal infer_recurrent(const PlainNode& node, PlainTensor& out) noexcept {
  Sizes s;
  if (PlainRefusal refusal = sizes_of(node, s)) return refusal;
  out.dtype = DType::kF32;
  if (node.result() == 0)
    out.shape = s.batch_first ? Shape{s.batches, s.times, s.directions, s.hidden} : Shape{s.times, s.directions, s.batches, s.hidden};
  else
    out.shape = s.batch_first ? Shape{s.batches, s.directions, s.hidden} : Shape{s.directions, s.batches, s.hidden};
  return nullptr;
}

constexpr PlainOperator kRecurrentOperators[] = {
    {400, "RNN", SLUICE_RECURRENT_ARGUMENTS, infer_recurrent, &kRnn, 2},
    {401, "GRU", SLUICE_RECURRENT_ARGUMENTS, infer_recurrent, &kGru, 2},
    {402, "LSTM", SLUICE_RECURRENT_ARGUMENTS, infer_recurrent, &kLstm, 3},
};

}  // namespace

std::span<const PlainOperator> recurrent_operators() noexcept { return kRecurrentOperators; }

}  // namespace sluice::operators::generic
