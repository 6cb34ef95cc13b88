#include "sluice/core/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/core/bytes_of.h"
#include "tests/core/fake_file_ops.h"
#include "tests/core/temporary_files.h"

namespace sluice {

TEST_CASE("an atomic file appears whole, or not at all") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("f");
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write_at(Bytes(4), bytes_of("tail")));
    CHECK_FALSE(std::filesystem::exists(path));
  }
  CHECK(directory.entries() == 0);
  auto file = AtomicFile::create(path);
  REQUIRE(file->resize(Bytes(8)));
  REQUIRE(file->write_at(Bytes(2), bytes_of("ab")));
  REQUIRE(file->commit());
  CHECK(read_text(path) == std::string("\0\0ab\0\0\0\0", 8));
  CHECK(directory.entries() == 1);
}

TEST_CASE("an atomic file that moves is still removed once") {
  const TemporaryDirectory directory;
  auto first = AtomicFile::create(directory.file("f"));
  AtomicFile second = std::move(*first);
  second = AtomicFile();
  first = fail(ErrorCode::kCancelled, "", "");
  CHECK(directory.entries() == 0);
}

TEST_CASE("an unfinished atomic file has no name, where the file system has files without names") {
  const TemporaryDirectory directory;
  FileOps ops = system_file_ops();
  {
    const auto file = AtomicFile::create(directory.file("f"));
    REQUIRE(file);
    CHECK(directory.entries() == 0);
  }
  ops.open = [](const char* path, int flags, unsigned mode) noexcept {
    errno = EOPNOTSUPP;
    return (flags & O_TMPFILE) == O_TMPFILE ? -1 : system_file_ops().open(path, flags, mode);
  };
  const ScopedFileOps scope(ops);
  auto file = AtomicFile::create(directory.file("f"));
  REQUIRE(file);
  CHECK(directory.entries() == 1);
  REQUIRE(file->commit());
  CHECK(directory.entries() == 1);
  CHECK(std::filesystem::exists(directory.file("f")));
}

TEST_CASE("an atomic file replaces regular files only, and the file behind a link, not the link") {
  const TemporaryDirectory directory;
  CHECK(AtomicFile::create(directory.file(".")).error().code == ErrorCode::kIo);
  REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
  CHECK(AtomicFile::create(directory.file("fifo")).error().code == ErrorCode::kIo);
  CHECK(AtomicFile::create("/dev/null").error().code == ErrorCode::kIo);

  write_text(directory.file("old"), "old");
  std::filesystem::create_symlink("old", directory.file("link"));
  auto file = AtomicFile::create(directory.file("link"));
  REQUIRE(file);
  REQUIRE(file->write_at(Bytes(), bytes_of("new")));
  REQUIRE(file->commit());
  CHECK(read_text(directory.file("old")) == "new");
  CHECK(std::filesystem::is_symlink(directory.file("link")));
}

TEST_CASE("an atomic file without a directory in its name goes to the current one") {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.file("."));
  auto file = AtomicFile::create("f");
  const bool committed = file && file->commit();
  std::filesystem::current_path(before);
  REQUIRE(committed);
  CHECK(read_text(directory.file("f")).empty());
}

TEST_CASE("whole files are read up to a limit") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("f");
  write_text(path, "eight by");
  const auto bytes = read_file(path, Bytes(8));
  REQUIRE(bytes);
  CHECK(std::memcmp(bytes->data(), "eight by", 8) == 0);
  const auto refused = read_file(path, Bytes(7));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().available == 8);
  CHECK(read_file(directory.file("."), Bytes(8)).error().code == ErrorCode::kIo);
}

TEST_CASE("each failing call of reading a file is an error") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("f");
  write_text(path, "bytes");
  for (int n = 0; n < 4; ++n) {  // open, two fstat, pread
    FaultPlan::current() = {.fail_at = n};
    const ScopedFileOps ops(FaultPlan::ops());
    const auto bytes = read_file(path, Bytes(100));
    FaultPlan::current() = {};
    REQUIRE_FALSE(bytes);
    CHECK(bytes.error().os_error == EIO);
  }
}

}  // namespace sluice
