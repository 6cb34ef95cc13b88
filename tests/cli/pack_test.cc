// sluice-pack and its files; placements of the published hard problems.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sluice/planner/place/place.h"
#include "sluice/planner/place/validate_placement.h"
#include "src/cli/pack/problem_file.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;
using namespace sluice::planner;
namespace fs = std::filesystem;

namespace {

/// A to H of shared/allocation-problems; none where that folder is absent.
std::vector<fs::path> hard_problems() {
  const char* const named = std::getenv("SLUICE_SHARED_DIR");
  const fs::path shared = named != nullptr ? named : *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
  std::vector<fs::path> files;
  if (!fs::is_directory(shared / "allocation-problems")) return files;
  for (const auto& entry : fs::directory_iterator(shared / "allocation-problems"))
    if (entry.path().filename().string().ends_with(".1048576.csv")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Result<ProblemFile> read_text(const TemporaryFolder& folder, const std::string& text, const std::string& name = "problem.csv") {
  std::ofstream(folder.path(name), std::ios::binary) << text;
  return read_problem(folder.path(name));
}

int exit_of(const std::string& arguments) {
  const int status = std::system(("'" SLUICE_PACK "' " + arguments + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("the published hard problems fit their capacity") {
  const std::vector<fs::path> files = hard_problems();
  if (files.empty()) WARN("SKIPPED: SLUICE_SHARED_DIR names no folder with allocation-problems/");
  double log_ratio = 0;
  for (const fs::path& path : files) {
    INFO(path.filename().string());
    const Result<ProblemFile> file = read_problem(path.string());
    REQUIRE(file);
    CHECK(file->problem.capacity == 1048576);
    log_ratio += std::log(place(file->problem).ratio());
    CHECK_FALSE(place(file->problem, {PlaceGoal::kFit, {1}}).settled);  // without work to do, the search does not know
    const Placed placed = place(file->problem, {.goal = PlaceGoal::kFit, .search = SearchLimit::of_milliseconds(1000), .threads = 2});
    CHECK(placed.by == PlacedBy::kExactSearch);
    CHECK(validate_placement(file->problem, placed.placement.offsets));
  }
  if (!files.empty()) CHECK(std::exp(log_ratio / static_cast<double>(files.size())) <= 1.20);
}

TEST_CASE("problem files are read in any order of columns, with the capacity in their name") {
  const TemporaryFolder folder;
  const auto file = read_text(folder, "size,id,alignment,upper,lower\r\n7,a,2,5,-1\r\n\n8,b,4,9,5\n", "x.40.csv");
  REQUIRE(file);
  CHECK(file->problem.capacity == 40);
  CHECK(file->ids == std::vector<std::string>{"a", "b"});
  CHECK(file->problem.rectangles[0].time == Interval<std::int64_t>{-1, 5});
  CHECK(file->problem.rectangles[1].alignment == 4);
  CHECK_FALSE(file->offsets);
}

TEST_CASE("problem files that make no sense are refused") {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "id,lower,upper\na,0,1\n", "id,lower,upper,size\na,0,1\n", "id,lower,upper,size\na,0,1,x\n", "id,lower,upper,size\na,1,0,4\n",
        "id,lower,upper,size\na,0,1,-4\n", "id,lower,upper,size,alignment\na,0,1,4,0\n",
        "id,lower,upper,size\na,0,1,9223372036854775807\nb,0,1,9223372036854775807\n",
        "id,lower,upper,size\na,0,1,99999999999999999999\n"}) {
    INFO(text);
    const auto file = read_text(folder, text);
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("the tool places, validates and writes what it can check again") {
  const TemporaryFolder folder;
  const std::string problem = "'" PROBLEMS_DIR "/bridge.16.csv'";
  const std::string solution = folder.path("solution.16.csv");
  CHECK(exit_of(problem + " --output '" + solution + "'") == 0);
  const auto file = read_problem(solution);
  REQUIRE(file);
  REQUIRE(file->offsets);
  CHECK(validate_placement(file->problem, *file->offsets));
  CHECK(exit_of("--check '" + solution + "'") == 0);
  CHECK(exit_of("--check --capacity 15 '" + solution + "'") == 2);
  CHECK(exit_of("--check " + problem) == 1);
  CHECK(exit_of(problem + " --capacity 15") == 4);
  CHECK(exit_of(problem + " --search 5") == 1);
  CHECK(exit_of("'" + folder.path("absent.csv") + "'") == 5);
}
