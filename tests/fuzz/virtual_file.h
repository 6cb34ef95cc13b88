// The file of a fuzzer's input: its bytes lie in memory, and behind them zeros, as far as the input says that the file goes. So an input of
// a few KiB can be a model with gigabytes of weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "sluice/core/file.h"

namespace sluice {

class VirtualFile {
 public:
  /// Every path leads to `bytes`, followed by zeros up to `size`, from now on.
  static void install(std::span<const std::uint8_t> bytes, std::uint64_t size) {
    bytes_ = bytes;
    size_ = std::max<std::uint64_t>(bytes.size(), size);
    static const FileOps ops = make_ops();
    replace_file_ops(&ops);
  }

 private:
  static int state(FileState* out) noexcept {
    *out = {};
    out->size = Bytes(size_);
    out->regular = true;
    return 0;
  }

  static std::int64_t read(int, void* target, std::size_t size, std::int64_t offset) noexcept {
    const auto begin = std::min(static_cast<std::uint64_t>(offset), size_);
    const auto got = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - begin));
    std::memset(target, 0, got);
    if (begin < bytes_.size()) std::memcpy(target, bytes_.data() + begin, std::min<std::size_t>(got, bytes_.size() - begin));
    return static_cast<std::int64_t>(got);
  }

  static FileOps make_ops() {
    FileOps ops = system_file_ops();
    ops.open = [](const char*, int, unsigned) noexcept { return 1 << 20; };
    ops.close = [](int) noexcept { return 0; };
    ops.state = [](int, FileState* out) noexcept { return state(out); };
    ops.state_at = [](const char*, FileState* out) noexcept { return state(out); };
    ops.pread = read;
    ops.drop_pages = [](int, std::int64_t, std::int64_t) noexcept { return 0; };
    ops.direct_alignment = [](int) noexcept { return 0; };
    return ops;
  }

  static inline std::span<const std::uint8_t> bytes_;
  static inline std::uint64_t size_ = 0;
};

}  // namespace sluice
