#include "sluice/model/weight_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"
#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

constexpr std::size_t kFileSize = 5 * 4096 + 100;  // the last block is cut

struct PatternFile {
  TemporaryDirectory directory;
  std::string path = directory.file("w");
  std::string bytes;

  PatternFile() {
    for (std::size_t i = 0; i < kFileSize; ++i) bytes += static_cast<char>(PatternProducer::byte_at(WeightId(3), i));
    write_text(path, bytes);
  }
};

struct Buffer {
  std::unique_ptr<std::byte, decltype(&std::free)> memory{static_cast<std::byte*>(std::aligned_alloc(4096, 8 * 4096)), &std::free};
  std::byte* data() const { return memory.get(); }
  bool holds(const std::string& bytes, std::size_t offset, std::size_t size) const {
    return std::memcmp(data(), bytes.data() + offset, size) == 0;
  }
};

/// Fault settings for a scope.
struct ScopedFaults {
  explicit ScopedFaults(FaultPlan plan) { FaultPlan::current() = plan; }
  ~ScopedFaults() { FaultPlan::current() = {}; }
  ScopedFileOps ops{FaultPlan::ops()};
};

void check_reads(WeightSource& source, const std::string& bytes) {
  const Buffer buffer;
  CHECK(source.size().count() == kFileSize);
  REQUIRE(source.read({Bytes(0), Bytes(8192)}, buffer.data()));
  CHECK(buffer.holds(bytes, 0, 8192));
  REQUIRE(source.read({Bytes(4096), Bytes(kFileSize - 4096)}, buffer.data()));
  CHECK(buffer.holds(bytes, 4096, kFileSize - 4096));
  REQUIRE(source.read({Bytes(0), Bytes(64)}, buffer.data()));
  CHECK(buffer.holds(bytes, 0, 64));
  const Status beyond = source.read({Bytes(16384), Bytes(8192)}, buffer.data());
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::kFileChanged);
}

}  // namespace

TEST_CASE("a source reads what is in the file, directly and buffered") {
  const PatternFile file;
  for (const ReadMode mode : {ReadMode::kAuto, ReadMode::kBuffered}) {
    const auto source = open_weight_source(file.path, mode);
    REQUIRE(source);
    check_reads(**source, file.bytes);
    CHECK((*source)->direct() == ((*source)->block() > 1));
    CHECK((*source)->descriptor() >= 0);
  }
  const auto direct = open_weight_source(file.path, ReadMode::kDirect);
  if (!direct) {
    WARN("skipped: the file system refuses direct reads");
    return;
  }
  CHECK((*direct)->direct());
  CHECK(((*direct)->block() >= 512 && (*direct)->block() <= 4096));
}

TEST_CASE("where direct reads are refused, reads are buffered") {
  const PatternFile file;
  FileOps ops = system_file_ops();
  const auto check_fallback = [&] {
    const ScopedFileOps scope(ops);
    const auto source = open_weight_source(file.path);
    REQUIRE(source);
    CHECK_FALSE((*source)->direct());
    CHECK((*source)->block() == 1);
    check_reads(**source, file.bytes);
    const auto direct = open_weight_source(file.path, ReadMode::kDirect);
    REQUIRE_FALSE(direct);
    CHECK(direct.error().code == ErrorCode::kIo);
  };
  SECTION("by the flag") {
    ops.set_direct = [](int) noexcept {
      errno = EINVAL;
      return -1;
    };
    check_fallback();
  }
  SECTION("by what the system says") {
    ops.direct_alignment = [](int) noexcept { return 0; };
    check_fallback();
  }
  SECTION("by a block larger than plans have") {
    ops.direct_alignment = [](int) noexcept { return 65536; };
    check_fallback();
  }
}

TEST_CASE("short reads and interruptions change nothing") {
  const PatternFile file;
  for (const ReadMode mode : {ReadMode::kBuffered, ReadMode::kAuto}) {
    // Direct reads stop short at whole sectors only; buffered ones anywhere.
    const std::size_t most = mode == ReadMode::kBuffered ? 17 : 4096;
    const ScopedFaults faults({.most_bytes = most, .interruptions = 3});
    const auto source = open_weight_source(file.path, mode);
    REQUIRE(source);
    check_reads(**source, file.bytes);
  }
}

TEST_CASE("direct reads that never bring a block end in an error") {
  const PatternFile file;
  const auto source = open_weight_source(file.path, ReadMode::kDirect);
  if (!source) return;
  const ScopedFaults faults({.most_bytes = 100});
  FileOps ops = FaultPlan::ops();
  ops.pread = [](int, void*, std::size_t, std::int64_t) noexcept -> std::int64_t { return 100; };
  const ScopedFileOps scope(ops);
  const Buffer buffer;
  const Status status = (*source)->read({Bytes(0), Bytes(4096)}, buffer.data());
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kIo);
}

TEST_CASE("each failing call of open and read is an error") {
  const PatternFile file;
  const Buffer buffer;
  for (int n = 0;; ++n) {
    const ScopedFaults faults({.fail_at = n});
    auto source = open_weight_source(file.path, ReadMode::kBuffered);
    const Status status = source ? (*source)->read({Bytes(0), Bytes(4096)}, buffer.data()) : fail(source.error());
    if (status) {
      CHECK(n >= 3);  // open, fstat, pread
      break;
    }
    CHECK(status.error().code == ErrorCode::kIo);
    CHECK(status.error().os_error == EIO);
  }
}

TEST_CASE("a file that is cut, written, replaced or removed is noticed") {
  const PatternFile file;
  const auto source = open_weight_source(file.path);
  REQUIRE(source);
  REQUIRE((*source)->check_unchanged());
  SECTION("cut") { REQUIRE(::truncate(file.path.c_str(), 4096) == 0); }
  SECTION("written") {
    // The clock behind a file's time may tick every 10 ms only.
    const timespec times[2] = {{1, 0}, {1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, file.path.c_str(), times, 0) == 0);
  }
  SECTION("replaced") {
    write_text(file.directory.file("other"), file.bytes);
    REQUIRE(::rename(file.directory.file("other").c_str(), file.path.c_str()) == 0);
  }
  SECTION("removed") { REQUIRE(::unlink(file.path.c_str()) == 0); }
  const Status status = (*source)->check_unchanged();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kFileChanged);
}

TEST_CASE("a file cut while in use gives an error and no signal") {
  const PatternFile file;
  const auto source = open_weight_source(file.path);
  REQUIRE(source);
  REQUIRE(::truncate(file.path.c_str(), 4096) == 0);
  const Buffer buffer;
  const Status status = (*source)->read({Bytes(0), Bytes(16384)}, buffer.data());
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kFileChanged);
}

TEST_CASE("what is no regular file is refused at once") {
  const TemporaryDirectory directory;
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& path : {fifo, directory.file("."), std::string("/dev/zero"), directory.file("absent"), std::string()}) {
    INFO(path);
    const auto source = open_weight_source(path);
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ErrorCode::kIo);
  }
}

}  // namespace sluice::model
