#include "sluice/core/hash.h"

#include <catch2/catch.hpp>
#include <string_view>

#include "tests/core/bytes_of.h"

namespace sluice {

TEST_CASE("the hash is XXH3-64 with seed 0, as files have it") {
  CHECK(xxh3_64({}) == 0x2d06800538d394c2u);
  CHECK(Xxh3().digest() == 0x2d06800538d394c2u);
}

// The streamed hash has one code path, that of the whole one for every instruction set of its own.
TEST_CASE("every length hashes as a stream of single parts does") {
  std::string text(3000, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 256);
  for (std::size_t size = 0; size <= text.size(); size += size < 300 ? 1 : 37) {
    Xxh3 hash;
    hash.update(bytes_of(std::string_view(text).substr(0, size)));
    REQUIRE(hash.digest() == xxh3_64(bytes_of(std::string_view(text).substr(0, size))));
  }
}

TEST_CASE("parts hash like the whole, whatever the cuts") {
  const std::string text(100000, 'x');
  for (const std::size_t part : {1u, 63u, 64u, 1000u, 65536u}) {
    Xxh3 hash;
    for (std::size_t at = 0; at < text.size(); at += part) hash.update(bytes_of(std::string_view(text).substr(at, part)));
    CHECK(hash.digest() == xxh3_64(bytes_of(text)));
    CHECK(hash.digest() == xxh3_64(bytes_of(text)));
    hash.reset();
    CHECK(hash.digest() == xxh3_64({}));
  }
}

}  // namespace sluice
