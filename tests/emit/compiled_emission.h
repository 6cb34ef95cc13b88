// What a test does with an emission: a model of an ONNX file of the test's own, and the emission's test program compiled and run.
#pragma once

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "sluice/emit/emit.h"
#include "sluice/importer/importer.h"
#include "src/cli/emit/test_vector.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

namespace sluice::test {

/// The file converted as `sluice emit` does it.
inline Result<std::shared_ptr<const Model>> convert_exactly(const TemporaryFolder& folder, const OnnxBuilder& onnx,
                                                            importer::ConvertReport& report, importer::ConvertOptions options = {}) {
  options.exact = true;
  write_file(folder.path("m.onnx"), onnx.bytes());
  SLUICE_RETURN_IF_ERROR(importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report));
  return Model::open(folder.path("m.sluice"));
}

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Compiles the emission and its test without a warning and runs it; says what went wrong, or nothing.
inline std::string failure_of(const TemporaryFolder& folder, const std::shared_ptr<const Model>& model, const emit::EmitOptions& options,
                              const emit::Emission& made, const std::string& flags = "-O1") {
  write_text(folder.path("net.c"), made.source);
  write_text(folder.path("net.h"), made.header);
  write_text(folder.path("net_test.c"), emit::test_program(made, options, cli::make_test_vector(model, made.network, {"random:7"})));
  const std::string compile = std::string(SLUICE_C_COMPILER) + " -std=c99 " + flags + " -Wall -Wextra -Wpedantic -Wconversion -Werror " +
                              folder.path("net.c") + " " + folder.path("net_test.c") + " -o " + folder.path("net");
  if (std::system(compile.c_str()) != 0) return "does not compile";
  return std::system((folder.path("net") + " > " + folder.path("said") + " 2>&1").c_str()) == 0 ? ""
                                                                                                : "outputs differ, or a sanitizer speaks";
}

}  // namespace sluice::test
