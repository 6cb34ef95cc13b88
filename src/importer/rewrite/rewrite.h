// The rewrites of a Draft, in the order in which `rewrite` runs them. Each is a file of its own, keeps the invariants of draft.h and leaves
// dead nodes to `compact`. All but `lay_out` only save work: with ConvertOptions::fuse off they are left out, and the result is the same
// up to rounding (of integers, up to a step).
#pragma once

#include "src/importer/draft.h"

namespace sluice::importer {

/// Reshape after Reshape becomes one; elementwise nodes move in front of a Reshape, next to the convolution or dense layer that they can
/// join.
void sink_reshapes(Draft& draft);
/// x * sigmoid(x), x * clip(x + 3, 0, 6) / 6, x / 2 * (1 + erf(x / sqrt 2)) and their variants become one node.
void recognise_activations(Draft& draft);
/// (x - mean) / sqrt(mean of squares + epsilon) over the last axis becomes a layer norm; fold_affine gives it its scale and shift.
void recognise_layer_norms(Draft& draft);
/// softmax(Q K^T, scaled, perhaps masked by a triangle) V of several heads becomes one node.
void recognise_attention(Draft& draft);
/// A zero Pad becomes the padding of the convolution that alone reads it.
void fold_padding(Draft& draft);
/// Batch-norms, and additions and multiplications by constants per channel, move into the weights and bias of the node before them.
void fold_affine(Draft& draft);
/// QuantizeLinear after DequantizeLinear after QuantizeLinear becomes one of them, with what their ranges have in common.
void merge_quantisers(Draft& draft);
/// QuantizeLinear moves in front of what only moves values.
void hoist_quantise(Draft& draft);
/// DequantizeLinear -> operator -> QuantizeLinear becomes one node of the class int8.
void form_integer(Draft& draft);
/// What multiplies and adds to i32 sums of integers whose scale comes at run time becomes part of the node that makes them.
void scale_sums(Draft& draft);
/// Tables that follow each other become one; those that cut a range become part of the node before.
void fuse_tables(Draft& draft);
/// Taps of a convolution that meet padding alone go, as they do where a map is smaller than the reach of its kernel.
void drop_idle_taps(Draft& draft);
/// x + y becomes the residual of the convolution or dense layer that makes one of them.
void fuse_residual(Draft& draft);
/// An activation becomes part of the node before it.
void fuse_activation(Draft& draft);
/// A transposed convolution of few outputs becomes a convolution whose outputs are phases, and a move. Sums are formed in another order.
void transposed_by_phases(Draft& draft);
/// Chooses the physical axis order of every value: feature maps NHWC. ONNX Transposes become changes of order that cost nothing;
/// transposes are inserted only where a reader needs another order than the one that the maker gave.
void lay_out(Draft& draft);
/// Reshapes that lead back to the same physical shape go, others move before a slice of channels: slices may then be views with gaps.
void drop_reshapes(Draft& draft);
/// Dense layers and layer norms work on rows as they were before a reshape that keeps them.
void lift_reshapes(Draft& draft);
/// A dense layer that makes queries, keys and values at once becomes one for each.
void split_queries(Draft& draft);
/// The heads of an attention become groups, each with queries, keys and values of its own.
void part_heads(Draft& draft, bool exact);

/// `exact`: without what changes the order of sums.
void rewrite(Draft& draft, bool fuse, bool exact);

}  // namespace sluice::importer
