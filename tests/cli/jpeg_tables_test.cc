#include "src/cli/jpeg_tables.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "src/cli/failure.h"
#include "src/cli/image.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;

namespace {

std::string segment(int marker, const std::string& data) {
  const std::size_t length = data.size() + 2;
  return std::string{'\xff', static_cast<char>(marker), static_cast<char>(length >> 8), static_cast<char>(length)} + data;
}

/// A table of so many codes, none of a length more than 255.
std::string table(int codes) {
  std::string data(1, '\0');
  for (int length = 0, left = codes; length < 16; ++length) {
    const int here = std::min(left, 255);
    data += static_cast<char>(here);
    left -= here;
  }
  return data + std::string(static_cast<std::size_t>(codes), 'v');
}

std::string tables(const std::string& data) { return segment(0xc4, data); }

const std::string kStart = "\xff\xd8";

bool fit(const std::string& bytes) {
  std::string copy = bytes;
  std::FILE* file = ::fmemopen(copy.data(), copy.size(), "rb");
  REQUIRE(file != nullptr);
  const bool fits = huffman_tables_fit(file);
  CHECK(std::ftell(file) == 0);
  std::fclose(file);
  return fits;
}

}  // namespace

TEST_CASE("A Huffman table has at most 256 codes", "[cli]") {
  CHECK(fit(kStart + tables(table(256))));
  CHECK_FALSE(fit(kStart + tables(table(257))));
  CHECK_FALSE(fit(kStart + tables(table(12) + table(300))));
  CHECK(fit(kStart + tables(table(12)).substr(0, 9)));
  CHECK_FALSE(fit(kStart + tables(table(300)).substr(0, 7)));  // cut behind the counts 255 and 45
  CHECK(fit("\x89PNG" + tables(table(257))));
}

TEST_CASE("Tables are looked for where the decoder finds them", "[cli]") {
  const std::string large = tables(table(257));
  const std::string scan = segment(0xda, "header") + std::string("data\xff\0more\xff\xd0of it", 17);
  CHECK(fit(kStart + segment(0xe1, large) + scan + "\xff\xd9" + large));
  CHECK_FALSE(fit(kStart + segment(0xe1, "thumbnail") + large));
  CHECK_FALSE(fit(kStart + scan + large));
  CHECK_FALSE(fit("\xff" + kStart + "padding\xff\xff" + large));
}

TEST_CASE("A picture whose table is too large is refused", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("picture.jpg");
  std::ofstream(path, std::ios::binary) << kStart << tables(table(4080));
  try {
    static_cast<void>(load_image(path, {.shape = Shape{1, 3, 8, 8}, .dtype = DType::kF32, .rule = {}}));
    FAIL("it was taken");
  } catch (const Failure& failure) {
    CHECK_THAT(failure.what(), Catch::Contains("Huffman table"));
  }
}
