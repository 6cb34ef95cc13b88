#include "src/cli/failure.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/cli/temporary.h"

using namespace sluice::cli;

namespace {

/// What `complain` says, stderr being a file meanwhile.
std::string said(std::string_view text) {
  const TemporaryFolder folder;
  const std::string path = folder.path("stderr");
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(before >= 0);
  std::FILE* const file = std::fopen(path.c_str(), "w");
  REQUIRE(file != nullptr);
  REQUIRE(::dup2(::fileno(file), STDERR_FILENO) == STDERR_FILENO);
  complain("sluice", text);
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::fclose(file);
  std::ostringstream read;
  read << std::ifstream(path).rdbuf();
  return read.str();
}

}  // namespace

TEST_CASE("a complaint shows what would move a terminal's cursor") {
  CHECK(said("no node `\x1b[2Ja\r\tb\x7f`") == "sluice: no node `\\x1b[2Ja\\x0d\\x09b\\x7f`\n");
  CHECK(said("one\nand another, gr\xc3\xb6\xc3\x9f"
             "er") ==
        "sluice: one\nand another, gr\xc3\xb6\xc3\x9f"
        "er\n");
  CHECK(said(std::string_view("a\0b", 3)) == "sluice: a\\x00b\n");
}

TEST_CASE("of a complaint as long as a file its beginning and its end are said") {
  const std::string text = "--budget " + std::string(100'000, 'x') + ": is not a size";
  const std::string shown = said(text);
  CHECK(shown.size() < 4200);
  CHECK(shown.starts_with("sluice: --budget xxx"));
  CHECK(shown.ends_with("xxx: is not a size\n"));
  CHECK(shown.find("(96024 bytes are left out)") != std::string::npos);
  const std::string whole(4000, 'y');
  CHECK(said(whole) == "sluice: " + whole + "\n");
}

TEST_CASE("a budget that is too small is told in a unit of its size, and that a size has one where none was typed") {
  using sluice::ErrorCode;
  const auto told = [](std::uint64_t needed, std::uint64_t given) {
    return describe(sluice::make_error(ErrorCode::kBudgetTooSmall, "net", "", needed, given));
  };
  const std::string begin = "budget too small: net: the smallest budget that works is ";
  CHECK(told(8'388'609, 1 << 20) == begin + "8388609 bytes (8.01 MiB); given: 1048576 bytes");
  CHECK(told(8'388'608, 16) == begin + "8388608 bytes (8.00 MiB); given: 16 bytes (a size has a unit: 16MiB)");
  CHECK(told(21'584, 1 << 10) == begin + "21584 bytes (21.08 KiB); given: 1024 bytes");
  CHECK(told(21'584, 20) == begin + "21584 bytes (21.08 KiB); given: 20 bytes (a size has a unit: 20KiB)");
  CHECK(told(21'584, 0) == begin + "21584 bytes (21.08 KiB); given: 0 bytes");
}
