// Parameters of operators that multiply by panels: convolutions, dense layers, recurrent nodes.
//
// All begin with WeightedParameters, which is what tiles, blocks of panels and prices need; a call's parameters may be read as that alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/core/activation.h"
#include "sluice/core/panels.h"
#include "sluice/core/transposed_sums.h"
#include "sluice/core/window.h"
#include "sluice/operators/parameters/parameters.h"

namespace sluice::operators {

/// The form of a weight in panels, whichever of them a step has.
struct PanelGeometry {
  PanelLayout layout;
  std::int64_t values = 0;             // of a lane: taps times input channels
  std::int64_t outputs_per_group = 0;  // see panels_of_channels
  Bytes panel_bytes;
};

struct WeightedParameters {
  PanelGeometry panels;
  Epilogue epilogue;
  // The whole node's work, for prices.
  std::int64_t input_elements = 0;  // of the first input
  std::int64_t out_rows = 0;
  std::int64_t out_pixels = 0;  // of a row
};

struct ConvolutionParameters {  // transposed ones too
  WeightedParameters weighted;
  Window window;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;   // of the whole tensor
  std::int64_t out_channels = 0;  // of the whole tensor

  std::int64_t group_depth() const noexcept { return in_channels / groups; }
  std::int64_t group_outputs() const noexcept { return out_channels / groups; }
  /// One input and one output channel a group.
  bool depthwise() const noexcept { return groups > 1 && groups == in_channels && groups == out_channels; }
  /// Of a transposed convolution: how its sums are formed.
  bool by_taps() const noexcept { return sums_by_taps(window, groups, in_channels, out_channels); }
};

struct DenseParameters {
  WeightedParameters weighted;
  std::int64_t in_features = 0;   // K
  std::int64_t out_features = 0;  // N
};

/// What gates and states are: model/attributes.h, RecurrentAttributes.
struct RecurrentParameters {
  WeightedParameters weighted;
  std::int64_t hidden = 0;
  std::int64_t batches = 1;
  Cell cell = Cell::kLstm;
  bool reverse = false;              // time falls
  bool linear_before_reset = false;  // GRU: r multiplies the finished sum
  bool input_forget = false;         // LSTM: f = 1 - i
  bool first_hidden = false;
  bool first_cell = false;
  bool peepholes = false;
  std::array<Activation, 3> functions{};  // ONNX's f, g, h

  std::int64_t gates() const noexcept { return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4; }
};

static_assert(kIsParameters<ConvolutionParameters> && offsetof(ConvolutionParameters, weighted) == 0);
static_assert(kIsParameters<DenseParameters> && offsetof(DenseParameters, weighted) == 0);
static_assert(kIsParameters<RecurrentParameters> && offsetof(RecurrentParameters, weighted) == 0);

}  // namespace sluice::operators
