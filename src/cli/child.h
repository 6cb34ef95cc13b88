// Starts other programs and waits for them: the converter, and this program itself, since a point of a benchmark must be a process of its
// own.
#pragma once

#include <string>
#include <vector>

#include "src/cli/json.h"

namespace sluice::cli {

struct ChildResult {
  int status = 0;      // of its exit; 128 and the signal's number where one ended it
  std::string output;  // its stdout
  std::string error;   // its stderr
  double wall_ms = 0;  // from the start of the process to its end
};

/// Runs a program to its end; `name` is what it is told to be called. Throws Failure (kIo) where no process can be made.
ChildResult run_program(const std::string& path, std::string name, const std::vector<std::string>& words);
/// Runs `sluice WORDS` to its end.
ChildResult run_self(const std::vector<std::string>& words);
/// Throws Failure with the child's own text and a code of its status, unless that is 0.
void check_succeeded(const ChildResult& result);

/// The JSON object that the child printed. Throws Failure with the child's own text and status where it failed.
Json json_of_self(const std::vector<std::string>& words);

}  // namespace sluice::cli
