// onnx-suite DIR [--table FILE]: runs ONNX's operator tests and prints results by operator; the last line counts them.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>

#include "tests/importer/onnx_suite.h"

namespace {

using sluice::test::CaseResult;
using sluice::test::Outcome;

struct Counts {
  int passed = 0, refused = 0, failed = 0;
  std::vector<const CaseResult*> others;

  void add(const CaseResult& result) {
    ++(result.outcome == Outcome::kPassed ? passed : result.outcome == Outcome::kRefused ? refused : failed);
    if (result.outcome != Outcome::kPassed) others.push_back(&result);
  }
};

/// A table in Markdown: what docs/operators.md takes over.
void write_table(const char* path, const std::map<std::string, Counts>& by_operator) {
  std::ofstream file(path);
  file << "| operator | cases that agree | refused | why |\n|---|---|---|---|\n";
  for (const auto& [op, counts] : by_operator) {
    file << "| " << op << " | " << counts.passed << " | " << counts.refused + counts.failed << " | ";
    if (!counts.others.empty()) file << counts.others.front()->why;
    file << " |\n";
  }
}

int run(const char* root, const char* table) {
  char scratch[] = "/tmp/onnx-suite-XXXXXX";
  if (mkdtemp(scratch) == nullptr) {
    std::perror("onnx-suite: no folder for scratch files");
    return 5;
  }
  const std::vector<CaseResult> results = sluice::test::run_suite(root, scratch);
  rmdir(scratch);
  std::map<std::string, Counts> by_operator;
  Counts all;
  int bound = 0;
  for (const CaseResult& result : results) {
    by_operator[result.op].add(result);
    all.add(result);
    bound += result.bound_inputs > 0 ? 1 : 0;
  }
  for (const auto& [op, counts] : by_operator) {
    std::printf("%-28s %4d passed %4d refused %4d failed\n", op.c_str(), counts.passed, counts.refused, counts.failed);
    for (const CaseResult* other : counts.others)
      std::printf("    %s %s: %s\n", other->outcome == Outcome::kRefused ? "refused" : "FAILED ", other->name.c_str(), other->why.c_str());
  }
  if (table != nullptr) write_table(table, by_operator);
  std::printf("inputs whose values decide shapes were bound at convert in %d cases\n", bound);
  std::printf("%d passed, %d refused, %d failed\n", all.passed, all.refused, all.failed);
  return all.failed == 0 ? 0 : 6;
}

}  // namespace

int main(int argc, char** argv) {
  const bool with_table = argc == 4 && std::strcmp(argv[2], "--table") == 0;
  if (argc != 2 && !with_table) {
    std::fprintf(stderr, "usage: onnx-suite DIR [--table FILE]\n");
    return 1;
  }
  try {
    return run(argv[1], with_table ? argv[3] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx-suite: %s\n", error.what());
    return 5;
  }
}
