// Text in byte pairs comes back as it was, and is smaller.
#include "src/emit/packed_text.h"

#include <catch2/catch.hpp>

using namespace sluice::emit;

namespace {

std::string spelled(const PackedText& packed, std::uint8_t code) {
  if (code < 96) return std::string(1, code == 0 ? '\0' : static_cast<char>(code + 31));
  const std::size_t at = 2 * static_cast<std::size_t>(code - 96);
  return spelled(packed, packed.pairs[at]) + spelled(packed, packed.pairs[at + 1]);
}

/// The pieces, as a device prints them.
std::vector<std::string> unpacked(const PackedText& packed) {
  std::vector<std::string> pieces(1);
  for (const std::uint8_t byte : packed.bytes) {
    const std::string text = spelled(packed, byte);
    if (text == std::string(1, '\0'))
      pieces.emplace_back();
    else
      pieces.back() += text;
  }
  pieces.pop_back();
  return pieces;
}

}  // namespace

TEST_CASE("pieces of text come back from byte pairs") {
  std::vector<std::string> pieces;
  for (int i = 0; i < 60; ++i) pieces.push_back("[" + std::to_string(i * 37 % 100) + ",1024,4096,0,8,8,16,1,1,1,\"kernel\"],");
  pieces.emplace_back();
  pieces.emplace_back("aaaaaaaaaaaaaaaaaaaaaaa");
  const PackedText packed = pack_text(pieces);
  CHECK(unpacked(packed) == pieces);
  CHECK(packed.longest == pieces[10].size() + 1);
  std::size_t length = 0;
  for (const std::string& piece : pieces) length += piece.size() + 1;
  CHECK(packed.bytes.size() + packed.pairs.size() < length / 4);
  CHECK(packed.most_waiting < 32);
}

TEST_CASE("text in which nothing repeats stays as it is, counted from the space") {
  const PackedText packed = pack_text({"abc", "def"});
  CHECK(packed.bytes == std::vector<std::uint8_t>{'a' - 31, 'b' - 31, 'c' - 31, 0, 'd' - 31, 'e' - 31, 'f' - 31, 0});
  CHECK(packed.most_waiting == 1);
}
