// Which nodes become integers, and which tensors bytes.
//
//     x --Conv--> . --Relu--> y          one unit: its input x and its output y are bytes, what lies between is not rounded
//     y --Add--> z, z --LayerNorm-->     no bytes: somebody reads z who computes in f32
//
// Layers with weights are units wherever their weights are constants. Additions, products, pools, functions and movement are
// units only where every reader of their output is one and every input comes from one: otherwise f32 would be rounded on its way to f32.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "src/quantiser/editor.h"

namespace sluice::quantiser {

struct Unit {
  enum class Kind : std::uint8_t { kWeighted, kArithmetic, kMovement };
  Kind kind = Kind::kWeighted;
  std::vector<std::size_t> nodes;        // the first reads `inputs`, the last makes `output`
  std::vector<std::string_view> inputs;  // activations
  std::string_view output;
  bool rectified = false;   // a Relu or Clip ends it
  bool homogeneous = true;  // whether sums that are twice as large give an output that is twice as large

  // Only for a layer with weights:
  std::string_view weight;
  std::string_view bias;  // of the node, or of the addition behind a MatMul; empty: none
  std::size_t bias_node = Editor::kNone;
  int output_axis = 0;   // of the weight
  int input_axis = 1;    // of the weight; of a convolution, within a group
  int channel_axis = 1;  // of the activation that it reads
  std::int64_t groups = 1;

  std::size_t first() const noexcept { return nodes.front(); }
};

/// All units of `editor`'s graph, in its order, without layers whose weight is in `kept`.
std::vector<Unit> find_units(const Editor& editor, const std::set<std::string_view>& kept);

}  // namespace sluice::quantiser
