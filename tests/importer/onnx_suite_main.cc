// onnx-suite DIR... [--table FILE]: runs ONNX's tests and prints results by operator; the last line counts them.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/kernels/plain.h"
#include "src/importer/lowering.h"
#include "tests/importer/onnx_suite.h"

namespace {

using sluice::test::CaseResult;
using sluice::test::Outcome;

struct Counts {
  int passed = 0, refused = 0, failed = 0, bound = 0;
  std::vector<const CaseResult*> others;

  void add(const CaseResult& result) {
    bound += result.bound_inputs > 0 ? 1 : 0;
    ++(result.outcome == Outcome::kPassed ? passed : result.outcome == Outcome::kRefused ? refused : failed);
    if (result.outcome != Outcome::kPassed) others.push_back(&result);
  }
};

/// Operators with a line in the importer's tables, and how they run.
std::map<std::string, std::string> known_operators() {
  std::map<std::string, std::string> known;
  for (const sluice::kernels::PlainOperator* line : sluice::kernels::plain_operators()) known[std::string(line->name)] = "plain";
  for (const auto table : {sluice::importer::operator_table(), sluice::importer::contrib_table()})
    for (const sluice::importer::OperatorEntry& entry : table) {
      std::string& form = known[std::string(entry.op_type)];
      form = form == "plain" ? "fast, else plain" : "fast";
    }
  known["Scan"] = "as a subgraph, else at convert";
  known["If"] = "at convert, else chosen at run";
  known["Loop"] = "at convert, else as a subgraph";
  // Pieces that ONNX operators are made of; they have no ONNX name.
  for (const char* name : {"Max2", "Min2", "ModC", "ModPython", "ShiftLeft", "ShiftRight", "GeluTanh", "EinsumOfLetters", "ResizeOfExtents",
                           "ResizeAtRun", "FillOfShape", "ApplyFunction", "RunIf", "RunLoop", "RunScan", "TakeResult", "Choose"})
    known.erase(name);
  return known;
}

/// A refusal's reason, without what names one case: as many lines as there are kinds of reasons.
std::string kind_of(const CaseResult& result) {
  struct Kind {
    const char* holds;
    const char* text;
  };
  constexpr Kind kKinds[] = {
      {"values are of type string", "strings"},
      {"values are of type", "tensors of 8-bit floats, and of 4 and 2 bits, that are computed and not weights"},
      {"it casts to", "tensors of 8-bit floats, and of 4 and 2 bits, that are computed and not weights"},
      {"training", "training: optimisers, gradients, dropout that drops"},
      {"classical machine learning", "classical machine learning (ai.onnx.ml)"},
      {"random values", "random numbers"},
      {"ai.onnx.preview", "operators in preview"},
      {"pictures are decoded", "pictures as files"},
      {"beyond the range of f32", "values of f64 beyond the range of f32, as which all reals are computed"},
      {"of a type that it does not take", "arithmetic on u64, and other types that one operator does not take"},
  };
  for (const Kind& kind : kKinds)
    if (result.why.find(kind.holds) != std::string::npos) return kind.text;
  return result.why;
}

/// A refusal's reason in the table itself, to which the message refers.
std::string why_in_table(const CaseResult& result) { return result.why.substr(0, result.why.find("; docs/operators.md")); }

std::string table_of(const std::map<std::string, Counts>& by_operator, const Counts& all) {
  std::map<std::string, std::string> forms = known_operators();
  for (const auto& [op, counts] : by_operator) forms.try_emplace(op, counts.passed > 0 ? "at convert" : "");
  std::ostringstream text;
  text << all.passed << " of " << all.passed + all.refused + all.failed << " cases agree, " << all.refused << " are refused, " << all.failed
       << " fail.\n\n"
       << "| refused or failed | cases |\n|---|---|\n";
  std::map<std::string, int> kinds;
  for (const CaseResult* other : all.others) ++kinds[kind_of(*other)];
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [kind, count] : kinds) sorted.emplace_back(-count, kind);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [count, kind] : sorted) text << "| " << kind << " | " << -count << " |\n";
  text << "\n| operator | runs | cases that agree | refused | why |\n|---|---|---|---|---|\n";
  for (const auto& [op, form] : forms) {
    const auto found = by_operator.find(op);
    text << "| " << op << " | " << form << " | ";
    if (found == by_operator.end()) {
      text << "| | |\n";
      continue;
    }
    const Counts& counts = found->second;
    text << counts.passed << " | " << (counts.others.empty() ? "" : std::to_string(counts.others.size())) << " | "
         << (counts.others.empty() ? "" : why_in_table(*counts.others.front())) << " |\n";
  }
  return text.str();
}

/// Puts the table between the two marks of a Markdown file.
bool write_table(const char* path, const std::string& table) {
  const std::string begin = "<!-- generated by scripts/onnx-suite DIR... --table docs/operators.md -->\n", end = "<!-- end -->";
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t first = text.find(begin), last = text.find(end);
  if (first == std::string::npos || last == std::string::npos) return false;
  std::ofstream(path) << text.substr(0, first + begin.size()) << '\n' << table << '\n' << text.substr(last);
  return true;
}

int run(const std::vector<std::string>& roots, const char* table) {
  char scratch[] = "/tmp/onnx-suite-XXXXXX";
  if (mkdtemp(scratch) == nullptr) {
    std::perror("onnx-suite: no folder for scratch files");
    return 5;
  }
  std::vector<CaseResult> results;
  for (const std::string& root : roots)
    for (CaseResult& result : sluice::test::run_suite(root, scratch)) results.push_back(std::move(result));
  rmdir(scratch);
  std::map<std::string, Counts> by_operator;
  Counts all;
  int stated = 0, wide = 0;
  for (const CaseResult& result : results) {
    by_operator[result.op].add(result);
    all.add(result);
    stated += result.stated_bounds ? 1 : 0;
    wide += result.wide ? 1 : 0;
  }
  for (const auto& [op, counts] : by_operator) {
    std::printf("%-28s %4d passed %4d refused %4d failed %4d bound\n", op.c_str(), counts.passed, counts.refused, counts.failed,
                counts.bound);
    for (const CaseResult* other : counts.others)
      std::printf("    %s %s: %s\n", other->outcome == Outcome::kRefused ? "refused" : "FAILED ", other->name.c_str(), other->why.c_str());
  }
  if (table != nullptr && !write_table(table, table_of(by_operator, all))) {
    std::fprintf(stderr, "onnx-suite: %s has no marks between which the table belongs\n", table);
    return 1;
  }
  std::printf("%d cases agree within an absolute 1e-5 (long sums), all others within 1e-7\n", wide);
  std::printf("outputs whose extents come at run time were given a bound in %d cases\n", stated);
  std::printf("inputs whose values decide shapes were bound at convert in %d cases\n", all.bound);
  std::printf("%d passed, %d refused, %d failed\n", all.passed, all.refused, all.failed);
  return all.failed == 0 ? 0 : 6;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const char* table = nullptr;
  if (words.size() > 2 && words[words.size() - 2] == "--table") {
    table = argv[argc - 1];
    words.resize(words.size() - 2);
  }
  if (words.empty() || words.front().starts_with("-")) {
    std::fprintf(stderr, "usage: onnx-suite DIR... [--table FILE]\n");
    return 1;
  }
  try {
    return run(words, table);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx-suite: %s\n", error.what());
    return 5;
  }
}
