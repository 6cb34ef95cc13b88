// sluice-emit: a model becomes C99 with one static arena. The report goes to stdout, problems to stderr.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "sluice/core/cpu.h"
#include "sluice/emit/emit.h"
#include "sluice/emit/measure.h"
#include "sluice/profiler/profile_file.h"
#include "src/cli/converted.h"
#include "src/cli/dims.h"
#include "src/cli/emit/test_vector.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/guarded_main.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/parse_share.h"
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
  std::string max_overhead;
  std::vector<std::string> dims;
  std::vector<std::string> test;
  bool float_input = false;
  bool measure = false;
  bool json = false;
};

std::uint64_t parse_ram(const std::string& text) {
  if (text == "smallest") return 0;
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == Bytes()) raise(make_error(ErrorCode::kInvalidArgument, text, "--ram wants a size such as 24KiB, or smallest"));
  return bytes->count();
}

/// Emitted code has one shape.
void refuse_open_dimensions(const std::string& name, const Model& model, const model::Extents& given) {
  for (const model::Dimension& dimension : model.file().dimensions())
    if (dimension.extents.size() > 1 && !given.contains(dimension.name))
      throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: the extent of `{}` is left open ({}): bind it with --dim {}=...", name,
                                                             dimension.name, model::extents_text(dimension.extents), dimension.name));
}

/// `name` is the user's name of the model, also if it was converted to a temporary file.
std::shared_ptr<const Model> open_one_shape(const std::string& name, const std::string& path, const std::vector<std::string>& dims) {
  const model::Extents extents = parse_dims(dims);
  auto model = unwrap(Model::open(path, extents));
  refuse_open_dimensions(name, *model, extents);
  return model;
}

/// The model of the command line; an ONNX file is converted first.
struct OpenedModel {
  explicit OpenedModel(const CommandLine& line) {
    const bool onnx = is_onnx(line.model);
    // No kernel of emitted code forms sums as winograd4 does, or skips zeros.
    if (onnx) converted.emplace(line.model, ConvertWords{.dims = line.dims, .numerics = "exact", .sparse = "none"});
    model = open_one_shape(line.model, onnx ? converted->path() : line.model, onnx ? std::vector<std::string>() : line.dims);
  }
  std::optional<ConvertedModel> converted;
  std::shared_ptr<const Model> model;
};

emit::NetworkOptions network_options(const CommandLine& line) {
  return {.input = line.input == "held" ? emit::InputForm::kHeld : emit::InputForm::kStreamed, .float_ports = line.float_input};
}

const std::string& make_folder(const CommandLine& line) {
  std::error_code error;
  std::filesystem::create_directories(line.folder, error);
  if (error) raise(make_io_error(line.folder, "the folder cannot be made", error.value()));
  return line.folder;
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
          {"input_passes", made.input_passes},
          {"weight_bytes", made.weight_bytes},
          {"constant_bytes", made.constant_bytes}};
}

void print_report(const emit::Emission& made, const std::string& source) {
  const std::string again =
      made.macs_factor == 1.0 ? std::string("none of them twice") : fmt::format("{:.3f} times that in strips", made.macs_factor);
  fmt::print("{}: {} stages, {} multiply-adds, {}\n", source, made.network.stages.size(), made.network.macs, again);
  if (made.input_passes > 1) fmt::print("  input   its rows are asked for {} times, from the first one on\n", made.input_passes);
  fmt::print("  RAM     {} B: arena {} and at most {} of stack (tensors alone need {} where nothing is computed twice)\n",
             made.arena_bytes + made.stack_bound_bytes, made.arena_bytes, made.stack_bound_bytes, made.lower_bound_bytes);
  fmt::print("  flash   {} B of weights, {} of biases, multipliers and tables, and code\n", made.weight_bytes, made.constant_bytes);
}

void emit_model(const CommandLine& line) {
  if (line.model.empty()) raise(make_error(ErrorCode::kInvalidArgument, "model", "is needed; only --measure does without"));
  if (line.ram.empty())
    raise(make_error(ErrorCode::kInvalidArgument, "--ram", "is needed: a size such as 24KiB, or smallest; only --measure does without"));
  emit::EmitOptions options;
  options.name = emit::c_name_of(std::filesystem::path(line.model).stem().string());
  options.ram = parse_ram(line.ram);
  options.network = network_options(line);
  if (!line.max_overhead.empty()) options.max_overhead = parse_share(line.max_overhead, "--max-overhead");
  const OpenedModel opened(line);
  const auto& model = opened.model;
  std::optional<Progress> progress;
  options.progress = [&](std::size_t done, std::size_t all) {
    if (!progress) progress.emplace("emit", all);
    progress->update(done, [&] { return fmt::format("weights of layer {} of {}", done, all); });
  };
  const emit::Emission made = unwrap(emit::emit(model->file(), options));
  progress.reset();  // erased before the report
  // All that can be wrong with the input of the test is said before anything is written.
  std::string test;
  if (!line.test.empty()) test = emit::test_program(made, options, make_test_vector(model, made.network, line.test));
  const std::string stem = (std::filesystem::path(make_folder(line)) / options.name).string();
  write_text(stem + ".c", made.source);
  write_text(stem + ".h", made.header);
  if (!line.test.empty()) write_text(stem + "_test.c", test);
  if (line.json)
    print_json("sluice emit", json_of(made, stem + ".c", stem + ".h"));
  else
    print_report(made, stem + ".c");
  finish_stdout();
}

