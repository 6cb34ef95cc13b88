#include "sluice/core/error.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <type_traits>

namespace sluice {

TEST_CASE("an error says what, where and how much") {
  const Error error = make_error(ErrorCode::kBudgetTooSmall, "m.sluice", "the budget is below the smallest that works", 100, 50);
  CHECK(error.to_string() == "budget too small: m.sluice: the smallest budget that works is 100 B, 50 B were given");
  CHECK(exit_status(error.code) == 4);
  CHECK(make_error(ErrorCode::kInvalidModel, "m", "it is too short", 100, 50).to_string() ==
        "invalid model: m: it is too short (needed 100, found 50)");
  CHECK(make_limit_error(ErrorCode::kInvalidModel, "m", "it is too long", 50, 100).to_string() ==
        "invalid model: m: it is too long (at most 50, found 100)");
  CHECK(make_io_error("f", "read failed", ENOENT).to_string() == "I/O error: f: read failed: No such file or directory");
}

TEST_CASE("a subject that is too long is cut, not overrun") {
  const Error error = make_error(ErrorCode::kInternal, std::string(500, 'x'), "");
  CHECK(error.subject().size() == Error::kSubjectCapacity - 1);
}

TEST_CASE("errors can be made and copied where nothing may be allocated") { STATIC_REQUIRE(std::is_trivially_copyable_v<Error>); }

}  // namespace sluice
