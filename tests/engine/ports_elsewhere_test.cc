// Ports that lie with the caller for a run, in place of the arena.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/engine/fixture.h"

namespace sluice {
namespace {

/// Room for one tensor, with a tail of a pattern that nobody writes to.
struct Place {
  explicit Place(std::size_t bytes) : size(bytes), lines((bytes + 127) / 64 + 1) { std::memset(lines.data(), 0x5a, lines.size() * 64); }
  std::span<std::byte> memory(std::size_t offset = 0) {
    return std::as_writable_bytes(std::span(lines)).subspan(offset, size + static_cast<std::size_t>(kPortTail.count()));
  }
  bool holds(std::span<const std::byte> values) { return std::memcmp(lines.data(), values.data(), values.size()) == 0; }
  bool tail_is_whole() {
    const auto tail = memory().subspan(size);
    return std::all_of(tail.begin(), tail.end(), [](std::byte byte) { return byte == std::byte{0x5a}; });
  }

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::size_t size;
  std::vector<Line> lines;
};

struct Placed {
  explicit Placed(const SessionOptions& options = {.ports_elsewhere = true}) {
    auto created = Session::create(fixture.model, options);
    REQUIRE(created);
    session = std::move(*created);
    std::memcpy(input.lines.data(), fixture.input().data(), input.size);
  }
  std::span<const std::byte> expected() const { return std::as_bytes(std::span(fixture.toy.expected)); }
  bool gives_its_output() {
    std::vector<float> values(fixture.toy.expected.size());
    return session->get_output(0, std::as_writable_bytes(std::span(values))) && values == fixture.toy.expected;
  }

  Fixture fixture;
  Place input{fixture.input().size()}, output{fixture.toy.expected.size() * sizeof(float)};
  std::unique_ptr<Session> session;
};

}  // namespace

TEST_CASE("a run reads an input and makes an output where they lie with the caller, and nothing beside them") {
  Placed placed;
  for (int run = 0; run < 3; ++run) {
    std::memset(placed.output.lines.data(), 0x5a, placed.output.size);
    REQUIRE(placed.session->place_input(0, placed.input.memory()));
    REQUIRE(placed.session->place_output(0, placed.output.memory()));
    REQUIRE(placed.session->run());
    CHECK(placed.output.holds(placed.expected()));
    CHECK(placed.output.tail_is_whole());
    CHECK(placed.input.holds(placed.fixture.input()));
    CHECK(placed.input.tail_is_whole());
    std::vector<std::byte> none(placed.output.size);
    CHECK(code_of(placed.session->get_output(0, none)) == ErrorCode::kInvalidArgument);
  }
  // Both were for one run.
  CHECK(code_of(placed.session->run()) == ErrorCode::kInvalidArgument);
  std::memset(placed.output.lines.data(), 0, placed.output.size);
  REQUIRE(placed.session->set_input(0, DType::kF32, placed.fixture.input()));
  REQUIRE(placed.session->run());
  CHECK(placed.gives_its_output());
  CHECK_FALSE(placed.output.holds(placed.expected()));
}

TEST_CASE("one port lies with the caller and the other in the arena; the last word counts") {
  Placed placed;
  REQUIRE(placed.session->place_input(0, placed.input.memory()));
  REQUIRE(placed.session->run());
  CHECK(placed.gives_its_output());
  Place other(placed.fixture.input().size());  // has other values
  REQUIRE(placed.session->place_input(0, other.memory()));
  REQUIRE(placed.session->set_input(0, DType::kF32, placed.fixture.input()));
  REQUIRE(placed.session->place_output(0, placed.output.memory()));
  REQUIRE(placed.session->run());
  CHECK(placed.output.holds(placed.expected()));
}

TEST_CASE("a port does not move where nobody asked for it, and its memory has a size and an alignment") {
  Placed unasked{SessionOptions()};
  CHECK(code_of(unasked.session->place_input(0, unasked.input.memory())) == ErrorCode::kUnsupported);
  CHECK(code_of(unasked.session->place_output(0, unasked.output.memory())) == ErrorCode::kUnsupported);
  Placed placed;
  CHECK(code_of(placed.session->place_input(1, placed.input.memory())) == ErrorCode::kInvalidArgument);
  CHECK(code_of(placed.session->place_input(0, placed.input.memory().first(placed.input.size))) == ErrorCode::kInvalidArgument);
  CHECK(code_of(placed.session->place_output(0, placed.output.memory(4))) == ErrorCode::kInvalidArgument);
  REQUIRE(placed.session->place_input(0, placed.input.memory()));
  REQUIRE(placed.session->set_budget(kUnlimitedBytes));  // inputs are set again after it
  CHECK(code_of(placed.session->run()) == ErrorCode::kInvalidArgument);
}

}  // namespace sluice
