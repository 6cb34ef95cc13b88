// A picture becomes a model's input: decode, resize the short side, cut out the centre, order the channels, scale, mean, deviation.
//
//     file --stb_image--> u8 RGB --stb_image_resize, the window alone--> f32 --(v * scale - mean) / std--> tensor
//
// Other proportions than the input's are cut off, stretched or filled up with grey (`ImageFit`).
//
// The filter is a triangle that widens with the reduction (no aliasing), as training pipelines do. A rule that resizes holds for a picture
// of the model's size too: a model trained on the centre of a larger picture expects that margin. Without one (`none`) such a picture's
// values are used unchanged. All memory of decoding is given back before the caller goes on: it would count in a process budget.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/model/graph.h"
#include "src/cli/host_tensor.h"

namespace sluice::cli {

/// How a picture of other proportions than the input's is made to fit.
enum class ImageFit {
  kCrop,       // scale the short side, cut the rest off at both ends
  kStretch,    // scale each side by itself
  kLetterbox,  // scale the long side, grey bars (114 of 255) at both ends of the other
};
/// Their names on the command line, in this order.
inline constexpr std::array<const char*, 3> kImageFits = {"crop", "stretch", "letterbox"};

/// What the command line says about pictures; what it leaves open comes from the preset, then from the model's metadata.
struct ImageOptions {
  std::string preset;  // imagenet, imagenet-caffe, none; empty: the model's own
  std::optional<std::array<float, 3>> mean;
  std::optional<std::array<float, 3>> stddev;
  std::optional<float> scale;
  bool bgr = false;
  std::string fit = kImageFits[0];
};

/// Is anything said about pictures?
bool says_anything(const ImageOptions& options);
/// `name` is one of kImageFits.
ImageFit fit_of(std::string_view name);

/// The axes of an input's shape that are the picture's extents.
struct ImageLayout {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  bool channels_last = false;
};

/// Nothing when `shape` is not that of one picture: [N,C,H,W] or [N,H,W,C] with N = 1 and C = 1 or 3, N may be absent.
std::optional<ImageLayout> image_layout(const Shape& shape) noexcept;

/// The rule that applies: preset, else metadata, else the plain 0..255 values; then the overrides. Throws Failure for an unknown preset.
model::Preprocess preprocessing(const ImageOptions& options, const model::Preprocess& metadata, const ImageLayout& layout);

/// Whether the name ends like a picture that `load_image` decodes.
bool is_image_name(const std::string& path);

/// Does the rule change the values 0 to 255 of a picture?
bool changes_values(const model::Preprocess& rule);

/// The input that a picture becomes.
struct ImageRequest {
  Shape shape;  // ONNX order
  DType dtype = DType::kF32;
  model::Preprocess rule;
  ImageFit fit = ImageFit::kCrop;
  std::uint64_t memory_limit_bytes = ~std::uint64_t{0};  // what decoding may take
};

/// Decodes and prepares `path` for an input. f32, or the input's own integer type when preprocessing leaves the values alone. A picture
/// that needs more than the limit is refused (kBudgetTooSmall) before it is decoded.
HostTensor load_image(const std::string& path, const ImageRequest& request);

/// A window of the picture scaled to full_width x full_height. Interleaved u8 in, interleaved f32 out. For tests.
struct ResizeRequest {
  std::int64_t width = 0, height = 0, channels = 0;  // of the source
  std::int64_t full_width = 0, full_height = 0;      // after scaling
  std::int64_t left = 0, top = 0;                    // of the window
  std::int64_t window_width = 0, window_height = 0;
};
std::vector<float> resize_window(std::span<const std::uint8_t> pixels, const ResizeRequest& request);

}  // namespace sluice::cli
