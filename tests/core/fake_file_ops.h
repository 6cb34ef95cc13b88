// System calls for tests: a file that lives in memory, and calls that fail or stop short at a chosen place.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "sluice/core/file.h"

namespace sluice {

/// Puts a table in place for a scope.
class ScopedFileOps {
 public:
  explicit ScopedFileOps(const FileOps& ops) : ops_(ops), former_(replace_file_ops(&ops_)) {}
  ScopedFileOps(const ScopedFileOps&) = delete;
  ScopedFileOps& operator=(const ScopedFileOps&) = delete;
  ~ScopedFileOps() { replace_file_ops(former_); }

 private:
  FileOps ops_;
  const FileOps* former_;
};

/// Every path is this one regular file. Tests that open thousands of broken files need no disk for it.
class MemoryFile {
 public:
  static std::string& bytes() {
    static std::string value;
    return value;
  }

  static FileOps ops() {
    FileOps ops = system_file_ops();
    ops.open = [](const char*, int, unsigned) noexcept { return kDescriptor; };
    ops.close = [](int) noexcept { return 0; };
    ops.state = [](int, FileState* out) noexcept { return state(out); };
    ops.state_at = [](const char*, FileState* out) noexcept { return state(out); };
    ops.drop_pages = [](int, std::int64_t, std::int64_t) noexcept { return 0; };
    ops.direct_alignment = [](int) noexcept { return 0; };
    ops.pread = [](int, void* target, std::size_t size, std::int64_t offset) noexcept -> std::int64_t {
      const auto begin = std::min(static_cast<std::size_t>(offset), bytes().size());
      const std::size_t got = std::min(size, bytes().size() - begin);
      std::memcpy(target, bytes().data() + begin, got);
      return static_cast<std::int64_t>(got);
    };
    return ops;
  }

 private:
  static constexpr int kDescriptor = 1 << 20;  // none that the system would give

  static int state(FileState* out) noexcept {
    *out = {};
    out->size = Bytes(bytes().size());
    out->regular = true;
    return 0;
  }
};

/// The system's calls, of which one fails: number `fail_at`, counted over all kinds that can fail.
struct FaultPlan {
  int fail_at = -1;  // none
  int error = EIO;
  int calls = 0;
  std::size_t most_bytes = SIZE_MAX;  // of one read or write
  int interruptions = 0;              // EINTRs before each read or write that succeeds
  int interrupted = 0;

  static FaultPlan& current() {
    static FaultPlan plan;
    return plan;
  }

  bool fails() noexcept {
    if (calls++ != fail_at) return false;
    errno = error;
    return true;
  }
  bool interrupts() noexcept {
    if (interrupted >= interruptions) {
      interrupted = 0;
      return false;
    }
    ++interrupted;
    errno = EINTR;
    return true;
  }

  static FileOps ops() {
    FileOps ops = system_file_ops();
    ops.open = [](const char* path, int flags, unsigned mode) noexcept {
      return current().fails() ? -1 : system_file_ops().open(path, flags, mode);
    };
    ops.pread = [](int fd, void* target, std::size_t size, std::int64_t offset) noexcept -> std::int64_t {
      if (current().interrupts() || current().fails()) return -1;
      return system_file_ops().pread(fd, target, std::min(size, current().most_bytes), offset);
    };
    ops.pwrite = [](int fd, const void* source, std::size_t size, std::int64_t offset) noexcept -> std::int64_t {
      if (current().interrupts() || current().fails()) return -1;
      return system_file_ops().pwrite(fd, source, std::min(size, current().most_bytes), offset);
    };
    ops.state = [](int fd, FileState* out) noexcept { return current().fails() ? -1 : system_file_ops().state(fd, out); };
    ops.fsync = [](int) noexcept { return current().fails() ? -1 : 0; };  // the disk's time is not what these tests are about
    ops.truncate = [](int fd, std::int64_t size) noexcept { return current().fails() ? -1 : system_file_ops().truncate(fd, size); };
    ops.link = [](int fd, const char* path) noexcept { return current().fails() ? -1 : system_file_ops().link(fd, path); };
    ops.rename = [](const char* from, const char* to) noexcept { return current().fails() ? -1 : system_file_ops().rename(from, to); };
    return ops;
  }
};

}  // namespace sluice
