// Placement problems as files: the CSV of MiniMalloc (github.com/google/minimalloc), one rectangle a row.
//
//     id,lower,upper,size          the lifetime is [lower, upper); sizes and times are whole numbers; columns may come in any order
//     b1,0,3,4                     optional columns: alignment, offset
//
// The number before `.csv` in a file's name is the capacity: A.1048576.csv. A solution is the same file with an offset for each row. Files
// are untrusted: every field is checked, and sums that could overflow are refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/planner/place/placement_problem.h"

namespace sluice::cli {

struct ProblemFile {
  planner::PlacementProblem problem;  // the capacity in the file's name, if it has one
  bool has_capacity = false;
  std::vector<std::string> ids;                       // by rectangle
  std::optional<std::vector<std::uint64_t>> offsets;  // where the file has that column
};

/// Errors: kIo; kInvalidArgument with the line.
Result<ProblemFile> read_problem(const std::string& path);

/// The text of a solution.
std::string solution_text(const ProblemFile& file, const std::vector<std::uint64_t>& offsets);

}  // namespace sluice::cli
