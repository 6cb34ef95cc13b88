// Kernel geometry that Conv, ConvTranspose and the pools share: attributes to model::Window, one-dimensional forms as H = 1.
#pragma once

#include "src/importer/lowering.h"

namespace sluice::importer {

/// Spatial attributes of one node, always two axes; a one-dimensional node has extent 1, kernel 1, stride 1 and no padding on the first.
struct Spatial {
  bool one_dimensional = false;
  std::array<std::int64_t, 2> in{}, kernel{}, stride{1, 1}, dilation{1, 1}, before{}, after{};
};

/// Reads kernel_shape (or `kernel` when the attribute is absent), strides, dilations, pads for an input of rank 3 or 4; refuses others and
/// everything that is not positive. `windowed_extents` applies auto_pad.
Spatial read_spatial(const NodeContext& c, const Shape& input, std::span<const std::int64_t> kernel);

/// Output extents of a convolution or pool; applies auto_pad to `s` first. Refuses windows that do not fit.
std::array<std::int64_t, 2> windowed_extents(const NodeContext& c, Spatial& s, bool ceil_mode);

model::Window make_window(const Spatial& s, const std::array<std::int64_t, 2>& out);

/// A convolution of an image [N, C, H, W] by a weight of rank 4, and its bias, which may be empty.
ValueId add_image_conv(NodeContext& c, ValueId image, const Spatial& s, const std::array<std::int64_t, 2>& out, std::int64_t groups,
                       PanelValues panels, std::vector<float> bias);
ValueId add_image_pool(NodeContext& c, ValueId image, const Spatial& s, const std::array<std::int64_t, 2>& out, model::PoolKind kind,
                       bool counts_padding);
/// The bias as input 2, or none; and the groups. Malformed ones are refused.
std::vector<float> read_bias(const NodeContext& c, std::int64_t channels);
std::int64_t read_groups(const NodeContext& c, std::int64_t channels);

/// Of inputs [N, C, D, H, W] (lower_volume.cc). They refuse what the plain operators are to take.
void lower_volume_conv(NodeContext& c);
ValueId add_volume_pool(NodeContext& c, ValueId x, model::PoolKind kind);

/// x as [N, C, H, W]: a rank 3 tensor gets H = 1.
ValueId as_image(NodeContext& c, ValueId x);
/// The other way round for a result, when `one_dimensional`.
ValueId as_line(NodeContext& c, ValueId x, bool one_dimensional);

}  // namespace sluice::importer
