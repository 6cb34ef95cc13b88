// The memory of stb_image, within a bound. A picture's header says how large it is, and so what decoding may take; a chunk that claims a
// gigabyte, or a stream that unpacks to one, must not have it.
#pragma once

#include <cstddef>

namespace sluice::cli {

/// While it lives, what stb_image asks for in this thread at once is at most `bytes`; more is refused, as if there were none.
class PictureMemory {
 public:
  explicit PictureMemory(std::size_t bytes) noexcept;
  ~PictureMemory();
  PictureMemory(const PictureMemory&) = delete;
  PictureMemory& operator=(const PictureMemory&) = delete;

  bool refused_any() const noexcept;
};

void* picture_malloc(std::size_t bytes) noexcept;
void* picture_realloc(void* memory, std::size_t bytes) noexcept;

}  // namespace sluice::cli
