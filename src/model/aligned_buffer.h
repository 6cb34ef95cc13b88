// Private memory that direct reads can fill.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "sluice/core/units.h"
#include "src/core/wipe.h"

namespace sluice::model {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 4096;

  /// `data()` is null when the system has no memory. The size is rounded up to whole blocks.
  static AlignedBuffer allocate(Bytes size) noexcept {
    AlignedBuffer buffer;
    buffer.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, align_up(size.count(), kAlignment))));
    return buffer;
  }

  std::byte* data() const noexcept { return data_.get(); }

  /// What is in its first `size` bytes at the end is overwritten before the memory goes.
  void keep_secret(Bytes size) noexcept { data_.get_deleter().secret = size; }

 private:
  struct Free {
    Bytes secret;
    void operator()(std::byte* memory) const noexcept {
      wipe({memory, secret.count()});
      std::free(memory);
    }
  };
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace sluice::model
