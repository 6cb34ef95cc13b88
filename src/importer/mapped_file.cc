#include "src/importer/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace sluice::importer {
namespace {

/// Opens what external data names, component by component, so that no symbolic link on the way is followed.
Result<FileDescriptor> open_component_wise(const std::string& directory, const std::string& location) {
  FileDescriptor at(::open(directory.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (at.get() < 0) return fail(make_io_error(directory, "the model's directory cannot be opened", errno));
  std::string_view rest = location;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string component(rest.substr(0, slash));
    if (component == "..") return fail(ErrorCode::kInvalidModel, location, "external data must not leave the model's directory");
    const bool last = slash == std::string_view::npos;
    if (last && (component.empty() || component == ".")) return fail(ErrorCode::kInvalidModel, location, "external data must name a file");
    if (!component.empty() && component != ".") {
      const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
      FileDescriptor next(::openat(at.get(), component.c_str(), flags));
      if (next.get() < 0 && (errno == ELOOP || errno == ENOTDIR || errno == ENXIO))
        return fail(ErrorCode::kInvalidModel, location, "external data must not go through a symbolic link or a special file");
      if (next.get() < 0) return fail(make_io_error(location, "the external data cannot be opened", errno));
      at = std::move(next);
    }
    if (last) return at;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map(int descriptor, const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile());
  file->path_ = path;
  if (system_file_ops().state(descriptor, &file->state_) != 0) return fail(make_io_error(path, "the file cannot be examined", errno));
  if (!file->state_.regular) return fail(ErrorCode::kInvalidModel, path, "only a regular file can hold a model or its data");
  const auto size = static_cast<std::size_t>(file->state_.size.count());
  if (size != file->state_.size.count())  // an address has 32 bits here
    return fail(make_error(ErrorCode::kOutOfMemory, path, "the file is larger than this system can map", file->state_.size.count(), 0));
  if (size == 0) return fail(ErrorCode::kInvalidModel, path, "the file is empty");
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) {
    Error error = make_io_error(path, "the file cannot be mapped", errno);
    if (error.os_error == ENOMEM) error.code = ErrorCode::kOutOfMemory;
    return fail(error);
  }
  file->data_ = static_cast<const std::byte*>(address);
  file->size_ = size;
  return std::shared_ptr<const MappedFile>(std::move(file));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return fail(make_io_error(path, "the file cannot be opened", errno));
  return map(fd.get(), path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_beneath(const std::string& directory, const std::string& location) {
  if (location.empty() || location.find('\0') != std::string::npos || location.front() == '/' || location.size() > 4096)
    return fail(ErrorCode::kInvalidModel, location, "external data must be named by a path relative to the model");
  const std::string base = directory.empty() ? "." : directory;
  SLUICE_ASSIGN_OR_RETURN(const FileDescriptor file, open_component_wise(base, location));
  return map(file.get(), base + "/" + location);
}

Status MappedFile::check_unchanged() const {
  FileState now;
  if (system_file_ops().state_at(path_.c_str(), &now) != 0) return fail(make_io_error(path_, "the file cannot be examined again", errno));
  if (now != state_) return fail(ErrorCode::kFileChanged, path_, "the file changed while it was converted");
  return {};
}

bool MappedFile::is_at(const std::string& path) const {
  FileState there;
  return system_file_ops().state_at(path.c_str(), &there) == 0 && there.device == state_.device && there.inode == state_.inode;
}

}  // namespace sluice::importer
