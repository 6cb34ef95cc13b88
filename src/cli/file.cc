#include "src/cli/file.h"

#include <cerrno>
#include <filesystem>

#include "src/cli/failure.h"

namespace sluice::cli {

std::uint64_t size_of_file(const FileDescriptor& file, const std::string& path) {
  FileState state;
  if (file_ops().state(file.get(), &state) != 0) raise(make_io_error(path, "cannot be examined", errno));
  return state.size.count();
}

void read_exactly(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> out, const std::string& path) {
  while (!out.empty()) {
    const std::int64_t count = file_ops().pread(file.get(), out.data(), out.size(), static_cast<std::int64_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) raise(make_io_error(path, "cannot be read", errno));
    if (count == 0) raise(make_error(ErrorCode::kInvalidArgument, path, "the file ends before its data does"));
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

void write_exactly(const FileDescriptor& file, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const std::int64_t count = file_ops().pwrite(file.get(), bytes.data(), bytes.size(), static_cast<std::int64_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) raise(make_io_error(path, "cannot be written", count < 0 ? errno : EIO));
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void refuse_replacing(const std::string& output, const std::string& read, const char* reason) {
  std::error_code error;
  if (std::filesystem::equivalent(output, read, error)) raise(make_error(ErrorCode::kInvalidArgument, output, reason));
}

void write_atomically(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file = unwrap(AtomicFile::create(path));
  unwrap(file.write_at(Bytes(), bytes));
  unwrap(file.commit());
}

}  // namespace sluice::cli
