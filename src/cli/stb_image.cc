// The one place where stb_image's code is compiled. Only the formats that `sluice run` takes, within the memory that a picture may have.
#include <cstdint>
#include <cstdlib>

#include "src/cli/picture_memory.h"

namespace sluice::cli {
namespace {

struct Bound {
  std::size_t bytes = SIZE_MAX;
  bool refused_any = false;
};
thread_local Bound bound;

bool allowed(std::size_t bytes) noexcept {
  bound.refused_any = bound.refused_any || bytes > bound.bytes;
  return bytes <= bound.bytes;
}

}  // namespace

PictureMemory::PictureMemory(std::size_t bytes) noexcept { bound = {bytes, false}; }
PictureMemory::~PictureMemory() { bound = {}; }
bool PictureMemory::refused_any() const noexcept { return bound.refused_any; }

void* picture_malloc(std::size_t bytes) noexcept { return allowed(bytes) ? std::malloc(bytes) : nullptr; }
void* picture_realloc(void* memory, std::size_t bytes) noexcept { return allowed(bytes) ? std::realloc(memory, bytes) : nullptr; }

}  // namespace sluice::cli

#define STBI_MALLOC(bytes) sluice::cli::picture_malloc(bytes)
#define STBI_REALLOC(memory, bytes) sluice::cli::picture_realloc(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS 16384
#include <stb/stb_image.h>
