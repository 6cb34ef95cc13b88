#include "src/importer/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace sluice::importer {
namespace {

/// Closes a descriptor when the scope ends.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(-1); }
  void reset(int fd) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map(int descriptor, const std::string& name) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return fail(make_io_error(name, "the file cannot be examined", errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kInvalidModel, name, "only a regular file can hold a model or its data");
  if (info.st_size == 0) return fail(ErrorCode::kInvalidModel, name, "the file is empty");
  std::shared_ptr<MappedFile> file(new MappedFile());
  void* address = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return fail(make_io_error(name, "the file cannot be mapped", errno));
  file->data_ = static_cast<const std::byte*>(address);
  file->size_ = static_cast<std::size_t>(info.st_size);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return fail(make_io_error(path, "the file cannot be opened", errno));
  return map(fd.get(), path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_beneath(const std::string& directory, const std::string& location) {
  if (location.empty() || location.find('\0') != std::string::npos || location.front() == '/' || location.size() > 4096)
    return fail(ErrorCode::kInvalidModel, location, "external data must be named by a path relative to the model");
  Descriptor at(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (at.get() < 0) return fail(make_io_error(directory, "the model's directory cannot be opened", errno));
  // Component by component, so that no symbolic link on the way is followed.
  std::string_view rest = location;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string component(rest.substr(0, slash));
    if (component == "..") return fail(ErrorCode::kInvalidModel, location, "external data must not leave the model's directory");
    const bool last = slash == std::string_view::npos;
    if (last && (component.empty() || component == ".")) return fail(ErrorCode::kInvalidModel, location, "external data must name a file");
    if (!component.empty() && component != ".") {
      const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
      const int next = ::openat(at.get(), component.c_str(), flags);
      if (next < 0 && (errno == ELOOP || errno == ENOTDIR || errno == ENXIO))
        return fail(ErrorCode::kInvalidModel, location, "external data must not go through a symbolic link or a special file");
      if (next < 0) return fail(make_io_error(location, "the external data cannot be opened", errno));
      at.reset(next);
    }
    if (last) return map(at.get(), location);
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace sluice::importer
