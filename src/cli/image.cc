#include "src/cli/image.h"

#include <stb/stb_image.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>

#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/jpeg_tables.h"
#include "src/cli/picture_memory.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

struct FreePixels {
  void operator()(stbi_uc* pixels) const noexcept { stbi_image_free(pixels); }
};

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::unique_ptr<stbi_uc, FreePixels> pixels;
};

/// What stb_image needs at its peak: the compressed bytes twice, and for each pixel at most 16 bytes of a 16-bit picture before and after
/// its conversion (12 of a progressive JPEG's coefficients) beside the result.
std::uint64_t decoding_bytes(std::int64_t width, std::int64_t height, std::uint64_t file_size) {
  constexpr std::uint64_t kBytesPerPixel = 20;
  return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) * kBytesPerPixel + 2 * file_size;
}

/// The size to which a picture must be scaled down, its proportions kept, to be decoded within the limit; empty where that leaves nothing.
std::string size_that_fits(std::int64_t width, std::int64_t height, std::uint64_t needed, std::uint64_t limit) {
  const double scale = std::sqrt(static_cast<double>(limit) / static_cast<double>(needed));
  const auto fitting_width = static_cast<std::int64_t>(scale * static_cast<double>(width));
  const auto fitting_height = static_cast<std::int64_t>(scale * static_cast<double>(height));
  return fitting_width < 1 || fitting_height < 1 ? "" : fmt::format("a picture of {} x {}, ", fitting_width, fitting_height);
}

Picture decode(const std::string& path, int channels, std::uint64_t memory_limit_bytes) {
  const FileDescriptor descriptor = unwrap(open_for_reading(path));
  const std::uint64_t file_size = size_of_file(descriptor, path);
  const std::unique_ptr<std::FILE, CloseFile> file(::fdopen(::dup(descriptor.get()), "rb"));
  if (!file) raise(make_io_error(path, "cannot be read", errno));
  if (!huffman_tables_fit(file.get()))
    raise(make_error(ErrorCode::kInvalidArgument, path, "is a damaged picture: a Huffman table has more than 256 codes"));
  int width = 0;
  int height = 0;
  int stored_channels = 0;
  if (stbi_info_from_file(file.get(), &width, &height, &stored_channels) == 0) {
    raise(make_error(ErrorCode::kInvalidArgument, path, "is not a PNG or JPEG picture that can be read"));
  }
  const std::uint64_t needed = decoding_bytes(width, height, file_size);
  if (needed > memory_limit_bytes) {
    constexpr std::uint64_t kOtherPages = 256 * 1024;  // what one process touches before it decodes and another does not
    throw Failure(
        ErrorCode::kBudgetTooSmall,
        fmt::format("budget too small: {}: decoding a picture of {} x {} takes {} bytes, the budget leaves {}; give {} more, {}or "
                    "a .npy file",
                    path, width, height, needed, memory_limit_bytes, rounded_up(needed - memory_limit_bytes + kOtherPages),
                    size_that_fits(width, height, needed, memory_limit_bytes)));
  }
  Picture picture{width, height, nullptr};
  constexpr std::uint64_t kDecoder = 64 * 1024;  // its tables, beside a picture of any size
  const PictureMemory memory(std::max(needed, kDecoder));
  picture.pixels.reset(stbi_load_from_file(file.get(), &width, &height, &stored_channels, channels));
  if (!picture.pixels && memory.refused_any())
    raise(make_error(ErrorCode::kInvalidArgument, path, "is a damaged picture: it holds more than its size says"));
  if (!picture.pixels) raise(make_error(ErrorCode::kInvalidArgument, path, "is a damaged picture"));
  return picture;
}

std::span<const std::uint8_t> pixels_of(const Picture& picture, const ImageLayout& layout) {
  return {picture.pixels.get(), static_cast<std::size_t>(picture.width * picture.height * layout.channels)};
}

std::int64_t nearest(std::int64_t a, std::int64_t b) { return (2 * a + b) / (2 * b); }

/// The picture at the input's size, interleaved, 0..255: scaled so that it covers the crop, whatever the rule says, and cut.
std::vector<float> crop(const Picture& picture, const ImageLayout& layout, const model::Preprocess& rule) {
  const std::int64_t short_side = std::min(picture.width, picture.height);
  const auto covering = [&](std::int64_t wanted, std::int64_t extent) {
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(wanted) * static_cast<double>(short_side) / static_cast<double>(extent)));
  };
  const std::int64_t scaled_short =
      std::max({rule.resize_short_side, covering(layout.width, picture.width), covering(layout.height, picture.height)});
  ResizeRequest request;
  request.width = picture.width;
  request.height = picture.height;
  request.channels = layout.channels;
  request.full_width = std::max(layout.width, nearest(picture.width * scaled_short, short_side));
  request.full_height = std::max(layout.height, nearest(picture.height * scaled_short, short_side));
  request.window_width = layout.width;
  request.window_height = layout.height;
  request.left = (request.full_width - layout.width) / 2;
  request.top = (request.full_height - layout.height) / 2;
  return resize_window(pixels_of(picture, layout), request);
}

/// The whole picture at `width` x `height`.
std::vector<float> stretch(const Picture& picture, const ImageLayout& layout, std::int64_t width, std::int64_t height) {
  return resize_window(pixels_of(picture, layout), {.width = picture.width,
                                                    .height = picture.height,
                                                    .channels = layout.channels,
                                                    .full_width = width,
                                                    .full_height = height,
                                                    .window_width = width,
                                                    .window_height = height});
}

