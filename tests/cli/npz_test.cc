#include "src/cli/npz.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "src/cli/failure.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0';
}

/// A .npy file of i1 values 0, 1, 2, ...
std::string array_of(int count) {
  std::string dictionary = "{'descr': '|i1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  std::string bytes = std::string("\x93NUMPY\x01") + '\0';
  put(bytes, static_cast<std::uint32_t>(dictionary.size()), 2);
  bytes += dictionary;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(i);
  return bytes;
}

/// A deflate stream of one block that is stored as it is.
std::string deflated(const std::string& raw) {
  std::string bytes = "\x01";
  put(bytes, static_cast<std::uint32_t>(raw.size()), 2);
  put(bytes, ~static_cast<std::uint32_t>(raw.size()) & 0xffff, 2);
  return bytes + raw;
}

struct Member {
  std::string name;
  std::string raw;
  bool deflate = false;
};

std::string archive_of(const std::vector<Member>& members) {
  std::string bytes, directory;
  for (const Member& member : members) {
    const std::string stored = member.deflate ? deflated(member.raw) : member.raw;
    const std::string name = member.name + ".npy";
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    const auto common = [&](std::string& out) {
      put(out, 0, 2);  // flags
      put(out, member.deflate ? 8 : 0, 2);
      put(out, 0, 8);  // time, date, CRC
      put(out, static_cast<std::uint32_t>(stored.size()), 4);
      put(out, static_cast<std::uint32_t>(member.raw.size()), 4);
      put(out, static_cast<std::uint32_t>(name.size()), 2);
    };
    put(bytes, 0x04034b50, 4);
    put(bytes, 20, 2);
    common(bytes);
    put(bytes, 4, 2);  // an extra field that the directory does not have
    bytes += name + "abcd" + stored;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 4);
    common(directory);
    put(directory, 0, 12);
    put(directory, offset, 4);
    directory += name;
  }
  const auto start = static_cast<std::uint32_t>(bytes.size());
  bytes += directory;
  put(bytes, 0x06054b50, 4);
  put(bytes, 0, 4);
  put(bytes, static_cast<std::uint32_t>(members.size()), 2);
  put(bytes, static_cast<std::uint32_t>(members.size()), 2);
  put(bytes, static_cast<std::uint32_t>(directory.size()), 4);
  put(bytes, start, 4);
  put(bytes, 0, 2);
  return bytes;
}

std::string write(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.path("arrays.npz");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// Reads all of it; false where it is refused.
bool reads(const std::string& path) {
  try {
    for (const std::string& name : npz_members(path)) read_npz(path, name);
  } catch (const Failure&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("arrays of an archive are read, stored and deflated") {
  const TemporaryFolder folder;
  const std::string path = write(folder, archive_of({{"a", array_of(3)}, {"b", array_of(200), true}}));
  CHECK(npz_members(path) == std::vector<std::string>{"a", "b"});
  CHECK(read_npz(path, "a").shape == Shape{3});
  const HostTensor b = read_npz(path, "b");
  REQUIRE(b.shape == Shape{200});
  CHECK(b.dtype == DType::kI8);
  CHECK(b.data[199] == std::byte{199});
  CHECK_THROWS_WITH(read_npz(path, "c"), Catch::Contains("holds no array 'c'"));
}

TEST_CASE("an archive that is cut or claims too much is refused") {
  const TemporaryFolder folder;
  const std::string whole = archive_of({{"a", array_of(3)}, {"b", array_of(20), true}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(reads(write(folder, whole.substr(0, size))));
  }
  std::string claims = whole;
  const std::size_t entry = claims.find(std::string("PK\x01\x02", 4));
  claims.replace(entry + 24, 4, "\xfe\xff\xff\x7f");  // raw bytes of `a`
  CHECK_FALSE(reads(write(folder, claims)));
  CHECK_FALSE(reads(write(folder, "no archive, but long enough to be one: " + std::string(100, 'x'))));
}

TEST_CASE("no single changed byte of an archive does harm") {
  const TemporaryFolder folder;
  const std::string whole = archive_of({{"a", array_of(3)}, {"b", array_of(20), true}});
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      refused += reads(write(folder, changed)) ? 0 : 1;
    }
  }
  CHECK(refused > 100);
}
