#include "src/cli/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

[[noreturn]] void raise_io(const std::string& path, const char* reason) { raise(make_io_error(path, reason, errno)); }

bool write_all(std::FILE* file, std::span<const std::byte> bytes) {
  return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

}  // namespace

File open_for_reading(const std::string& path) {
  File file(std::fopen(path.c_str(), "rbe"));
  if (!file) raise_io(path, "cannot be opened");
  struct stat info {};
  if (::fstat(::fileno(file.get()), &info) != 0) raise_io(path, "cannot be examined");
  if (!S_ISREG(info.st_mode)) raise(make_error(ErrorCode::kIo, path, "is not a regular file"));
  return file;
}

std::uint64_t size_of_file(std::FILE* file, const std::string& path) {
  struct stat info {};
  if (::fstat(::fileno(file), &info) != 0) raise_io(path, "cannot be examined");
  return static_cast<std::uint64_t>(info.st_size);
}

void read_exactly(std::FILE* file, std::span<std::byte> out, const std::string& path) {
  if (out.empty() || std::fread(out.data(), 1, out.size(), file) == out.size()) return;
  if (std::ferror(file) != 0) raise_io(path, "cannot be read");
  raise(make_error(ErrorCode::kInvalidArgument, path, "the file ends before its data does"));
}

void write_atomically(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  File file(std::fopen(temporary.c_str(), "wbe"));
  if (!file) raise_io(path, "cannot be written");
  const bool written = write_all(file.get(), head) && write_all(file.get(), body) && std::fflush(file.get()) == 0;
  if (!written || std::fclose(file.release()) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int os_error = errno;
    ::unlink(temporary.c_str());
    raise(make_io_error(path, "cannot be written", os_error));
  }
}

}  // namespace sluice::cli
