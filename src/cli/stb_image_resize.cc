// The one place where stb_image_resize's code is compiled.
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#include <stb/stb_image_resize.h>

#include <new>

#include "src/cli/image.h"

namespace sluice::cli {

// The result is rounded to whole values, as imaging libraries do: models were trained on, and their scores measured with, such pictures.
std::vector<float> resize_window(std::span<const std::uint8_t> pixels, const ResizeRequest& request) {
  const auto narrow = [](std::int64_t extent) { return static_cast<int>(extent); };  // decoded pictures are at most 16384 wide
  const auto ratio = [](std::int64_t full, std::int64_t source) { return static_cast<float>(full) / static_cast<float>(source); };
  constexpr int kNoAlpha = -1;
  std::vector<std::uint8_t> window(static_cast<std::size_t>(request.window_width * request.window_height * request.channels));
  // The offsets are those of the window in the scaled picture. The triangle widens with the reduction.
  const int resized = stbir_resize_subpixel(
      pixels.data(), narrow(request.width), narrow(request.height), 0, window.data(), narrow(request.window_width),
      narrow(request.window_height), 0, STBIR_TYPE_UINT8, narrow(request.channels), kNoAlpha, 0, STBIR_EDGE_CLAMP, STBIR_EDGE_CLAMP,
      STBIR_FILTER_TRIANGLE, STBIR_FILTER_TRIANGLE, STBIR_COLORSPACE_LINEAR, nullptr, ratio(request.full_width, request.width),
      ratio(request.full_height, request.height), static_cast<float>(request.left), static_cast<float>(request.top));
  if (resized == 0) throw std::bad_alloc();  // its one failure, the arguments being sound
  return {window.begin(), window.end()};
}

}  // namespace sluice::cli
