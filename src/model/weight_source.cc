#include "sluice/model/weight_source.h"

#include <algorithm>
#include <cerrno>

#include "sluice/core/file.h"
#include "src/core/out_of_memory.h"
#include "src/model/aligned_buffer.h"

namespace sluice::model {
namespace {

constexpr std::uint32_t kMinBlock = 512;
constexpr std::uint32_t kMaxBlock = 4096;  // what plans round to

class FileSource final : public WeightSource {
 public:
  FileSource(std::string path, FileDescriptor file, const FileState& opened_as, std::uint32_t direct_block)
      : path_(std::move(path)), file_(std::move(file)), opened_as_(opened_as), direct_block_(direct_block) {}

  /// Direct reads leave nothing in the page cache; pages that others left there (such as the writer of the file) are dropped too, except
  /// the beginning, with the header for the next program.
  ~FileSource() override {
    constexpr std::int64_t kBeginning = 512 * 1024;
    if (direct() && size().count() > kBeginning) file_ops().drop_pages(file_.get(), kBeginning, 0);
  }

  Status read(FileRange range, std::byte* target) noexcept override {
    const auto pread = file_ops().pread;  // a test may give the system its file operations back while a read hangs
    const std::uint64_t wanted = range.size.count();
    // A direct read covers whole blocks, also of a block that the end of the file cuts.
    const std::uint64_t asked = direct() ? align_up(wanted, direct_block_) : wanted;
    std::uint64_t done = 0;
    int stuck = 0;
    while (done < wanted) {
      const std::int64_t got = pread(file_.get(), target + done, asked - done, static_cast<std::int64_t>(range.offset.count() + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(make_io_error(path_, "the file cannot be read", errno));
      if (got == 0) return file_ended(range, done);
      const std::uint64_t now = done + static_cast<std::uint64_t>(got);
      // A short direct read is taken up again at the block where it stopped; one of less than a block brings nothing.
      const std::uint64_t next = direct() && now < wanted ? align_down(now, direct_block_) : now;
      if (next == done) {
        if (ends_before(range.offset.count() + now + 1)) return file_ended(range, now);
        if (++stuck > kMaxStuckReads) return fail(make_io_error(path_, "reads bring less than a block", EIO));
      }
      done = next;
    }
    if (!direct()) drop_pages(range);
    return {};
  }

  std::uint32_t block() const noexcept override { return direct() ? direct_block_ : 1; }
  bool direct() const noexcept override { return direct_block_ != 0; }
  Bytes size() const noexcept override { return opened_as_.size; }
  int descriptor() const noexcept override {
    // If the calls are replaced, the descriptor need not mean anything to the system.
    return file_ops().open == system_file_ops().open ? file_.get() : -1;
  }

  Status check_unchanged() noexcept override {
    FileState now;
    if (file_ops().state(file_.get(), &now) != 0) return fail(make_io_error(path_, "the file's state cannot be read", errno));
    if (!(now == opened_as_)) return fail(ErrorCode::kFileChanged, path_, "the file was cut or written while in use");
    if (file_ops().state_at(path_.c_str(), &now) != 0 || now.device != opened_as_.device || now.inode != opened_as_.inode) {
      return fail(ErrorCode::kFileChanged, path_, "the file was replaced or removed while in use");
    }
    return {};
  }

 private:
  // More than a busy device needs, few enough to end.
  static constexpr int kMaxStuckReads = 100;

  bool ends_before(std::uint64_t position) const noexcept {
    FileState now;
    return file_ops().state(file_.get(), &now) == 0 && now.size.count() < position;
  }
  tl::unexpected<Error> file_ended(FileRange range, std::uint64_t done) const noexcept {
    return fail(make_error(ErrorCode::kFileChanged, path_, "the file ends early", range.end().count(), range.offset.count() + done));
  }

  /// From the page that the range begins in to the last whole one: a reader that goes on from here wants the rest.
  void drop_pages(FileRange range) noexcept {
    constexpr std::uint64_t kPage = 4096;
    const std::uint64_t begin = align_down(range.offset.count(), kPage);
    const std::uint64_t end = range.end() >= size() ? align_up(range.end().count(), kPage) : align_down(range.end().count(), kPage);
    if (begin < end) file_ops().drop_pages(file_.get(), static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin));
  }

  std::string path_;
  FileDescriptor file_;
  FileState opened_as_;
  std::uint32_t direct_block_;  // 0: buffered
};

/// Turns direct reads on and gives the block they need; 0 when the file system refuses them.
std::uint32_t enable_direct(int fd) {
  const FileOps& ops = file_ops();
  const int stated = ops.direct_alignment(fd);
  if (stated == 0 || stated > static_cast<int>(kMaxBlock)) return 0;
  if (ops.set_direct(fd) != 0) return 0;
  // Some file systems take the flag and refuse the reads, and older systems do not state the block: try, from the smallest.
  const AlignedBuffer probe = AlignedBuffer::allocate(Bytes(2 * kMaxBlock));
  if (probe.data() == nullptr) return 0;
  for (std::uint32_t block = std::max(kMinBlock, static_cast<std::uint32_t>(std::max(stated, 0))); block <= kMaxBlock; block *= 2) {
    std::int64_t got = -1;
    do {
      got = ops.pread(fd, probe.data() + block, block, 0);  // an address that is aligned to `block` and no better
    } while (got < 0 && errno == EINTR);
    if (got >= 0) return block;
  }
  return 0;
}

Result<std::unique_ptr<WeightSource>> open_source(const std::string& path, ReadMode mode) {
  SLUICE_ASSIGN_OR_RETURN(FileDescriptor file, open_for_reading(path));
  std::uint32_t block = 0;
  if (mode != ReadMode::kBuffered) {
    block = enable_direct(file.get());
    if (block == 0) {
      if (mode == ReadMode::kDirect) return fail(make_io_error(path, "the file system refuses direct reads", EINVAL));
      // The flag may be set by now; a descriptor without it is a new one.
      SLUICE_ASSIGN_OR_RETURN(file, open_for_reading(path));
    }
  }
  FileState opened_as;
  if (file_ops().state(file.get(), &opened_as) != 0) return fail(make_io_error(path, "the file's state cannot be read", errno));
  return std::unique_ptr<WeightSource>(std::make_unique<FileSource>(path, std::move(file), opened_as, block));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_weight_source(const std::string& path, ReadMode mode) {
  return or_out_of_memory(path, [&] { return open_source(path, mode); });
}

}  // namespace sluice::model
