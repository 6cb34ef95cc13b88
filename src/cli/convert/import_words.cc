#include "src/cli/convert/import_words.h"

#include <CLI/App.hpp>
#include <charconv>

#include "src/cli/convert/dim_words.h"
#include "src/cli/failure.h"
#include "src/cli/inputs.h"
#include "src/cli/outputs.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// NAME=FILE.
std::pair<std::string, importer::InputValue> read_value(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) raise(make_error(ErrorCode::kInvalidArgument, text, "--value wants NAME=FILE"));
  HostTensor tensor = read_tensor_file(text.substr(equals + 1));
  return {text.substr(0, equals), {tensor.dtype, tensor.shape, std::move(tensor.data)}};
}

/// NAME=2x3x4; "scalar" for no axes.
std::pair<std::string, Shape> parse_bound(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const auto malformed = [&] { raise(make_error(ErrorCode::kInvalidArgument, text, "--bound wants NAME=EXTENTxEXTENT...")); };
  if (equals == std::string::npos || equals == 0) malformed();
  std::vector<std::int64_t> extents;
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  while (std::string_view(at, end) != "scalar") {
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent < 1 || (stop != end && *stop != 'x')) malformed();
    extents.push_back(extent);
    if (stop == end) break;
    at = stop + 1;
  }
  const auto shape = Shape::make(extents);
  if (!shape) malformed();
  return {text.substr(0, equals), *shape};
}

model::Preprocess preset(const std::string& name) {
  if (name == "imagenet") return {true, 256, 224, false, 1.0f / 255.0f, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  if (name == "imagenet-caffe") return {true, 256, 224, true, 1.0f, {104.0f, 117.0f, 123.0f}, {1.0f, 1.0f, 1.0f}};
  return {};
}

}  // namespace

void add_import_options(CLI::App& app, ImportWords& words) {
  app.add_option("--dim", words.dims,
                 "NAME=EXTENT: binds a free dimension; INPUT.AXIS=EXTENT one without a name, or instead of what the file says; "
                 "NAME=1..8, 32..512:32 or 1,4,8: bound when the model is opened; NAME=S+P: follows from others")
      ->allow_extra_args(false);
  app.add_option("--value", words.values, "NAME=FILE: an input becomes a constant (.npy, .pb); for inputs whose values decide shapes")
      ->allow_extra_args(false);
  app.add_option("--bound", words.bounds, "NAME=EXTENTxEXTENT...: the most that a tensor can be whose extents come at run time")
      ->allow_extra_args(false);
  app.add_option("--preprocess", words.preprocess, "how a picture becomes the input, kept as the model's default")
      ->check(CLI::IsMember({"imagenet", "imagenet-caffe", "none"}))
      ->capture_default_str();
  app.add_option("--labels", words.labels, "a file with one label a line, kept in the model");
  app.add_option(
      "--max-constants", words.max_constants,
      "SIZE: what may be made beyond what lies in the file, by computing with constants, writing fills out and unrolling bodies; "
      "default: 3 MiB for a file of at most 1 KiB, else 64 KiB for each of its bytes");
}

void apply(const ImportWords& words, importer::ConvertOptions& options) {
  for (const std::string& dim : words.dims) add_dim(dim, options);
  for (const std::string& value : words.values) options.values.insert(read_value(value));
  for (const std::string& bound : words.bounds) options.bounds.insert(parse_bound(bound));
  options.preprocess = preset(words.preprocess);
  if (!words.max_constants.empty()) {
    const auto bytes = parse_bytes(words.max_constants);
    if (!bytes) raise(make_error(ErrorCode::kInvalidArgument, words.max_constants, "--max-constants wants a size such as 64MiB"));
    options.max_constants = *bytes;
  }
  if (!words.labels.empty()) options.labels = read_labels(words.labels);
}

void print_problems(const char* program, const std::string& onnx, const std::vector<importer::Problem>& problems) {
  for (const importer::Problem& problem : problems) {
    std::string where = onnx;
    if (!problem.node.empty()) where += fmt::format(": node `{}`", problem.node);
    if (!problem.op_type.empty()) where += fmt::format(" ({}, opset {})", problem.op_type, problem.opset);
    complain(program, fmt::format("{}: {}", where, problem.message));
  }
}

void print_problems(const char* program, const std::string& onnx, const importer::ConvertReport& report) {
  print_problems(program, onnx, report.problems);
  for (const std::string& name : report.value_inputs)
    complain(program, fmt::format("the values of input `{}` decide shapes: bind them with --value {}=FILE", name, name));
  for (const std::string& name : report.unbounded)
    complain(program, fmt::format("the extents of `{}` come at run time: state the most that they can be with --bound {}=...", name, name));
}

Json json_of_problems(const std::vector<importer::Problem>& problems) {
  Json list = Json::array();
  for (const importer::Problem& problem : problems)
    list.push_back({{"code", name_of(problem.code)},
                    {"node", problem.node},
                    {"operator", problem.op_type},
                    {"opset", problem.opset},
                    {"message", problem.message}});
  return list;
}

}  // namespace sluice::cli