/// The profile of a device that runs emitted code, without the times that it measures: one processor, which reads its weights from flash.
profiler::DeviceProfile emitted_device(const emit::Measurer& measurer) {
  constexpr double kNothing = 1e-9, kAtOnce = 1e12;
  profiler::DeviceProfile profile;
  profile.device = "emitted code";
  profile.isa = name_of(Isa::kScalar);
  profile.step_overhead_seconds = profile.load_start_seconds = profile.wake_seconds = profile.share_seconds = kNothing;
  profile.verify_bytes_per_second = kAtOnce;
  profile.reads = {{.depth = 1, .piece_bytes = 4096, .bytes_per_second = kAtOnce}};
  profile.copies_views = true;
  profile.samples = measurer.samples;
  return profile;
}

void emit_measurer(const CommandLine& line) {
  if (!line.max_overhead.empty()) raise(make_error(ErrorCode::kInvalidArgument, "--max-overhead", "is of a model; --measure emits none"));
  if (!line.test.empty()) raise(make_error(ErrorCode::kInvalidArgument, "--test", "is of a model; --measure emits none"));
  if (line.model.empty() && !line.dims.empty())
    raise(make_error(ErrorCode::kInvalidArgument, "--dim", "is of a model, and none is given to --measure"));
  emit::MeasureOptions options;
  if (!line.ram.empty() && (options.ram = parse_ram(line.ram)) == 0)
    raise(make_error(ErrorCode::kInvalidArgument, "--ram", "is a size with --measure: its layers are chosen to fit"));
  std::optional<OpenedModel> opened;
  emit::Network network;
  if (!line.model.empty()) {
    opened.emplace(line);
    options.model = &opened->model->graph();
    emit::NetworkOptions network_form = network_options(line);
    if (options.model->inputs.size() > 1) network_form.input = emit::InputForm::kHeld;  // layers are timed alike
    network = unwrap(emit::make_network(*options.model, network_form));
    options.network = &network;
    options.kernels.emplace();
    for (const emit::Stage& stage : network.stages) options.kernels->insert(stage.kernel);
  }
  const emit::Measurer measurer = unwrap(emit::make_measurer(options));
  const std::string source = (std::filesystem::path(make_folder(line)) / "measure.c").string();
  write_text(source, emit::measure_program(measurer, profiler::pieces_of_profile(emitted_device(measurer))));
  if (line.json)
    print_json("sluice emit --measure", {{"source", source},
                                         {"arena_bytes", measurer.arena_bytes},
                                         {"layers", measurer.stage_count},
                                         {"samples", measurer.samples.size()}});
  else
    fmt::print("{}: {} layers in an arena of {} B; it prints a device profile for `plan` and `predict --profile FILE --threads 1`\n",
               source, measurer.stage_count, measurer.arena_bytes);
  finish_stdout();
}

int dispatch(int argc, char** argv) {
  CLI::App app("Writes a model as C99 for devices without a file system", "sluice-emit");
  CommandLine line;
  app.add_option("model", line.model, "the model: M.sluice, or M.onnx, which is converted first");
  app.add_option("-o,--output", line.folder, "the folder for NAME.c and NAME.h, NAME being the model's stem")->required();
  app.add_option("--ram", line.ram, "what arena and stack may take together, such as 24KiB, or smallest; needed, but with --measure");
  app.add_option("--input", line.input, "streamed: rows are asked for by a callback; held: all of it lies in the arena before a run")
      ->check(CLI::IsMember({"streamed", "held"}))
      ->capture_default_str();
  app.add_option(
      "--max-overhead", line.max_overhead,
      "what less RAM may cost, of the multiply-adds, such as 20%: columns that strips share are computed again; none if not given");
  app.add_option("--dim", line.dims, "NAME=EXTENT: binds a dimension, as for convert")->allow_extra_args(false);
  app.add_option("--test", line.test,
                 "FILE, NAME=FILE or random[:SEED]: writes NAME_test.c too, which runs this input and compares with the engine's outputs")
      ->allow_extra_args(false);
  app.add_flag("--float-input", line.float_input, "the input stays f32 where the network begins by quantising it");
  app.add_flag("--measure", line.measure,
               "writes measure.c instead: a program for the device, which times the kernels, or the layers of a model if one is given, and "
               "prints a profile "
               "that plan and predict take; --ram is of its arena, 16KiB if not given");
  app.add_flag("--json", line.json, "print one JSON object");
  constexpr std::string_view kOfValues[] = {"--dim", "--test"};
  const std::span<const char* const> typed(argv, static_cast<std::size_t>(argc));
  const std::vector<std::string> words = spread_values(typed.subspan(argc > 0 ? 1 : 0), kOfValues);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 parses a vector from its back
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    return refuse_words("sluice-emit", app, "sluice emit", error);
  }
  refuse_empty_words(app);
  line.measure ? emit_measurer(line) : emit_model(line);
  return 0;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) { return sluice::cli::guarded_main("sluice-emit", sluice::cli::dispatch, argc, argv); }
