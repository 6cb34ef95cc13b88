// Resize and Upsample, in the forms of opsets 7, 9, 10, 11, 13, 18 and 19.
#include <algorithm>
#include <cmath>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

using model::ResizeAttributes;
using model::ResizeCoordinates;
using model::ResizeMode;
using model::ResizeRounding;

/// Attributes that since opset 11 say how coordinates are computed; before, there was one way.
void read_modes(const NodeContext& c, ResizeAttributes& attributes) {
  const std::string_view mode = c.string("mode", "nearest");
  if (mode == "nearest")
    attributes.mode = ResizeMode::kNearest;
  else if (mode == "linear" || mode == "bilinear")
    attributes.mode = ResizeMode::kLinear;
  else if (mode == "cubic")
    attributes.mode = ResizeMode::kCubic;
  else
    c.refuse("mode " + std::string(mode) + "; supported are nearest, linear and cubic");
  attributes.coordinates = ResizeCoordinates::kAsymmetric;
  attributes.rounding = ResizeRounding::kFloor;
  if (c.node().op_type == "Upsample" || c.opset() < 11) return;

  const std::string_view coordinates = c.string("coordinate_transformation_mode", "half_pixel");
  if (coordinates == "half_pixel")
    attributes.coordinates = ResizeCoordinates::kHalfPixel;
  else if (coordinates == "asymmetric")
    attributes.coordinates = ResizeCoordinates::kAsymmetric;
  else if (coordinates == "align_corners")
    attributes.coordinates = ResizeCoordinates::kAlignCorners;
  else if (coordinates == "pytorch_half_pixel")
    attributes.coordinates = ResizeCoordinates::kPytorchHalfPixel;
  else
    c.refuse("coordinate_transformation_mode " + std::string(coordinates) +
             "; supported are half_pixel, asymmetric, align_corners and pytorch_half_pixel");

  const std::string_view rounding = c.string("nearest_mode", "round_prefer_floor");
  if (rounding == "round_prefer_floor")
    attributes.rounding = ResizeRounding::kRoundPreferFloor;
  else if (rounding == "round_prefer_ceil")
    attributes.rounding = ResizeRounding::kRoundPreferCeil;
  else if (rounding == "floor")
    attributes.rounding = ResizeRounding::kFloor;
  else if (rounding == "ceil")
    attributes.rounding = ResizeRounding::kCeil;
  else
    c.malformed("attribute nearest_mode has an unknown value");

  attributes.cubic_a = c.real("cubic_coeff_a", -0.75f);
  if (attributes.mode == ResizeMode::kCubic && c.integer("exclude_outside", 0) != 0) c.refuse("exclude_outside = 1");
}

/// Where the scales and the sizes stand: {scales input, sizes input}; no such input: past the end.
struct Sources {
  std::size_t scales = 99, sizes = 99;
};

Sources sources(const NodeContext& c) {
  if (c.node().op_type == "Upsample" || c.opset() < 11) return {.scales = 1};
  return {.scales = 2, .sizes = 3};
}

std::vector<double> read_scales(const NodeContext& c, std::size_t input) {
  if (c.node().op_type == "Upsample" && c.opset() < 9) {
    const OnnxAttribute* scales = c.attribute("scales");
    if (scales == nullptr) c.malformed("attribute scales is missing");
    return {scales->floats.begin(), scales->floats.end()};
  }
  if (!c.has_input(input)) return {};
  const Constant& constant = c.require_constant(input, "the scales");
  if (constant.elements() > Shape::kMaxRank) c.malformed("there are more scales than axes");
  return reals(constant);
}

