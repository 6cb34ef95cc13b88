// From an ONNX file that a test builds to the Draft that becomes of it.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "src/importer/lowering.h"
#include "src/importer/onnx_graph.h"
#include "src/importer/rewrite/rewrite.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

namespace sluice::test {

struct Lowered {
  importer::Draft draft;
  std::vector<importer::Problem> problems;
  importer::OnnxGraph onnx;  // keeps the file that constants view
};

/// Reads and lowers; no rewrite yet.
inline Lowered lowered(const OnnxBuilder& builder, const std::map<std::string, std::int64_t>& dims = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m.onnx");
  write_file(path, builder.bytes());
  Lowered result;
  std::string message;
  const Status read = importer::read_onnx(path, result.onnx, message);
  INFO(message);
  REQUIRE(read);
  importer::ConvertOptions options;
  options.dims = dims;
  importer::lower(result.onnx, options, result.draft, result.problems);
  return result;
}

/// Reads, lowers and rewrites a file without problems.
inline Lowered rewritten(const OnnxBuilder& builder, bool fuse = true) {
  Lowered result = lowered(builder);
  for (const importer::Problem& problem : result.problems) UNSCOPED_INFO(problem.node + ": " + problem.message);
  REQUIRE(result.problems.empty());
  importer::rewrite(result.draft, fuse, false);
  return result;
}

/// The operators of a Draft, in order: "conv pool dense".
inline std::string operators_of(const importer::Draft& draft) {
  std::string text;
  for (const importer::DraftNode& node : draft.nodes) {
    if (!text.empty()) text += ' ';
    text += name_of(node.op);
  }
  return text;
}

}  // namespace sluice::test
