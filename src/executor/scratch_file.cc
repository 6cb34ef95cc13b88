#include "sluice/executor/scratch_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace sluice::executor {
namespace {

/// A file without a name; where the file system knows none, one that loses its name at once.
int open_nameless(const std::string& directory) {
  const FileOps& ops = file_ops();
  const int file = ops.open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  for (int number = 0; number < 100; ++number) {
    const std::string path = directory + "/.sluice-scratch-" + std::to_string(::getpid()) + "-" + std::to_string(number);
    const int named = ops.open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (named >= 0) ops.unlink(path.c_str());
    if (named >= 0 || errno != EEXIST) return named;
  }
  return -1;
}

/// Growing a file beyond RLIMIT_FSIZE would kill the process (SIGXFSZ).
bool within_limit(Bytes size) noexcept {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || size.count() <= limit.rlim_cur;
}

}  // namespace

Result<ScratchFile> ScratchFile::create(const std::string& directory, Bytes size) {
  if (!within_limit(size)) return fail(make_io_error(directory, "the scratch file would be larger than the system lets files be", EFBIG));
  FileDescriptor file(open_nameless(directory));
  if (file.get() < 0) return fail(make_io_error(directory, "no scratch file can be made there", errno));
  if (file_ops().truncate(file.get(), static_cast<std::int64_t>(size.count())) != 0)
    return fail(make_io_error(directory, "there is no room for the scratch file", errno));
  // Only a full disk is an error here: where a file system cannot set room aside, a write shows whether there is any.
  if (size > Bytes() && ::fallocate(file.get(), 0, 0, static_cast<off_t>(size.count())) != 0 && (errno == ENOSPC || errno == EDQUOT))
    return fail(make_io_error(directory, "there is no room for the scratch file", errno));
  return ScratchFile(std::move(file), directory);
}

Status ScratchFile::write(Bytes offset, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const std::int64_t written = file_ops().pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<std::int64_t>(offset.count()));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(make_io_error(directory_, "the scratch file cannot be written", written < 0 ? errno : ENOSPC));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += Bytes(static_cast<std::uint64_t>(written));
  }
  return {};
}

Status ScratchFile::read(Bytes offset, std::span<std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const std::int64_t got = file_ops().pread(file_.get(), bytes.data(), bytes.size(), static_cast<std::int64_t>(offset.count()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(make_io_error(directory_, "the scratch file cannot be read back", got < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += Bytes(static_cast<std::uint64_t>(got));
  }
  return {};
}

}  // namespace sluice::executor
