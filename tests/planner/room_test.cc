#include <catch2/catch.hpp>

#include "sluice/planner/place/free_space.h"

namespace sluice::planner {
namespace {

/// Two blocks that live at all of three positions, with a gap between them: [0, 100), gap of 200, [300, 400).
FixedLayout layout_with_gap() {
  FixedLayout layout;
  layout.blocks = 2;
  layout.items = {{{0, 3}, 100, 1}, {{0, 3}, 100, 1}, {{0, 1}, 0, 1}, {{1, 2}, 0, 1}, {{2, 3}, 0, 1}};
  layout.offsets = {0, 300};
  return layout;
}

TEST_CASE("the room beside blocks is the larger of the gap between them and of what lies above") {
  const Room room = Room::beside_blocks(layout_with_gap(), 3);
  CHECK(room.within(450) == std::vector<std::uint64_t>(3, 200));
  CHECK(room.within(700) == std::vector<std::uint64_t>(3, 300));
}

TEST_CASE("a workspace that is larger than the gap lies above the blocks") {
  FixedLayout layout = layout_with_gap();
  const Room room = Room::beside_blocks(layout, 3);
  layout.items[2].size = 200;  // fits the gap
  layout.items[4].size = 201;
  REQUIRE(room.lay_out(layout, 450));
  CHECK(layout.workspace_offset(0) == 100);
  CHECK(layout.workspace_offset(2) == 400);
  CHECK(layout.height == 601);  // more than there is: the caller sees that it does not fit
}

TEST_CASE("where more lies free above the blocks, workspaces lie there") {
  FixedLayout layout = layout_with_gap();
  const Room room = Room::beside_blocks(layout, 3);
  layout.items[3].size = 50;
  REQUIRE(room.lay_out(layout, 650));
  CHECK(layout.workspace_offset(1) == 400);
  CHECK(layout.height == 450);
}

}  // namespace
}  // namespace sluice::planner
