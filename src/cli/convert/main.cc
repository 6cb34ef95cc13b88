// sluice-convert: an ONNX file becomes a model file; `sluice-convert quantize`: one of integers. The report goes to stdout, problems and
// progress to stderr.
#include <signal.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "sluice/importer/importer.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "sluice/quantiser/compressor.h"
#include "src/cli/convert/choose_weights.h"
#include "src/cli/convert/compress.h"
#include "src/cli/convert/data_folder.h"
#include "src/cli/convert/import_words.h"
#include "src/cli/convert/quantise.h"
#include "src/cli/failure.h"
#include "src/cli/guarded_main.h"
#include "src/cli/inputs.h"
#include "src/cli/json.h"
#include "src/cli/key.h"
#include "src/cli/outputs.h"
#include "src/cli/process.h"
#include "src/cli/refuse_words.h"
#include "src/cli/scratch_folder.h"
#include "src/cli/text.h"
#include "src/cli/words.h"

namespace sluice::cli {
namespace {

struct CommandLine {
  std::string onnx;
  std::string model;
  ImportWords import;
  std::string numerics = "fast";
  std::string weights;
  std::string code = "none";
  std::string sparse = "auto";
  double prune = 0;
  std::size_t cluster = 0;
  double smaller = 0;
  std::string data;
  WeightTarget target;
  std::string encrypt;
  bool without_weights = false;
  bool made_up_weights = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* kAutoWeights = "auto";

std::vector<std::string> storage_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernels::kPanelStorages; ++i) names.emplace_back(name_of(static_cast<kernels::PanelStorage>(i)));
  return names;
}

std::optional<kernels::PanelStorage> storage_of(const std::string& name) {
  const std::vector<std::string> names = storage_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<kernels::PanelStorage>(found - names.begin());
}

importer::Coding coding_of(const std::string& name) {
  if (name == "fast") return importer::Coding::kFast;
  if (name == "small") return importer::Coding::kSmall;
  return name == "auto" ? importer::Coding::kAuto : importer::Coding::kNone;
}

/// 300MB/s.
double parse_disk_rate(const std::string& text) {
  const std::size_t size = text.size() - (text.ends_with("/s") ? 2 : 0);
  const std::optional<Bytes> rate = parse_bytes(std::string_view(text).substr(0, size));
  if (!rate || *rate == Bytes() || *rate >= kUnlimitedBytes)
    raise(make_error(ErrorCode::kInvalidArgument, text, "--io-limit wants a rate such as 300MB/s"));
  return static_cast<double>(rate->count());
}

Json json_of_pruned(const importer::ConvertReport& report) {
  Json list = Json::array();
  for (const importer::PrunedWeight& weight : report.pruned)
    list.push_back({{"name", weight.name},
                    {"bytes_before", weight.before.count()},
                    {"bytes_after", weight.after.count()},
                    {"noise_db", std::isfinite(weight.noise_db) ? Json(weight.noise_db) : Json()}});
  return list;
}

void print_pruned(const importer::ConvertReport& report) {
  if (report.pruned.empty()) return;
  fmt::print("\n  {:<48} {:>11} {:>11} {:>15}\n", "pruned weight", "before", "after", "signal to noise");
  for (const importer::PrunedWeight& weight : report.pruned)
    fmt::print("  {:<48} {:>11} {:>11} {:>12.1f} dB\n", weight.name, format_bytes(weight.before), format_bytes(weight.after),
               weight.noise_db);
}

Json json_of(const CommandLine& line, const importer::ConvertReport& report, int status) {
  return {{"onnx", line.onnx},
          {"model", line.model},
          {"status", status},
          {"onnx_nodes", report.onnx_nodes},
          {"nodes", report.nodes},
          {"weight_bytes", report.weight_bytes.count()},
          {"file_bytes", report.file_bytes.count()},
          {"coded_bytes", report.coded_bytes.count()},
          {"stored_bytes", report.stored_bytes.count()},
          {"pruned", json_of_pruned(report)},
          {"sparse_weights", report.sparse_weights},
          {"sparse_bytes", report.sparse_bytes.count()},
          {"sparse_dense_bytes", report.sparse_dense_bytes.count()},
          {"graphs", report.graphs},
          {"made_graphs", report.made_graphs},
          {"forms", report.forms},
          {"variant_bytes", report.variant_bytes.count()},
          {"problems", json_of_problems(report.problems)}};
}

void print_report(const CommandLine& line, const importer::ConvertReport& report) {
  fmt::print("{}: {} ONNX nodes became {}, {} of weights\n", line.model, report.onnx_nodes, report.nodes,
             format_bytes(report.weight_bytes));
  if (report.sparse_weights != 0)
    fmt::print("  {} of them sparse: {} in place of {}\n", report.sparse_weights, format_bytes(report.sparse_bytes),
               format_bytes(report.sparse_dense_bytes));
  print_pruned(report);
  if (report.coded_bytes != Bytes())
    fmt::print("  {} of them coded: a file of {}\n", format_bytes(report.coded_bytes), format_bytes(report.file_bytes));
  for (const model::Dimension& dimension : report.dimensions)
    fmt::print("  {}: {}, to be bound with --dim when the model is opened\n", dimension.name, model::extents_text(dimension.extents));
  if (!report.dimensions.empty())
    fmt::print("  {} graphs of {} structure{}, {} of weights for some of them only\n", report.graphs, report.forms,
               report.forms == 1 ? "" : "s", format_bytes(report.variant_bytes));
}

bool compresses(const CommandLine& line) { return line.cluster > 0 || line.smaller > 0 || !line.data.empty(); }

void warn_of_no_pruning(const CommandLine& line, const importer::ConvertReport& report) {
  if (line.prune == 0 || compresses(line) || !report.pruned.empty()) return;
  fmt::print(stderr,
             "sluice-convert: warning: nothing was pruned: pruned are weights of f32, bf16 or f16 of 16 KiB and more, in dense layers and "
             "convolutions of one group, from a share of 0.25 on, 0.7 where a convolution may take Winograd's sums\n");
}

bool chooses_weights(const CommandLine& line) { return line.weights == kAutoWeights; }

/// For --weights auto: writes the form of each weight into `options`. Otherwise does nothing.
Status choose_forms(const CommandLine& line, importer::ConvertOptions& options, importer::WeightChoice& choice,
                    importer::ConvertReport& report) {
  if (!chooses_weights(line)) return {};
  constexpr int kUsualPlans = 36;  // a search of 8 to 10, then those for steps that are taken back
  std::unique_ptr<Progress> progress;
  if (!line.quiet && !line.json) progress = std::make_unique<Progress>("weights", kUsualPlans);
  const auto price = price_by_plans(line.target, [&](int plans) {
    if (progress) progress->update(static_cast<std::uint64_t>(std::min(plans, kUsualPlans)), [&] { return fmt::format("plan {}", plans); });
  });
  const ScratchFolder folder("sluice-convert");
  const Status chosen = importer::choose_weights(line.onnx, folder.file("model.sluice"), options, price, choice, report);
  for (const importer::ChosenWeight& weight : choice.weights) options.weight_forms[weight.name] = weight.storage;
  return chosen;
}

/// Are weights changed after a look at data, or made to share values? The compressor does that; zeros without a look at data, the importer.
Status compress_file(const CommandLine& line, const importer::ConvertOptions& options, quantiser::CompressReport& report) {
  quantiser::Data data;
  if (!line.data.empty()) data = data_in(line.data, {});
  quantiser::CompressOptions compress{.convert = options, .prune = line.prune, .cluster = line.cluster, .smaller = line.smaller};
  compress.convert.prune = 0;
  std::unique_ptr<Progress> progress;
  std::string stage;
  if (!line.quiet && !line.json)
    compress.progress = [&](std::string_view what, std::size_t done, std::size_t all) {
      if (stage != what || !progress) progress = std::make_unique<Progress>(stage = what, all);
      progress->update(done, [&] { return fmt::format("{} of {}", done, all); });
    };
  return quantiser::compress(line.onnx, line.model, data, compress, report);
}

int convert_file(const CommandLine& line) {
  importer::ConvertOptions options;
  apply(line.import, options);
  options.exact = line.numerics == "exact";
  options.without_weights = line.without_weights;
  options.made_up_weights = line.made_up_weights;
  options.weights = storage_of(line.weights);
  options.code = coding_of(line.code);
  options.sparse = line.sparse == "auto";
  options.prune = line.prune;
  if (!line.target.io_limit.empty()) options.disk_bytes_per_second = parse_disk_rate(line.target.io_limit);
  model::Key key;
  if (!line.encrypt.empty()) {
    std::error_code error;
    if (std::filesystem::equivalent(line.encrypt, line.model, error))
      raise(make_error(ErrorCode::kInvalidArgument, line.model, "the model would replace the key that it is encrypted with"));
    key = read_key_file(line.encrypt);
    options.key = &key;
  }
  importer::ConvertReport report;
  importer::WeightChoice choice;
  quantiser::CompressReport compressed;
  Status converted = choose_forms(line, options, choice, report);
  if (converted && compresses(line)) {
    converted = compress_file(line, options, compressed);
    report = compressed.converted;
    report.problems = compressed.problems;
  } else if (converted) {
    std::unique_ptr<Progress> progress;
    if (!line.quiet && !line.json)
      options.progress = [&](Bytes done, Bytes all) {
        if (!progress) progress = std::make_unique<Progress>(line.model, all.count());
        progress->update(done.count(), [&] { return fmt::format("{} of {}", format_bytes(done), format_bytes(all)); });
      };
    converted = importer::convert(line.onnx, line.model, options, report);
  }
  const int status = converted ? 0 : exit_status(converted.error().code);
  print_problems("sluice-convert", line.onnx, report);
  if (!converted && report.problems.empty()) complain("sluice-convert", describe(converted.error()));
  if (!converted && converted.error().code == ErrorCode::kInvalidModel && model::ModelFile::open(line.onnx, operators::validate_node))
    fmt::print(stderr, "sluice-convert: {} is a model file already: sluice run {}\n", line.onnx, line.onnx);
  if (line.json) {
    Json json = json_of(line, report, status);
    if (converted && chooses_weights(line)) json["choice"] = json_of_choice(line.target, choice);
    if (converted && compresses(line)) json["compressed"] = json_of_compressed(compressed);
    print_json("sluice convert", json);
  }
  if (converted) warn_of_no_pruning(line, report);
  if (converted && !line.json && !line.quiet) {
    print_report(line, report);
    if (chooses_weights(line)) print_choice(line.target, choice);
    if (compresses(line)) print_compressed(compressed);
  }
  finish_stdout();
  return status;
}

/// The ONNX file is mapped: when somebody cuts it, the next touch beyond its new end is this signal. The model that is being written has
/// no name yet, so that leaving at once leaves nothing behind.
void refuse_cut_files() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    constexpr std::string_view kText = "sluice-convert: the ONNX file was cut short while it was read\n";
    static_cast<void>(::write(STDERR_FILENO, kText.data(), kText.size()) == 0);
    ::_exit(exit_status(ErrorCode::kFileChanged));
  };
  ::sigaction(SIGBUS, &action, nullptr);
}