/// keep_aspect_ratio_policy (opset 18): one scale for all resized axes, the smallest or largest that the sizes ask for.
void keep_aspect(const NodeContext& c, const Shape& in, const std::vector<int>& axes, std::vector<std::int64_t>& sizes,
                 ResizeAttributes& attributes) {
  const std::string_view policy = c.string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller") c.malformed("attribute keep_aspect_ratio_policy has an unknown value");
  float scale = 0.0f;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const float own = static_cast<float>(sizes[i]) / static_cast<float>(in[axes[i]]);
    if (i == 0) scale = own;
    scale = policy == "not_larger" ? std::min(scale, own) : std::max(scale, own);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    sizes[i] = static_cast<std::int64_t>(std::floor(static_cast<double>(scale) * static_cast<double>(in[axes[i]]) + 0.5));
    attributes.scale[static_cast<std::size_t>(axes[i])] = scale;
  }
}

/// The axes that are resized; without an attribute all.
std::vector<int> axes_of(const NodeContext& c, int rank) {
  std::vector<int> axes;
  for (const std::int64_t axis : c.integers("axes")) axes.push_back(c.axis(axis, rank));
  if (axes.empty())
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

/// Are the channels of an image the last axis?
bool pixels_last(const Shape& in, const Shape& out) noexcept {
  return in.rank() == 4 && in[0] == out[0] && in[3] == out[3] && in[1] != out[1];
}

/// As channels first: so images lie in memory with channels last, and neither transpose moves a byte there.
ValueId resize_pixels_last(NodeContext& c, ValueId x, const Shape& out, ResizeAttributes attributes) {
  std::swap(attributes.scale[2], attributes.scale[3]);
  std::swap(attributes.scale[1], attributes.scale[2]);
  const ValueId first = c.add_transpose(x, Perm{0, 3, 1, 2, 4, 5, 6, 7});
  const ValueId y = c.add(model::OpKind::kResize, {first}, Shape{out[0], out[3], out[1], out[2]}, attributes);
  return c.add_transpose(y, Perm{0, 2, 3, 1, 4, 5, 6, 7});
}

}  // namespace

void lower_resize(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape in = c.shape(x);
  ResizeAttributes attributes;
  read_modes(c, attributes);
  const Sources from = sources(c);
  const std::vector<int> axes = axes_of(c, in.rank());

  Shape out = in;
  const std::vector<double> scales = read_scales(c, from.scales);
  if (!scales.empty()) {
    if (scales.size() != axes.size()) c.malformed("there must be one scale for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double extent = std::floor(static_cast<double>(in[axes[i]]) * scales[i]);
      if (!(scales[i] > 0) || !(extent < 1e12)) c.malformed("a scale is out of range");
      out[axes[i]] = static_cast<std::int64_t>(extent);
      attributes.scale[static_cast<std::size_t>(axes[i])] = static_cast<float>(scales[i]);
    }
  } else {
    if (!c.has_input(from.sizes)) c.malformed("neither scales nor sizes are given");
    std::vector<std::int64_t> sizes = c.constant_integers(from.sizes, "the sizes");
    if (sizes.size() != axes.size()) c.malformed("there must be one size for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (sizes[i] < 1 || sizes[i] > (std::int64_t{1} << 40)) c.malformed("a size is out of range");
      attributes.scale[static_cast<std::size_t>(axes[i])] =
          static_cast<float>(static_cast<double>(sizes[i]) / static_cast<double>(in[axes[i]]));
    }
    keep_aspect(c, in, axes, sizes, attributes);
    for (std::size_t i = 0; i < axes.size(); ++i) out[axes[i]] = sizes[i];
  }
  if (attributes.coordinates == ResizeCoordinates::kAlignCorners)
    for (int axis = 0; axis < in.rank(); ++axis) {
      const float length = attributes.scale[static_cast<std::size_t>(axis)] * static_cast<float>(in[axis]);
      if (std::abs(length - static_cast<float>(out[axis])) > 1e-4f * length)
        c.refuse("align_corners with a scale that gives no whole extent");
    }
  bool shrinks = false, changes = false;
  for (int axis = 0; axis < in.rank(); ++axis) {
    shrinks = shrinks || out[axis] < in[axis];
    changes = changes || out[axis] != in[axis] || attributes.scale[static_cast<std::size_t>(axis)] != 1.0f;
  }
  if (shrinks && attributes.mode != ResizeMode::kNearest && c.integer("antialias", 0) != 0) c.refuse("antialias = 1");
  if (!changes) return c.set_output(0, x);
  c.set_output(0, pixels_last(in, out) ? resize_pixels_last(c, x, out, attributes) : c.add(model::OpKind::kResize, {x}, out, attributes));
}

