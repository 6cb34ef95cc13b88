#include "picture.h"

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#include <stb/stb_image.h>

namespace example {

Picture read_picture(const char* path) {
  int width = 0, height = 0, channels = 0;
  unsigned char* pixels = stbi_load(path, &width, &height, &channels, 3);
  if (pixels == nullptr) {
    std::fprintf(stderr, "%s is no picture\n", path);
    std::exit(2);
  }
  Picture picture = blank(width, height, 0);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = pixels[i];
  stbi_image_free(pixels);
  return picture;
}

}  // namespace example
