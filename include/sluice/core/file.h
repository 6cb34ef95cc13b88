// Files as the operating system gives them, behind one table of calls, so that a test can make any of them fail or stop short.
//
// Everything that reads a model or plan and everything that writes one goes through `file_ops()`. These files are read, never mapped: a
// mapped file that somebody cuts raises a signal, a read one gives an Error. (The importer, a tool's library, maps ONNX files.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/units.h"

namespace sluice {

/// Identifies a file and its state.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  Bytes size;
  std::int64_t modified_s = 0;
  std::int64_t modified_ns = 0;
  bool regular = false;
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// The system calls, with their usual meaning: -1 and errno on failure.
struct FileOps {
  int (*open)(const char* path, int flags, unsigned mode) noexcept;
  int (*close)(int fd) noexcept;
  std::int64_t (*pread)(int fd, void* target, std::size_t size, std::int64_t offset) noexcept;
  std::int64_t (*pwrite)(int fd, const void* source, std::size_t size, std::int64_t offset) noexcept;
  int (*state)(int fd, FileState* out) noexcept;               // fstat
  int (*state_at)(const char* path, FileState* out) noexcept;  // stat
  int (*fsync)(int fd) noexcept;
  int (*truncate)(int fd, std::int64_t size) noexcept;
  int (*link)(int fd, const char* path) noexcept;  // gives a file that has no name (O_TMPFILE) its first
  int (*rename)(const char* from, const char* to) noexcept;
  int (*unlink)(const char* path) noexcept;
  int (*drop_pages)(int fd, std::int64_t offset, std::int64_t size) noexcept;  // posix_fadvise(DONTNEED)
  int (*set_direct)(int fd) noexcept;                                          // turns O_DIRECT on
  /// The alignment that direct reads of `fd` need; 0 when they are not possible, -1 when the system cannot say.
  int (*direct_alignment)(int fd) noexcept;
  /// Lets a test see, and replace, the result of a read that did not use `pread` (io_uring): bytes or -errno.
  std::int64_t (*arrived)(std::int64_t result) noexcept;
  /// Asked before each entering of an io_uring: 0, or the -errno with which it is refused in the system's place.
  int (*enter_ring)() noexcept;
};

const FileOps& system_file_ops() noexcept;
/// The calls in use: the system's unless a test has replaced them.
const FileOps& file_ops() noexcept;
/// Replaces the calls for the whole process and returns the former table; `nullptr` restores the system's. `ops` must outlive its use.
const FileOps* replace_file_ops(const FileOps* ops) noexcept;

/// An open descriptor, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() noexcept = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const noexcept { return fd_; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// Opens a regular file for reading. Never blocks: a FIFO, device or directory is refused. Errors: kIo.
Result<FileDescriptor> open_for_reading(const std::string& path);

/// Reads a whole regular file of at most `limit` bytes. Errors: kIo; kInvalidArgument beyond the limit; kFileChanged when it shrinks.
Result<std::vector<std::byte>> read_file(const std::string& path, Bytes limit);

/// A file that appears at `path` whole or not at all: written without a name in the same directory, synced, given a temporary name,
/// renamed, and the directory synced. Until `commit` succeeds, `path` is as it was. A process that is killed before that leaves no file; if
/// the file system has no files without names, the temporary name exists from the start and the destructor removes it. Where `path` is a
/// symbolic link to a file, that file is replaced and the link stays.
class AtomicFile {
 public:
  AtomicFile() noexcept = default;
  AtomicFile(AtomicFile&& other) noexcept { swap(other); }
  AtomicFile& operator=(AtomicFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~AtomicFile() { abandon(); }

  /// Errors: kIo, also when something other than a regular file is at `path`: a device or a FIFO is not replaced.
  static Result<AtomicFile> create(const std::string& path);
  /// Errors: kIo.
  Status write_at(Bytes offset, std::span<const std::byte> bytes);
  /// Sets the length; bytes never written read as zero. Errors: kIo.
  Status resize(Bytes size);
  /// Errors: kIo, and then nothing new is at `path` (nor the old file, where only the directory's sync failed).
  Status commit();

 private:
  void abandon() noexcept;
  void swap(AtomicFile& other) noexcept;
  Status name_temporarily();

  std::string path_;
  std::string directory_;
  std::string temporary_path_;  // empty: the file has no name yet, or its own
  FileDescriptor file_;
};

}  // namespace sluice