/// The whole picture in its own proportions, in the middle of grey.
std::vector<float> letterbox(const Picture& picture, const ImageLayout& layout) {
  constexpr float kGrey = 114.0f;  // what detectors that expect bars were trained with
  const bool wide = picture.width * layout.height >= picture.height * layout.width;
  const std::int64_t width = wide ? layout.width : std::max<std::int64_t>(1, nearest(picture.width * layout.height, picture.height));
  const std::int64_t height = wide ? std::max<std::int64_t>(1, nearest(picture.height * layout.width, picture.width)) : layout.height;
  const std::vector<float> inner = stretch(picture, layout, width, height);
  std::vector<float> whole(static_cast<std::size_t>(layout.width * layout.height * layout.channels), kGrey);
  const std::int64_t left = (layout.width - width) / 2, top = (layout.height - height) / 2, row = width * layout.channels;
  for (std::int64_t y = 0; y < height; ++y)
    std::copy_n(inner.begin() + y * row, row, whole.begin() + ((top + y) * layout.width + left) * layout.channels);
  return whole;
}

std::vector<float> fit(const Picture& picture, const ImageLayout& layout, const ImageRequest& request) {
  switch (request.fit) {
    case ImageFit::kStretch:
      return stretch(picture, layout, layout.width, layout.height);
    case ImageFit::kLetterbox:
      return letterbox(picture, layout);
    case ImageFit::kCrop:
      break;
  }
  return crop(picture, layout, request.rule);
}

}  // namespace

bool changes_values(const model::Preprocess& rule) {
  const auto all = [](const std::array<float, 3>& values, float same) {
    return std::all_of(values.begin(), values.end(), [same](float value) { return value == same; });
  };
  return rule.scale != 1.0f || !all(rule.mean, 0.0f) || !all(rule.stddev, 1.0f);
}

std::optional<ImageLayout> image_layout(const Shape& shape) noexcept {
  const int first = shape.rank() - 3;
  if (first < 0 || shape.count(0, first) != 1 || shape.element_count() == 0) return std::nullopt;
  const auto is_channels = [](std::int64_t extent) { return extent == 1 || extent == 3; };
  if (is_channels(shape[first])) return ImageLayout{shape[first + 1], shape[first + 2], shape[first], false};
  if (is_channels(shape[first + 2])) return ImageLayout{shape[first], shape[first + 1], shape[first + 2], true};
  return std::nullopt;
}

model::Preprocess preprocessing(const ImageOptions& options, const model::Preprocess& metadata, const ImageLayout& layout) {
  model::Preprocess rule = metadata;
  // The usual margin: 256 for a crop of 224.
  const std::int64_t margin_side = (std::min(layout.height, layout.width) * 256 + 112) / 224;
  if (options.preset == "imagenet") {
    rule = {true, margin_side, 0, false, 1.0f / 255.0f, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  } else if (options.preset == "imagenet-caffe") {
    rule = {true, margin_side, 0, true, 1.0f, {104.0f, 117.0f, 123.0f}, {1, 1, 1}};
  } else if (options.preset == "none") {
    rule = {};
  } else if (!options.preset.empty()) {
    raise(make_error(ErrorCode::kInvalidArgument, "--preprocess",
                     fmt::format("is one of imagenet, imagenet-caffe and none, not '{}'", options.preset).c_str()));
  }
  if (options.mean) rule.mean = *options.mean;
  if (options.stddev) rule.stddev = *options.stddev;
  if (options.scale) rule.scale = *options.scale;
  if (options.bgr) rule.bgr = true;
  return rule;
}

bool says_anything(const ImageOptions& options) {
  return !options.preset.empty() || options.mean || options.stddev || options.scale || options.bgr || options.fit != "crop";
}

ImageFit fit_of(std::string_view name) {
  const auto found = std::find(kImageFits.begin(), kImageFits.end(), name);
  SLUICE_CHECK(found != kImageFits.end(), "the option takes these names alone");
  return static_cast<ImageFit>(found - kImageFits.begin());
}

bool is_image_name(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string extension = path.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == "png" || extension == "jpg" || extension == "jpeg";
}

HostTensor load_image(const std::string& path, const ImageRequest& request) {
  const std::optional<ImageLayout> layout = image_layout(request.shape);
  const model::Preprocess& rule = request.rule;
  if (!layout) {
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("{}: an input of shape {} does not take a picture", path, shape_text(request.shape)));
  }
  const bool keeps_integers = request.dtype == DType::kU8 && !changes_values(rule);
  std::vector<float> values;
  {
    const Picture picture = decode(path, static_cast<int>(layout->channels), request.memory_limit_bytes);
    values = fit(picture, *layout, request);
  }
  HostTensor tensor = make_host_tensor(keeps_integers ? DType::kU8 : DType::kF32, request.shape);
  const std::int64_t plane = layout->height * layout->width;
  for (std::int64_t c = 0; c < layout->channels; ++c) {
    const std::int64_t source = rule.bgr ? layout->channels - 1 - c : c;
    const auto channel = static_cast<std::size_t>(c);
    for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
      const float raw = values[static_cast<std::size_t>(pixel * layout->channels + source)];
      const auto at = static_cast<std::size_t>(layout->channels_last ? pixel * layout->channels + c : c * plane + pixel);
      if (keeps_integers) {
        tensor.data[at] = static_cast<std::byte>(std::lround(raw));
      } else {
        tensor.as<float>()[at] = (raw * rule.scale - rule.mean[channel]) / rule.stddev[channel];
      }
    }
  }
  return tensor;
}

}  // namespace sluice::cli
