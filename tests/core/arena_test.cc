#include "sluice/core/arena.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace sluice {
using namespace literals;

TEST_CASE("an arena commits, gives back and keeps its base") {
  auto arena = Arena::reserve(1_MiB);
  REQUIRE(arena);
  REQUIRE(arena->commit(64_KiB));
  std::byte* base = arena->data();
  std::memset(base, 7, 65536);
  REQUIRE(arena->commit(4_KiB));
  REQUIRE(arena->commit(1_MiB));
  CHECK(arena->data() == base);
  CHECK(base[0] == std::byte{7});
  CHECK(base[8192] == std::byte{0});  // given back, so it reads as zero
  const Status beyond = arena->commit(2_MiB);
  REQUIRE_FALSE(beyond);
  CHECK(beyond.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("a large arena begins on a huge page and ends where it is to end") {
  auto arena = Arena::reserve(5_MiB);
  REQUIRE(arena);
  CHECK(reinterpret_cast<std::uintptr_t>(arena->data()) % (2ull << 20) == 0);
  CHECK(arena->reserved() == 5_MiB);
  REQUIRE(arena->commit(5_MiB));
  std::memset(arena->data(), 1, arena->committed().count());
  CHECK_FALSE(arena->commit(6_MiB));
}

TEST_CASE("a reservation that no address space holds is refused") {
  const unsigned long long past_all_addresses = sizeof(void*) == 4 ? (1ull << 32) + 4096 : ~0ull;
  for (const std::uint64_t size : {past_all_addresses, 1ull << 60, (1ull << 63) - 1, ~0ull - (2ull << 20) + 1, ~0ull - 4095, ~0ull}) {
    CAPTURE(size);
    const auto arena = Arena::reserve(Bytes(size));
    REQUIRE_FALSE(arena);
    CHECK(arena.error().code == ErrorCode::kOutOfMemory);
  }
}

}  // namespace sluice