namespace {

/// The number of a word in the plain operator's list of them.
std::int64_t word(const NodeContext& c, std::string_view attribute, std::string_view otherwise,
                  std::initializer_list<std::string_view> words) {
  const std::string_view chosen = c.string(attribute, otherwise);
  std::int64_t number = 0;
  for (const std::string_view known : words) {
    if (known == chosen) return number;
    ++number;
  }
  c.refuse("attribute " + std::string(attribute) + " is `" + std::string(chosen) + "`");
}

struct Words {
  std::int64_t mode, coordinates, rounding;
};
constexpr std::int64_t kCropAndResize = 5;  // among the words for coordinates

Words words_of(const NodeContext& c) {
  std::int64_t mode = word(c, "mode", "nearest", {"nearest", "linear", "cubic", "bilinear"});
  if (mode == 3) mode = 1;
  if (c.node().op_type == "Upsample" || c.opset() < 11) return {mode, 4, 2};  // the one way that there was: asymmetric, floor
  const std::int64_t coordinates =
      word(c, "coordinate_transformation_mode", "half_pixel",
           {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"});
  return {mode, coordinates, word(c, "nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})};
}

/// Where the region begins on each axis, then where it ends, in shares of the extent. All of it where nothing is cropped.
std::vector<double> region_of(const NodeContext& c, const std::vector<int>& axes, bool crops) {
  const auto rank = static_cast<std::size_t>(c.shape(c.input(0)).rank());
  std::vector<double> region(2 * rank, 0.0);
  std::fill(region.begin() + static_cast<std::ptrdiff_t>(rank), region.end(), 1.0);
  if (!crops) return region;
  const std::vector<double> given = reals(c.require_constant(1, "the region"));
  if (given.size() != 2 * axes.size()) c.malformed("the region must have a start and an end for each axis");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    region[static_cast<std::size_t>(axes[i])] = given[i];
    region[static_cast<std::size_t>(axes[i]) + rank] = given[i + axes.size()];
  }
  return region;
}

struct ResizedExtents {
  std::vector<std::int64_t> out;
  std::vector<double> scale;
};

ResizedExtents extents_by_scales(const NodeContext& c, const std::vector<int>& axes, const std::vector<double>& scales,
                                 const std::vector<double>& region, bool crops) {
  const Shape in = c.shape(c.input(0));
  const auto rank = static_cast<std::size_t>(in.rank());
  ResizedExtents extents{{in.dims().begin(), in.dims().end()}, std::vector<double>(rank, 1.0)};
  if (scales.size() != axes.size()) c.malformed("there must be one scale for each axis");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    // Read as f32, so that 0.6 of 10 is 6.
    const double extent = std::floor(static_cast<double>(static_cast<float>(in[axes[i]]) * static_cast<float>(scales[i]))) *
                          (crops ? region[a + rank] - region[a] : 1.0);
    if (!(scales[i] > 0) || !(extent >= 1 && extent < 1e12)) c.malformed("a scale is out of range");
    extents.scale[a] = scales[i];
    extents.out[a] = static_cast<std::int64_t>(extent);
  }
  return extents;
}

ResizedExtents extents_by_sizes(const NodeContext& c, const std::vector<int>& axes, std::vector<std::int64_t> sizes) {
  const Shape in = c.shape(c.input(0));
  ResizedExtents extents{{in.dims().begin(), in.dims().end()}, std::vector<double>(static_cast<std::size_t>(in.rank()), 1.0)};
  if (sizes.size() != axes.size()) c.malformed("there must be one size for each axis");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > (std::int64_t{1} << 40)) c.malformed("a size is out of range");
    extents.scale[static_cast<std::size_t>(axes[i])] = static_cast<double>(sizes[i]) / static_cast<double>(in[axes[i]]);
  }
  if (c.string("keep_aspect_ratio_policy", "stretch") != "stretch") {
    ResizeAttributes kept;
    keep_aspect(c, in, axes, sizes, kept);
    for (const int axis : axes)
      extents.scale[static_cast<std::size_t>(axis)] = static_cast<double>(kept.scale[static_cast<std::size_t>(axis)]);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) extents.out[static_cast<std::size_t>(axes[i])] = sizes[i];
  return extents;
}

std::vector<std::int64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::int64_t> bits;
  for (const double value : values) bits.push_back(real_bits(value));
  return bits;
}

