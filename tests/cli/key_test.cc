#include "src/cli/key.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "sluice/core/file.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

std::vector<std::byte> bytes_of_key(std::size_t count = model::kKeyBytes) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(200 + i));
  return bytes;
}

/// What --key gives: the key, or why not.
Result<std::vector<std::byte>> key_from(const std::string& place) {
  model::Key key;
  SLUICE_RETURN_IF_ERROR(key_at(place)(key.bytes()));
  return std::vector<std::byte>(key.bytes().begin(), key.bytes().end());
}

}  // namespace

TEST_CASE("a key comes from a file of its bytes and nothing else") {
  const TemporaryFolder folder;
  write_atomically(folder.path("key"), bytes_of_key());
  CHECK(key_from(folder.path("key")).value() == bytes_of_key());
  for (const std::size_t size : {0, 31, 33, 64}) {
    write_atomically(folder.path("other"), bytes_of_key(size));
    CHECK(key_from(folder.path("other")).error().code == ErrorCode::kWrongKey);
    CHECK_THROWS_AS(read_key_file(folder.path("other")), Failure);
  }
  CHECK(key_from(folder.path("none")).error().code == ErrorCode::kIo);
}

TEST_CASE("a key comes from a descriptor, twice where it can be read twice") {
  const TemporaryFolder folder;
  write_atomically(folder.path("key"), bytes_of_key());
  const FileDescriptor file(::open(folder.path("key").c_str(), O_RDONLY));
  for (int i = 0; i < 2; ++i) CHECK(key_from("fd:" + std::to_string(file.get())).value() == bytes_of_key());

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const FileDescriptor out(ends[0]);
  FileDescriptor in(ends[1]);
  REQUIRE(::write(in.get(), bytes_of_key().data(), model::kKeyBytes) == static_cast<ssize_t>(model::kKeyBytes));
  CHECK(key_from("fd:" + std::to_string(out.get())).value() == bytes_of_key());
  in.reset();
  CHECK(key_from("fd:" + std::to_string(out.get())).error().code == ErrorCode::kWrongKey);
  for (const char* place : {"fd:", "fd:x", "fd:-1", "fd:3 "}) CHECK(key_from(place).error().code == ErrorCode::kInvalidArgument);
  CHECK(key_from("fd:9999").error().code == ErrorCode::kIo);
}

TEST_CASE("a key comes from a variable of hex digits") {
  std::string digits;
  for (const std::byte byte : bytes_of_key()) {
    constexpr char kDigits[] = "0123456789abcdef";
    digits += kDigits[std::to_integer<int>(byte) >> 4];
    digits += kDigits[std::to_integer<int>(byte) & 15];
  }
  const auto with = [](const std::string& text) {
    ::setenv("SLUICE_TEST_KEY", text.c_str(), 1);
    return key_from("env:SLUICE_TEST_KEY");
  };
  CHECK(with(digits).value() == bytes_of_key());
  CHECK(with(digits.substr(1)).error().code == ErrorCode::kWrongKey);
  CHECK(with(digits + "0").error().code == ErrorCode::kWrongKey);
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, digits.size() - 1}) {
    std::string wrong = digits;
    wrong[at] = 'g';
    CHECK(with(wrong).error().code == ErrorCode::kWrongKey);
  }
  ::unsetenv("SLUICE_TEST_KEY");
  CHECK(key_from("env:SLUICE_TEST_KEY").error().code == ErrorCode::kWrongKey);
  CHECK_FALSE(key_at(""));
}
