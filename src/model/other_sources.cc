#include "sluice/model/other_sources.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "sluice/core/file.h"
#include "src/core/out_of_memory.h"

namespace sluice::model {
namespace {

constexpr std::uint64_t kLargestBlock = 4096;  // of direct reads

Status check_inside(FileRange range, Bytes size, const char* what) noexcept {
  if (range.offset <= size && range.size <= size - range.offset) return {};
  return fail(make_error(ErrorCode::kFileChanged, what, "the model ends early", range.end().count(), size.count()));
}

class BufferSource final : public WeightSource {
 public:
  explicit BufferSource(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  Status read(FileRange range, std::byte* target) noexcept override {
    SLUICE_RETURN_IF_ERROR(check_inside(range, size(), "buffer"));
    if (range.size != Bytes()) std::memcpy(target, bytes_.data() + range.offset.count(), range.size.count());
    return {};
  }
  std::uint32_t block() const noexcept override { return 1; }
  bool direct() const noexcept override { return false; }
  Bytes size() const noexcept override { return Bytes(bytes_.size()); }
  Status check_unchanged() noexcept override { return {}; }

 private:
  std::span<const std::byte> bytes_;
};

class ReaderSource final : public WeightSource {
 public:
  explicit ReaderSource(const Reader& reader) noexcept : reader_(reader) {}

  Status read(FileRange range, std::byte* target) noexcept override {
    SLUICE_RETURN_IF_ERROR(check_inside(range, size(), "reader"));
    for (std::uint64_t done = 0; done < range.size.count();) {
      const std::uint64_t wanted = range.size.count() - done;
      const std::int64_t got = reader_.read(reader_.context, range.offset.count() + done, target + done, wanted);
      if (got <= 0 || static_cast<std::uint64_t>(got) > wanted)
        return fail(make_io_error("reader", "the program's own function did not bring what it was asked for", EIO));
      done += static_cast<std::uint64_t>(got);
    }
    return {};
  }
  std::uint32_t block() const noexcept override { return 1; }
  bool direct() const noexcept override { return false; }
  Bytes size() const noexcept override { return reader_.size; }
  Status check_unchanged() noexcept override { return {}; }

 private:
  Reader reader_;
};

/// Asynchronous readers know nothing of the part's offset, so there is no descriptor for them: threads read.
class PartSource final : public WeightSource {
 public:
  PartSource(FileDescriptor kept, std::unique_ptr<WeightSource> whole, FileRange part) noexcept
      : kept_(std::move(kept)), whole_(std::move(whole)), part_(part) {}

  Status read(FileRange range, std::byte* target) noexcept override {
    SLUICE_RETURN_IF_ERROR(check_inside(range, part_.size, "part of a file"));
    return whole_->read({part_.offset + range.offset, range.size}, target);
  }
  std::uint32_t block() const noexcept override { return whole_->block(); }
  bool direct() const noexcept override { return whole_->direct(); }
  Bytes size() const noexcept override { return part_.size; }
  Status check_unchanged() noexcept override { return whole_->check_unchanged(); }

 private:
  FileDescriptor kept_;  // whose number the path of `whole_` has
  std::unique_ptr<WeightSource> whole_;
  FileRange part_;
};

Result<std::unique_ptr<WeightSource>> open_part(int descriptor, FileRange part) {
  FileDescriptor kept(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (kept.get() < 0) return fail(make_io_error("part of a file", "the descriptor cannot be used", errno));
  // A descriptor of our own for the same file: turning direct reads on would change how the caller's reads.
  const std::string path = "/proc/self/fd/" + std::to_string(kept.get());
  const bool aligned = part.offset.count() % kLargestBlock == 0;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> whole, open_weight_source(path, aligned ? ReadMode::kAuto : ReadMode::kBuffered));
  if (part.offset > whole->size() || part.size > whole->size() - part.offset) {
    const std::uint64_t end = checked_add(part.offset.count(), part.size.count()).value_or(~std::uint64_t{0});
    return fail(make_error(ErrorCode::kInvalidArgument, "part of a file", "the part does not lie in the file", end, whole->size().count()));
  }
  return std::unique_ptr<WeightSource>(std::make_unique<PartSource>(std::move(kept), std::move(whole), part));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_reader_source(const Reader& reader) {
  if (reader.read == nullptr) return fail(ErrorCode::kInvalidArgument, "reader", "there is no function to read with");
  return or_out_of_memory("reader", [&]() -> Result<std::unique_ptr<WeightSource>> { return std::make_unique<ReaderSource>(reader); });
}

Result<std::unique_ptr<WeightSource>> open_buffer_source(std::span<const std::byte> bytes) {
  return or_out_of_memory("buffer", [&]() -> Result<std::unique_ptr<WeightSource>> { return std::make_unique<BufferSource>(bytes); });
}

Result<std::unique_ptr<WeightSource>> open_part_source(int descriptor, FileRange part) {
  return or_out_of_memory("part of a file", [&] { return open_part(descriptor, part); });
}

}  // namespace sluice::model
