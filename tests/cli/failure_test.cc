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