bool is_computed(const NodeContext& c, std::size_t input) { return c.has_input(input) && c.input_constant(input) == nullptr; }

/// Scales, sizes or the extents of the input come at run: the user states the bound of the result.
void resize_at_run(NodeContext& c, const std::vector<int>& axes, const Words& words) {
  const Sources from = sources(c);
  if (words.coordinates == kCropAndResize) c.refuse("tf_crop_and_resize with extents of the run");
  const auto given = [&](std::size_t input) {
    const Constant* constant = c.has_input(input) ? c.input_constant(input) : nullptr;
    return !c.has_input(input) || (constant != nullptr && constant->elements() == 0) ? ValueId() : c.input(input);
  };
  if (!given(from.scales).valid() && !given(from.sizes).valid()) c.refuse("scales that are no input, with extents of the run");
  const std::int64_t policy = word(c, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  c.set_output(0, add_plain(c, "ResizeAtRun", {c.input(0), ValueId(), given(from.scales), given(from.sizes)},
                            {std::vector<std::int64_t>(axes.begin(), axes.end()),
                             {policy},
                             {},
                             {},
                             {words.mode},
                             {words.coordinates},
                             {words.rounding},
                             {real_bits(c.real("cubic_coeff_a", -0.75f))},
                             {c.integer("exclude_outside", 0)},
                             {real_bits(c.real("extrapolation_value", 0.0f))},
                             {c.integer("antialias", 0)}},
                            0, true));
}

}  // namespace

/// The forms that kResize does not take: any type, cropping, antialias, exclude_outside, fractional lengths.
void lower_resize_plain(NodeContext& c) {
  const ValueId x = c.input(0);
  const Words words = words_of(c);
  const std::vector<int> axes = axes_of(c, c.shape(x).rank());
  const Sources from = sources(c);
  const bool crops = words.coordinates == kCropAndResize;
  if (c.bounded(x) || (!crops && (is_computed(c, from.scales) || is_computed(c, from.sizes)))) return resize_at_run(c, axes, words);
  const std::vector<double> region = region_of(c, axes, crops);
  const std::vector<double> scales = read_scales(c, from.scales);
  const ResizedExtents extents = scales.empty() ? extents_by_sizes(c, axes, c.constant_integers(from.sizes, "the sizes"))
                                                : extents_by_scales(c, axes, scales, region, crops);
  c.set_output(0, add_plain(c, "ResizeOfExtents", {x},
                            {extents.out,
                             bits_of(extents.scale),
                             {words.mode},
                             {words.coordinates},
                             {words.rounding},
                             {real_bits(c.real("cubic_coeff_a", -0.75f))},
                             {c.integer("exclude_outside", 0)},
                             {real_bits(c.real("extrapolation_value", 0.0f))},
                             {c.integer("antialias", 0)},
                             bits_of(region)}));
}

}  // namespace sluice::importer
