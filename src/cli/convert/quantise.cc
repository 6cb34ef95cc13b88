#include "src/cli/convert/quantise.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>

#include "sluice/core/file.h"
#include "sluice/quantiser/quantiser.h"
#include "src/cli/convert/data_folder.h"
#include "src/cli/convert/import_words.h"
#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/outputs.h"
#include "src/cli/process.h"
#include "src/cli/refuse_words.h"
#include "src/cli/text.h"
#include "src/cli/words.h"

namespace sluice::cli {
namespace {

using quantiser::Layer;
using quantiser::Method;
using quantiser::Report;

constexpr const char* kProgram = "sluice-convert";
constexpr Method kMethods[] = {Method::kAuto, Method::kMinMax, Method::kPercentile, Method::kError};

struct QuantiseLine {
  std::string onnx;
  std::string output;
  std::string data;
  ImportWords import;
  ImageOptions image;
  std::string method = "auto";
  double percentile = 99.99;
  std::size_t keep_f32 = 0;
  bool no_bias_correction = false;
  bool no_equalisation = false;
  bool json = false;
  bool quiet = false;
};

Json json_of(const QuantiseLine& line, const Report& report, int status) {
  Json layers = Json::array(), outputs = Json::array();
  for (const Layer& layer : report.layers) {
    layers.push_back({{"node", layer.node},
                      {"operator", layer.op},
                      {"quantised", layer.quantised},
                      {"noise_db", json_of_decibels(layer.noise_db)},
                      {"alone_db", line.keep_f32 > 0 ? json_of_decibels(layer.alone_db) : Json(nullptr)},
                      {"bytes_before", layer.before.count()},
                      {"bytes_after", layer.after.count()}});
  }
  for (const quantiser::OutputNoise& output : report.outputs)
    outputs.push_back({{"name", output.name}, {"noise_db", json_of_decibels(output.noise_db)}});
  return {{"onnx", line.onnx},
          {"output", line.output},
          {"status", status},
          {"method", name_of(report.method)},
          {"items", report.items},
          {"bias_corrected", report.corrected},
          {"equalised", report.equalised},
          {"own_ranges", report.own_ranges},
          {"layers", layers},
          {"outputs", outputs},
          {"rows", report.rows},
          {"agreeing", report.agreeing},
          {"agreement", share_of(report.agreeing, report.rows)},
          {"weight_bytes_before", report.weights_before.count()},
          {"weight_bytes_after", report.weights_after.count()},
          {"problems", json_of_problems(report.problems)}};
}

void print_layers(const QuantiseLine& line, const Report& report) {
  std::size_t width = 5;
  for (const Layer& layer : report.layers) width = std::max(width, std::min<std::size_t>(layer.node.size(), 48));
  fmt::print("  {:<{}}  {:<7} {:>8} {:>10} {:>10}{}\n", "layer", width, "op", "SNR, dB", "bytes", "before",
             line.keep_f32 > 0 ? "  alone, dB" : "");
  for (const Layer& layer : report.layers) {
    fmt::print("  {:<{}}  {:<7} {:>8} {:>10} {:>10}{}{}\n", layer.node.substr(0, width), width, layer.op, text_of_decibels(layer.noise_db),
               layer.after.count(), layer.before.count(), line.keep_f32 > 0 ? fmt::format("  {:>9}", text_of_decibels(layer.alone_db)) : "",
               layer.quantised ? "" : "  f32");
  }
  std::vector<const Layer*> worst;
  for (const Layer& layer : report.layers) worst.push_back(&layer);
  std::stable_sort(worst.begin(), worst.end(), [](const Layer* a, const Layer* b) { return a->noise_db < b->noise_db; });
  worst.resize(std::min<std::size_t>(worst.size(), 3));
  fmt::print("\n  most noise:");
  for (const Layer* layer : worst) fmt::print("  {} {} dB", layer->node, text_of_decibels(layer->noise_db));
  fmt::print("\n");
}

void print_as_text(const QuantiseLine& line, const Report& report) {
  const auto quantised = std::count_if(report.layers.begin(), report.layers.end(), [](const Layer& layer) { return layer.quantised; });
  fmt::print("{}: {} of {} layers in integers, {} of weights where there were {}\n", line.output, quantised, report.layers.size(),
             format_bytes(report.weights_after), format_bytes(report.weights_before));
  fmt::print("  ranges by {}{}, {} item{} of data, biases {}, channels of {} tensors equalised\n\n", name_of(report.method),
             report.own_ranges == 0 ? "" : fmt::format(" ({} by another method)", report.own_ranges), report.items,
             report.items == 1 ? "" : "s", report.corrected ? "corrected" : "as they were", report.equalised);
  print_layers(line, report);
  for (const quantiser::OutputNoise& output : report.outputs)
    fmt::print("  output {}: {} dB\n", output.name, text_of_decibels(output.noise_db));
  fmt::print("  top class as in f32: {} of {} ({:.1f} %)\n", report.agreeing, report.rows, 100.0 * share_of(report.agreeing, report.rows));
}

int run(const QuantiseLine& line) {
  unwrap(open_for_reading(line.onnx));  // what is wrong with it is said before what is wrong with the data
  const quantiser::Data data = data_in(line.data, line.image);
  quantiser::Options options;
  apply(line.import, options.convert);
  for (const Method method : kMethods)
    if (name_of(method) == line.method) options.method = method;
  options.percentile = line.percentile;
  options.keep_f32 = line.keep_f32;
  options.correct_bias = !line.no_bias_correction;
  options.equalise = !line.no_equalisation;
  Report report;
  Status status;
  {
    std::unique_ptr<Progress> progress;
    std::string stage;
    if (!line.quiet && !line.json)
      options.progress = [&](std::string_view what, std::size_t done, std::size_t all) {
        if (stage != what || !progress) progress = std::make_unique<Progress>(stage = what, all);
        progress->update(done, [&] { return fmt::format("{} of {}", done, all); });
      };
    status = quantiser::quantise(line.onnx, line.output, data, options, report);
  }
  const int exit = status ? 0 : exit_status(status.error().code);
  print_problems(kProgram, line.onnx, report.problems);
  if (!status && report.problems.empty()) complain(kProgram, describe(status.error()));
  if (line.json) print_json("sluice quantize", json_of(line, report, exit));
  if (status && !line.json && !line.quiet) print_as_text(line, report);
  finish_stdout();
  return exit;
}

}  // namespace

int quantise_command(std::span<const char* const> words) {
  CLI::App app("Turns a model of floats into one of integers, after a look at data", "sluice quantize");
  QuantiseLine line;
  std::vector<std::string> names;
  for (const Method method : kMethods) names.emplace_back(name_of(method));
  app.add_option("onnx", line.onnx, "the ONNX file, of f32")->required();
  app.add_option("-o,--output", line.output, "what to write: OUT.onnx (QDQ, for any runtime) or a model file, OUT.sluice")->required();
  app.add_option("--data", line.data,
                 "a folder of pictures and arrays (.png .jpg .npy .npz .pb) such as the model will see, each an item; or one of them")
      ->required();
  app.add_option(
         "--method", line.method,
         "how the range of an activation follows from the data: minmax, percentile, mse (least squared error), or auto: the one with "
         "the least noise at the outputs")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--percentile", line.percentile, "how much of the values --method percentile keeps")
      ->check(CLI::Range(50.0, 100.0))
      ->capture_default_str();
  app.add_option("--keep-f32", line.keep_f32, "leave so many layers in f32: those that alone make the most noise at the outputs")
      ->capture_default_str();
  app.add_flag("--no-bias-correction", line.no_bias_correction, "leave biases as they are");
  app.add_flag("--no-equalisation", line.no_equalisation, "leave channels of nets with depthwise layers as they are");
  add_import_options(app, line.import);
  app.add_option("--fit", line.image.fit, "a picture of other proportions is cut (crop), stretched, or gets grey bars (letterbox)")
      ->check(CLI::IsMember(std::vector<std::string>(kImageFits.begin(), kImageFits.end())))
      ->capture_default_str();
  app.add_flag("--json", line.json, "print one JSON object, problems included");
  app.add_flag("--quiet", line.quiet, "print problems only");
  const std::vector<std::string> spread = spread_values(words, kOptionsOfValues);
  try {
    app.parse(std::vector<std::string>(spread.rbegin(), spread.rend()));  // it takes the last word first
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help
  } catch (const CLI::ParseError& error) {
    return refuse_words(kProgram, app, "sluice quantize", error);
  }
  refuse_empty_words(app);
  if (app.count("--preprocess") > 0) line.image.preset = line.import.preprocess;  // what is said is not warned of
  return run(line);
}

}  // namespace sluice::cli
