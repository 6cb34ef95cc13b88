#include "sluice/core/units.h"

#include <catch2/catch.hpp>

namespace sluice {

TEST_CASE("sizes are read in the units people write") {
  CHECK(parse_bytes("48MiB") == Bytes(48ull << 20));
  CHECK(parse_bytes("1.5gib") == Bytes(3ull << 29));
  CHECK(parse_bytes("300MB") == Bytes(300000000));
  CHECK(parse_bytes("8M") == Bytes(8ull << 20));
  CHECK(parse_bytes("512k") == Bytes(512ull << 10));
  CHECK(parse_bytes("2G") == Bytes(2ull << 30));
  CHECK(parse_bytes("4096") == Bytes(4096));
  CHECK(parse_bytes("unlimited") == kUnlimitedBytes);
  for (const char* bad : {"", "-1", "12 parsecs", "MiB", "1e400", "nan", "99999999999999GiB", "1MiBx"}) CHECK_FALSE(parse_bytes(bad));
}

TEST_CASE("sizes are printed for people") {
  CHECK(format_bytes(Bytes(12)) == "12 B");
  CHECK(format_bytes(Bytes(67004006)) == "63.9 MiB");
  CHECK(format_bytes(kUnlimitedBytes) == "unlimited");
}

TEST_CASE("checked arithmetic notices what does not fit") {
  CHECK(checked_add(1, 2) == 3u);
  CHECK_FALSE(checked_add(~0ull, 1));
  CHECK_FALSE(checked_mul(1ull << 33, 1ull << 33));
  CHECK(align_up(std::uint64_t{4097}, 4096) == 8192);
  CHECK(ceil_div(17, 16) == 2);
}

}  // namespace sluice