/// What weights hold, and how they are stored.
void add_weight_options(CLI::App& app, CommandLine& line) {
  std::vector<std::string> forms = storage_names();
  forms.emplace_back(kAutoWeights);
  CLI::Option* const weights =
      app.add_option(
             "--weights", line.weights,
             "what panels of weights hold: the file's own values, f16 or f32 (the default), or these rounded to f32, bf16, f16, int8 (one "
             "scale an output) or int4 (one scale for 32 values), or auto: to each its own, with the least noise that lets a run in "
             "--for-budget hide its reading")
          ->check(CLI::IsMember(forms));
  app.add_option("--for-budget", line.target.budget, "the budget that --weights auto chooses for, as --budget of `sluice run`: 48MiB")
      ->needs(weights);
  app.add_option("--profile", line.target.profile,
                 "the device that --weights auto chooses for: a file, or none (default: what `sluice profile` wrote)")
      ->needs(weights);
  app.add_option("--code", line.code,
                 "entropy-codes weights, which stay the same: fast: those that shrink by a tenth; small: all that shrink; auto: those that "
                 "come sooner from the disk of --io-limit")
      ->check(CLI::IsMember({"none", "fast", "small", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--sparse", line.sparse,
         "auto: weights that are zero in enough blocks of 16 outputs x 1 input leave these out, and kernels skip them; none: zeros are "
         "values like others")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str();
  app.add_option(
         "--prune", line.prune,
         "this share of the blocks of 16 outputs x 1 input become zeros, the least by their sums of squares, of each weight that kernels "
         "are then faster with. With --data: those that the outputs lose the least by, and the others make up for them. With --cluster: "
         "single weights, wherever they lie")
      ->check(CLI::Range(0.0, 0.99));
  app.add_option("--cluster", line.cluster,
                 "the weights of a layer share so many values, whole numbers times a scale for each output, and are stored as coded bytes")
      ->check(CLI::Range(2, 256))
      ->excludes(weights);
  app.add_option("--smaller", line.smaller,
                 "all weights take so many times fewer bytes than the floats of the file, 2 to 15 or so: as --cluster and --prune, each "
                 "layer with the "
                 "values and zeros that cost all layers together the least noise; with --data that of the outputs over the data")
      ->check(CLI::Range(1.01, 1000.0))
      ->excludes(weights)
      ->excludes("--cluster")
      ->excludes("--prune");
  app.add_option("--data", line.data,
                 "for --prune, --cluster and --smaller: a folder of pictures and arrays (.png .jpg .npy .npz .pb) such as the model will "
                 "see, each an "
                 "item; or one of them. What a weight loses is made up for by others")
      ->excludes("--weights");
}

/// Refuses an option that would have no effect: whoever typed it expects one.
void check_weight_options(const CommandLine& line) {
  if (chooses_weights(line) && line.target.budget.empty())
    raise(make_error(ErrorCode::kInvalidArgument, "--weights auto", "wants --for-budget SIZE: what is chosen depends on it"));
  for (const auto& [option, value] : {std::pair("--for-budget", &line.target.budget), std::pair("--profile", &line.target.profile)})
    if (!value->empty() && !chooses_weights(line))
      raise(make_error(ErrorCode::kInvalidArgument, option,
                       "is for --weights auto: other weights are the same whatever the budget and device"));
  if (line.prune > 0 && line.cluster == 0 && line.sparse == "none")
    raise(make_error(ErrorCode::kInvalidArgument, "--prune", "makes sparse weights, which --sparse none forbids: leave out one of them"));
  if (!line.data.empty() && line.prune == 0 && line.cluster == 0 && line.smaller == 0)
    raise(make_error(ErrorCode::kInvalidArgument, "--data",
                     "is for --prune SHARE, --cluster N and --smaller TIMES: without them nothing is changed"));
  if (compresses(line) && (line.without_weights || line.made_up_weights))
    raise(make_error(ErrorCode::kInvalidArgument, "--cluster, --smaller, --data", "want a model with its weights"));
}

int dispatch(int argc, char** argv) {
  refuse_cut_files();
  if (argc > 1 && std::string_view(argv[1]) == "quantize") return quantise_command({argv + 2, static_cast<std::size_t>(argc - 2)});
  CLI::App app("Turns an ONNX file into a model file", "sluice-convert");
  CommandLine line;
  app.add_option("onnx", line.onnx, "the ONNX file")->required();
  app.add_option("-o,--output", line.model, "the model file to write, M.sluice")->required();
  add_import_options(app, line.import);
  app.add_option("--numerics", line.numerics,
                 "exact: one chain of additions for each output; fast: 3x3 convolutions may take Winograd's sums where that pays, and "
                 "small transposed ones run by phases")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str();
  add_weight_options(app, line);
  app.add_option("--io-limit", line.target.io_limit,
                 "the rate of the disk that --code auto codes for (default: 1.5GB/s) and --weights auto chooses for (default: the "
                 "profile's)");
  app.add_option("--encrypt", line.encrypt, "KEYFILE, 32 bytes: encrypts the model, which whoever opens it then gives with --key")
      ->check([](const std::string& path) { return path.empty() ? std::string("wants the file of a key") : std::string(); });
  app.add_flag("--without-weights", line.without_weights,
               "write a model that can be planned and predicted, not run; the ONNX file's initialisers may be shapes without data")
      ->excludes("--code");
  app.add_flag("--made-up-weights", line.made_up_weights,
               "make up initialisers without data, f32 ones at random and others as ones, so that the time of a net of shapes alone can be "
               "measured")
      ->excludes("--without-weights");
  app.add_flag("--json", line.json, "print one JSON object, problems included");
  app.add_flag("--quiet", line.quiet, "print problems only");
  const std::span<const char* const> typed(argv, static_cast<std::size_t>(argc));
  const std::vector<std::string> words = spread_values(typed.subspan(argc > 0 ? 1 : 0), kOptionsOfValues);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes the last word first
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    return refuse_words("sluice-convert", app, "sluice convert", error);
  }
  refuse_empty_words(app);
  check_weight_options(line);
  if (line.smaller > 0 && app.count("--code") > 0 && line.code != "small")
    raise(make_error(ErrorCode::kInvalidArgument, "--code", "is small with --smaller, which counts coded bytes: leave it out"));
  if ((line.cluster > 0 || line.smaller > 0) && app.count("--code") == 0) line.code = "small";  // few values in bytes are for that
  return convert_file(line);
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::keep_heap_small();
  return sluice::cli::guarded_main("sluice-convert", sluice::cli::dispatch, argc, argv);
}
