#include "sluice/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

namespace sluice {
namespace {

int sys_open(const char* path, int flags, unsigned mode) noexcept { return ::open(path, flags, mode); }
int sys_close(int fd) noexcept { return ::close(fd); }
std::int64_t sys_pread(int fd, void* target, std::size_t size, std::int64_t offset) noexcept { return ::pread(fd, target, size, offset); }
std::int64_t sys_pwrite(int fd, const void* source, std::size_t size, std::int64_t offset) noexcept {
  return ::pwrite(fd, source, size, offset);
}

FileState file_state(const struct stat& info) noexcept {
  return {info.st_dev,         info.st_ino,          Bytes(static_cast<std::uint64_t>(info.st_size)),
          info.st_mtim.tv_sec, info.st_mtim.tv_nsec, S_ISREG(info.st_mode)};
}

int sys_state(int fd, FileState* out) noexcept {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return -1;
  *out = file_state(info);
  return 0;
}

int sys_state_at(const char* path, FileState* out) noexcept {
  struct stat info {};
  if (::stat(path, &info) != 0) return -1;
  *out = file_state(info);
  return 0;
}

int sys_fsync(int fd) noexcept { return ::fsync(fd); }
int sys_truncate(int fd, std::int64_t size) noexcept { return ::ftruncate(fd, size); }

int sys_link(int fd, const char* path) noexcept {
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
  return ::linkat(AT_FDCWD, name.data(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int sys_rename(const char* from, const char* to) noexcept { return std::rename(from, to); }
int sys_unlink(const char* path) noexcept { return ::unlink(path); }

int sys_drop_pages(int fd, std::int64_t offset, std::int64_t size) noexcept {
  errno = ::posix_fadvise(fd, offset, size, POSIX_FADV_DONTNEED);
  return errno == 0 ? 0 : -1;
}

int sys_set_direct(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags < 0 ? -1 : ::fcntl(fd, F_SETFL, flags | O_DIRECT);
}

int sys_direct_alignment(int fd) noexcept {
#ifdef STATX_DIOALIGN
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) != 0) {
    return static_cast<int>(std::max(info.stx_dio_mem_align, info.stx_dio_offset_align));
  }
#else
  static_cast<void>(fd);
#endif
  return -1;
}

std::int64_t sys_arrived(std::int64_t result) noexcept { return result; }
int sys_enter_ring() noexcept { return 0; }

constexpr FileOps kSystemOps = {sys_open,     sys_close,     sys_pread,  sys_pwrite, sys_state,      sys_state_at,   sys_fsync,
                                sys_truncate, sys_link,      sys_rename, sys_unlink, sys_drop_pages, sys_set_direct, sys_direct_alignment,
                                sys_arrived,  sys_enter_ring};

std::atomic<const FileOps*> current_ops{&kSystemOps};

}  // namespace

const FileOps& system_file_ops() noexcept { return kSystemOps; }
const FileOps& file_ops() noexcept { return *current_ops.load(std::memory_order_acquire); }
const FileOps* replace_file_ops(const FileOps* ops) noexcept {
  return current_ops.exchange(ops != nullptr ? ops : &kSystemOps, std::memory_order_acq_rel);
}

void FileDescriptor::reset() noexcept {
  if (fd_ >= 0) file_ops().close(fd_);
  fd_ = -1;
}

Result<FileDescriptor> open_for_reading(const std::string& path) {
  const FileOps& ops = file_ops();
  // O_NONBLOCK: opening a FIFO without a writer must not hang. It changes nothing for regular files.
  FileDescriptor file(ops.open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0));
  if (file.get() < 0) return fail(make_io_error(path, "the file cannot be opened", errno));
  FileState state;
  if (ops.state(file.get(), &state) != 0) return fail(make_io_error(path, "the file's state cannot be read", errno));
  if (!state.regular) return fail(ErrorCode::kIo, path, "not a regular file");
  return file;
}

Result<std::vector<std::byte>> read_file(const std::string& path, Bytes limit) {
  SLUICE_ASSIGN_OR_RETURN(FileDescriptor file, open_for_reading(path));
  const FileOps& ops = file_ops();
  FileState state;
  if (ops.state(file.get(), &state) != 0) return fail(make_io_error(path, "the file's state cannot be read", errno));
  const std::uint64_t size = state.size.count();
  if (size > limit.count()) {
    return fail(make_limit_error(ErrorCode::kInvalidArgument, path, "the file is larger than any of its kind", limit.count(), size));
  }
  std::vector<std::byte> bytes(size);
  for (std::size_t done = 0; done < bytes.size();) {
    const std::int64_t got = ops.pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(make_io_error(path, "the file cannot be read", errno));
    if (got == 0) return fail(make_error(ErrorCode::kFileChanged, path, "the file ends early", size, done));
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

namespace {

/// The file that writing to `path` replaces: a link's target, or `path` itself. It must be a regular file, or not exist.
Result<std::string> landing_place(const std::string& path) {
  FileState state;
  if (file_ops().state_at(path.c_str(), &state) != 0) {
    if (errno == ENOENT) return path;
    return fail(make_io_error(path, "the place to write to cannot be examined", errno));
  }
  if (!state.regular) return fail(ErrorCode::kIo, path, "something other than a regular file is there, and is not replaced");
  std::array<char, PATH_MAX> target;
  if (::realpath(path.c_str(), target.data()) == nullptr) return fail(make_io_error(path, "the link cannot be followed", errno));
  return std::string(target.data());
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint32_t> counter{0};
  return path + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

/// What `link` goes through; a minimal root may lack it.
bool can_name_open_files() noexcept { return ::access("/proc/self/fd", X_OK) == 0; }

constexpr int kNameAttempts = 100;  // names left by a killed process with our number

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile result;
  SLUICE_ASSIGN_OR_RETURN(result.path_, landing_place(path));
  result.directory_ = directory_of(result.path_);
  if (can_name_open_files()) {
    result.file_ = FileDescriptor(file_ops().open(result.directory_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666));
    if (result.file_.get() >= 0) return result;
    const bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;  // to the file system or the kernel
    if (!unknown) return fail(make_io_error(path, "no file can be made in this directory", errno));
  }
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    std::string name = temporary_name(result.path_);
    result.file_ = FileDescriptor(file_ops().open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (result.file_.get() >= 0) {
      result.temporary_path_ = std::move(name);
      return result;
    }
    if (errno != EEXIST) return fail(make_io_error(path, "no file can be made in this directory", errno));
  }
  return fail(make_io_error(path, "every temporary name is taken", EEXIST));
}

Status AtomicFile::write_at(Bytes offset, std::span<const std::byte> bytes) {
  const FileOps& ops = file_ops();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::int64_t wrote =
        ops.pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<std::int64_t>(offset.count() + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(make_io_error(path_, "writing failed", errno));
    if (wrote == 0) return fail(make_io_error(path_, "writing failed", ENOSPC));
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

Status AtomicFile::resize(Bytes size) {
  if (file_ops().truncate(file_.get(), static_cast<std::int64_t>(size.count())) != 0) {
    return fail(make_io_error(path_, "the file cannot be given its size", errno));
  }
  return {};
}

Status AtomicFile::name_temporarily() {
  for (int attempt = 0; temporary_path_.empty(); ++attempt) {
    std::string name = temporary_name(path_);
    if (file_ops().link(file_.get(), name.c_str()) == 0) {
      temporary_path_ = std::move(name);
    } else if (errno != EEXIST || attempt == kNameAttempts) {
      return fail(make_io_error(path_, "the finished file cannot be given a temporary name", errno));
    }
  }
  return {};
}

Status AtomicFile::commit() {
  const FileOps& ops = file_ops();
  if (ops.fsync(file_.get()) != 0) return fail(make_io_error(path_, "the file cannot be synced to disk", errno));
  const FileDescriptor directory(ops.open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (directory.get() < 0) return fail(make_io_error(path_, "its directory cannot be opened", errno));
  SLUICE_RETURN_IF_ERROR(name_temporarily());
  file_.reset();
  if (ops.rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return fail(make_io_error(path_, "the finished file cannot be given its name", errno));
  }
  temporary_path_.clear();
  // EINVAL: a file system that cannot sync directories keeps its own order.
  if (ops.fsync(directory.get()) != 0 && errno != EINVAL) {
    const int os_error = errno;
    // The caller is told that there is no new file, so there must not be one.
    ops.unlink(path_.c_str());
    return fail(make_io_error(path_, "its directory cannot be synced to disk", os_error));
  }
  return {};
}

void AtomicFile::abandon() noexcept {
  file_.reset();
  if (!temporary_path_.empty()) file_ops().unlink(temporary_path_.c_str());
  temporary_path_.clear();
}

void AtomicFile::swap(AtomicFile& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(directory_, other.directory_);
  std::swap(temporary_path_, other.temporary_path_);
  std::swap(file_, other.file_);
}

}  // namespace sluice
