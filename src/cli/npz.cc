#include "src/cli/npz.h"

#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <limits>

#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/npy.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50;    // of the archive's last record
constexpr std::uint32_t kEntrySignature = 0x02014b50;  // of a line of its directory
constexpr std::uint32_t kLocalSignature = 0x04034b50;  // before an entry's bytes
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kMostComment = 65535;
constexpr std::size_t kMostEntries = 4096;
constexpr std::uint64_t kMostDirectory = 1 << 20;

enum Method : std::uint32_t { kStored = 0, kDeflated = 8 };

/// A little-endian number of `bytes` bytes.
std::uint32_t number_at(std::span<const std::byte> data, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint32_t>(data[at + i]) << (8 * i);
  return value;
}

struct ArchiveEntry {
  std::string name;
  std::uint32_t flags = 0, method = 0;
  std::uint64_t stored_bytes = 0, bytes = 0, local_offset = 0;
};

/// The archive's directory, which is at its end and states the valid sizes.
class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), file_(unwrap(open_for_reading(path))), size_(size_of_file(file_, path)) {
    read_directory();
  }

  const std::vector<ArchiveEntry>& entries() const { return entries_; }

  std::vector<std::byte> read(const ArchiveEntry& entry) const {
    if ((entry.flags & 1u) != 0) raise(make_error(ErrorCode::kUnsupported, path_, "the archive is encrypted"));
    if (entry.method != kStored && entry.method != kDeflated)
      raise(make_error(ErrorCode::kUnsupported, path_, "an array is compressed in another way than numpy's"));
    const std::vector<std::byte> stored = bytes_at(data_offset(entry), entry.stored_bytes);
    if (entry.method == kStored) {
      if (entry.bytes != entry.stored_bytes) damaged();
      return stored;
    }
    return inflate(stored, entry.bytes);
  }

 private:
  [[noreturn]] void damaged() const { raise(make_error(ErrorCode::kInvalidArgument, path_, "is no .npz archive, or a damaged one")); }

  std::vector<std::byte> bytes_at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > size_ - offset) damaged();
    std::vector<std::byte> bytes(count);
    read_exactly(file_, offset, bytes, path_);
    return bytes;
  }

  void read_directory() {
    const std::uint64_t tail = std::min<std::uint64_t>(size_, kEndBytes + kMostComment);
    const std::vector<std::byte> end = bytes_at(size_ - tail, tail);
    std::size_t at = end.size() < kEndBytes ? 0 : end.size() - kEndBytes + 1;
    while (at > 0 && number_at(end, at - 1, 4) != kEndSignature) --at;
    if (at-- == 0) damaged();
    const std::size_t count = number_at(end, at + 10, 2);
    const std::uint64_t directory_bytes = number_at(end, at + 12, 4), offset = number_at(end, at + 16, 4);
    if (count > kMostEntries || directory_bytes > kMostDirectory) damaged();
    const std::vector<std::byte> directory = bytes_at(offset, directory_bytes);
    for (std::size_t i = 0, place = 0; i < count; ++i) place = read_entry(directory, place);
  }

  std::size_t read_entry(std::span<const std::byte> directory, std::size_t place) {
    if (directory.size() - place < kEntryBytes || number_at(directory, place, 4) != kEntrySignature) damaged();
    const std::size_t name_bytes = number_at(directory, place + 28, 2);
    const std::size_t next = place + kEntryBytes + name_bytes + number_at(directory, place + 30, 2) + number_at(directory, place + 32, 2);
    if (next > directory.size()) damaged();
    ArchiveEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(directory.data() + place + kEntryBytes), name_bytes);
    entry.flags = number_at(directory, place + 8, 2);
    entry.method = number_at(directory, place + 10, 2);
    entry.stored_bytes = number_at(directory, place + 20, 4);
    entry.bytes = number_at(directory, place + 24, 4);
    entry.local_offset = number_at(directory, place + 42, 4);
    constexpr std::uint32_t kElsewhere = std::numeric_limits<std::uint32_t>::max();  // the size stands in a field for 4 GiB and more
    if (entry.stored_bytes == kElsewhere || entry.bytes == kElsewhere)
      raise(make_error(ErrorCode::kUnsupported, path_, "holds an array of 4 GiB or more; give it as a .npy file"));
    entries_.push_back(std::move(entry));
    return next;
  }

  /// The bytes follow a second header, whose name and extra field may be of other lengths than the directory's.
  std::uint64_t data_offset(const ArchiveEntry& entry) const {
    const std::vector<std::byte> local = bytes_at(entry.local_offset, kLocalBytes);
    if (number_at(local, 0, 4) != kLocalSignature) damaged();
    return entry.local_offset + kLocalBytes + number_at(local, 26, 2) + number_at(local, 28, 2);
  }

  std::vector<std::byte> inflate(std::span<const std::byte> stored, std::uint64_t bytes) const {
    // Deflate shrinks by a factor of at most 1032: a larger claim is false, and is refused before it costs memory.
    constexpr std::uint64_t kMostRatio = 1032;
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
    if (bytes > kMost || stored.size() > kMost || bytes > stored.size() * kMostRatio) damaged();
    std::vector<std::byte> raw(bytes);
    const int written = stbi_zlib_decode_noheader_buffer(reinterpret_cast<char*>(raw.data()), static_cast<int>(bytes),
                                                         reinterpret_cast<const char*>(stored.data()), static_cast<int>(stored.size()));
    if (written < 0 || static_cast<std::uint64_t>(written) != bytes) damaged();
    return raw;
  }

  const std::string& path_;
  FileDescriptor file_;
  std::uint64_t size_;
  std::vector<ArchiveEntry> entries_;
};

constexpr std::string_view kSuffix = ".npy";

}  // namespace

bool is_npz_name(std::string_view path) { return path.ends_with(".npz"); }

std::vector<std::string> npz_members(const std::string& path) {
  std::vector<std::string> names;
  const Archive archive(path);
  for (const ArchiveEntry& entry : archive.entries())
    if (entry.name.ends_with(kSuffix)) names.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
  return names;
}

HostTensor read_npz(const std::string& path, const std::string& member) {
  const Archive archive(path);
  for (const ArchiveEntry& entry : archive.entries())
    if (entry.name == member + std::string(kSuffix)) return parse_npy(archive.read(entry), fmt::format("{} ({})", path, member));
  throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: holds no array '{}'", path, member));
}

}  // namespace sluice::cli
