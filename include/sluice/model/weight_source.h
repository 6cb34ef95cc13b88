// The source of weights: reads byte ranges of a model file. It is one interface, so that tests can make reading slow or short or let it
// fail.
//
// Direct reads (O_DIRECT) leave nothing in the page cache, so a run costs what it says. They want offset, size and address to be
// multiples of `direct_block()`; where the file system refuses them, reads are buffered and the pages dropped after use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sluice/core/error.h"
#include "sluice/model/weight.h"

namespace sluice::model {

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Reads all of `range` into `target`; retries short reads and EINTR. range.offset and target are multiples of `block()`; range.size is
  /// too, except where the range ends at the end of the file (then `target` has room up to the next block and what lies there after the
  /// call is unspecified). Thread-safe; blocks. Errors: kIo; kFileChanged when the file ends before the range.
  virtual Status read(FileRange range, std::byte* target) noexcept = 0;

  /// Alignment that `read` wants: 512 to 4096 with direct reads, 1 with buffered ones. Plans always use 4096-byte blocks.
  virtual std::uint32_t block() const noexcept = 0;
  virtual bool direct() const noexcept = 0;
  virtual Bytes size() const noexcept = 0;

  /// A descriptor for asynchronous readers (io_uring), or -1 when there is none.
  virtual int descriptor() const noexcept { return -1; }

  /// kFileChanged when the file at the path is no longer the one that was opened, or was cut or written since. Cheap (one fstat).
  virtual Status check_unchanged() noexcept = 0;
};

enum class ReadMode : std::uint8_t { kAuto, kDirect, kBuffered };

/// kRing: io_uring. kThreads: threads that call pread. kAuto: io_uring where the system has it and the source is read directly.
enum class ReadMethod : std::uint8_t { kAuto, kRing, kThreads };

/// Opens `path` for reading. kAuto: direct where the file system allows it. Errors: kIo (kDirect refused too).
Result<std::unique_ptr<WeightSource>> open_weight_source(const std::string& path, ReadMode mode = ReadMode::kAuto);

}  // namespace sluice::model
