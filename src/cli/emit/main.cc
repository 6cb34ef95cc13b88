// sluice-emit: a model becomes C99 with one static arena. The report goes to stdout, problems to stderr.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "sluice/emit/emit.h"
#include "src/cli/dims.h"
#include "src/cli/emit/converted.h"
#include "src/cli/emit/test_vector.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/guarded_main.h"
#include "src/cli/json.h"
#include "src/cli/process.h"
#include "src/cli/refuse_words.h"
#include "src/cli/text.h"
#include "src/cli/words.h"

namespace sluice::cli {
namespace {

struct CommandLine {
  std::string model;
  std::string folder;
  std::string ram;
  std::string input = "streamed";
  std::vector<std::string> dims;
  std::vector<std::string> test;
  bool float_input = false;
  bool json = false;
};

std::uint64_t parse_ram(const std::string& text) {
  if (text == "smallest") return 0;
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == Bytes()) raise(make_error(ErrorCode::kInvalidArgument, text, "--ram wants a size such as 24KiB, or smallest"));
  return bytes->count();
}

/// Emitted code has one shape.
void refuse_open_dimensions(const Model& model, const model::Extents& given) {
  for (const model::Dimension& dimension : model.file().dimensions())
    if (dimension.extents.size() > 1 && !given.contains(dimension.name))
      throw Failure(ErrorCode::kInvalidArgument,
                    fmt::format("{}: the extent of `{}` is left open ({}): bind it with --dim {}=...", model.file().path(), dimension.name,
                                model::extents_text(dimension.extents), dimension.name));
}

std::shared_ptr<const Model> open_one_shape(const std::string& path, const std::vector<std::string>& dims) {
  const model::Extents extents = parse_dims(dims);
  auto model = unwrap(Model::open(path, extents));
  refuse_open_dimensions(*model, extents);
  return model;
}

void write_text(const std::string& path, const std::string& text) {
  write_atomically(path, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

Json json_of(const emit::Emission& made, const std::string& source, const std::string& header) {
  return {{"source", source},
          {"header", header},
          {"ram_bytes", made.arena_bytes + made.stack_bound_bytes},
          {"arena_bytes", made.arena_bytes},
          {"stack_bound_bytes", made.stack_bound_bytes},
          {"lower_bound_bytes", made.lower_bound_bytes},
          {"macs", made.network.macs},
          {"macs_factor", made.macs_factor},
          {"weight_bytes", made.weight_bytes},
          {"constant_bytes", made.constant_bytes}};
}

void print_report(const emit::Emission& made, const std::string& source) {
  fmt::print("{}: {} stages, {} multiply-adds, none of them twice\n", source, made.network.stages.size(), made.network.macs);
  fmt::print("  RAM     {} B: arena {} and at most {} of stack (tensors alone need {} with any cut)\n",
             made.arena_bytes + made.stack_bound_bytes, made.arena_bytes, made.stack_bound_bytes, made.lower_bound_bytes);
  fmt::print("  flash   {} B of weights, {} of biases, multipliers and tables, and code\n", made.weight_bytes, made.constant_bytes);
}

void emit_model(const CommandLine& line) {
  const std::filesystem::path given(line.model);
  emit::EmitOptions options;
  options.name = emit::c_name_of(given.stem().string());
  options.ram = parse_ram(line.ram);
  options.network.input = line.input == "held" ? emit::InputForm::kHeld : emit::InputForm::kStreamed;
  options.network.float_ports = line.float_input;
  const bool onnx = given.extension() == ".onnx";
  std::optional<ConvertedModel> converted;
  if (onnx) converted.emplace(line.model, line.dims);
  const auto model = open_one_shape(onnx ? converted->path() : line.model, onnx ? std::vector<std::string>() : line.dims);
  const emit::Emission made = unwrap(emit::emit(model->file(), options));

  std::error_code error;
  std::filesystem::create_directories(line.folder, error);
  if (error) raise(make_io_error(line.folder, "the folder cannot be made", error.value()));
  const std::string stem = (std::filesystem::path(line.folder) / options.name).string();
  write_text(stem + ".c", made.source);
  write_text(stem + ".h", made.header);
  if (!line.test.empty()) write_text(stem + "_test.c", emit::test_program(made, options, make_test_vector(model, made.network, line.test)));
  if (line.json)
    print_json("sluice emit", json_of(made, stem + ".c", stem + ".h"));
  else
    print_report(made, stem + ".c");
  finish_stdout();
}

int dispatch(int argc, char** argv) {
  CLI::App app("Writes a model as C99 for devices without a file system", "sluice-emit");
  CommandLine line;
  app.add_option("model", line.model, "the model: M.sluice, or M.onnx, which is converted first")->required();
  app.add_option("-o,--output", line.folder, "the folder for NAME.c and NAME.h, NAME being the model's stem")->required();
  app.add_option("--ram", line.ram, "what arena and stack may take together, such as 24KiB, or smallest")->required();
  app.add_option("--input", line.input, "streamed: rows are asked for by a callback; held: all of it lies in the arena before a run")
      ->check(CLI::IsMember({"streamed", "held"}))
      ->capture_default_str();
  app.add_option("--dim", line.dims, "NAME=EXTENT: binds a dimension, as for convert")->allow_extra_args(false);
  app.add_option("--test", line.test,
                 "FILE, NAME=FILE or random[:SEED]: writes NAME_test.c too, which runs this input and compares with the engine's outputs")
      ->allow_extra_args(false);
  app.add_flag("--float-input", line.float_input, "the input stays f32 where the network begins by quantising it");
  app.add_flag("--json", line.json, "print one JSON object");
  constexpr std::string_view kOfValues[] = {"--dim", "--test"};
  const std::span<const char* const> typed(argv, static_cast<std::size_t>(argc));
  const std::vector<std::string> words = spread_values(typed.subspan(argc > 0 ? 1 : 0), kOfValues);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes the last word first
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    return refuse_words("sluice-emit", app, "sluice emit", error);
  }
  emit_model(line);
  return 0;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) { return sluice::cli::guarded_main("sluice-emit", sluice::cli::dispatch, argc, argv); }
