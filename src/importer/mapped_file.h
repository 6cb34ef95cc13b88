// A file of the user's, mapped for reading: its pages are the system's to drop, so a 500 MB model costs the converter no memory of its own.
//
// Somebody may write to the file or cut it meanwhile. Bytes that changed are found by `check_unchanged` before a model is made of them; a
// touch beyond a new end raises SIGBUS, which sluice-convert turns into an error of its own.
//
// Invariants: the mapping never moves; `bytes()` covers the size the file had when it was opened.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "sluice/core/error.h"
#include "sluice/core/file.h"

namespace sluice::importer {

class MappedFile {
 public:
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// Maps the regular file at `path`. Errors: kIo; kInvalidModel when it is no regular file or empty.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  /// Maps the file that external data names, relative to `directory`. The name comes from an untrusted file: absolute names, `..`,
  /// symbolic links at any place, NUL and anything but a regular file are refused. Errors: kIo; kInvalidModel.
  static Result<std::shared_ptr<const MappedFile>> open_beneath(const std::string& directory, const std::string& location);

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  /// Checks that the name still leads to the file that was mapped, and that it has not changed. Errors: kFileChanged; kIo.
  Status check_unchanged() const;
  bool is_at(const std::string& path) const;

 private:
  MappedFile() = default;
  static Result<std::shared_ptr<const MappedFile>> map(int descriptor, const std::string& path);

  std::string path_;
  FileState state_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sluice::importer
