#include "src/cli/convert/compress.h"

#include <algorithm>

#include "src/cli/convert/data_folder.h"
#include "src/cli/text.h"

namespace sluice::cli {

using quantiser::CompressedLayer;
using quantiser::CompressReport;

Json json_of_compressed(const CompressReport& report) {
  Json layers = Json::array(), outputs = Json::array();
  for (const CompressedLayer& layer : report.layers) {
    layers.push_back({{"node", layer.node},
                      {"operator", layer.op},
                      {"weights", layer.weights},
                      {"values", layer.values == 0 ? Json() : Json(layer.values)},
                      {"zeros", layer.zeros},
                      {"noise_db", json_of_decibels(layer.noise_db)},
                      {"compensated", report.items > 0 && layer.too_long == 0}});
  }
  for (const quantiser::OutputNoise& output : report.outputs)
    outputs.push_back({{"name", output.name}, {"noise_db", json_of_decibels(output.noise_db)}});
  return {{"items", report.items},
          {"layers", layers},
          {"float_bytes", report.float_bytes.count()},
          {"outputs", outputs},
          {"rows", report.rows},
          {"agreeing", report.agreeing},
          {"agreement", share_of(report.agreeing, report.rows)}};
}

void print_compressed(const CompressReport& report) {
  std::size_t width = 5;
  for (const CompressedLayer& layer : report.layers) width = std::max(width, std::min<std::size_t>(layer.node.size(), 48));
  fmt::print("\n  {:<{}}  {:<7} {:>10} {:>7} {:>8} {:>8}\n", "layer", width, "op", "weights", "values", "zeros, %", "SNR, dB");
  for (const CompressedLayer& layer : report.layers)
    fmt::print("  {:<{}}  {:<7} {:>10} {:>7} {:>8.1f} {:>8}\n", layer.node.substr(0, width), width, layer.op, layer.weights,
               layer.values == 0 ? "reals" : std::to_string(layer.values), 100 * layer.zeros, text_of_decibels(layer.noise_db));
  for (const CompressedLayer& layer : report.layers)
    if (layer.too_long > 0)
      fmt::print(
          "  {}: its outputs sum {} values, and what they have in common takes too much memory for more than 5,120: the layer was "
          "changed without a look at the data\n",
          layer.node, layer.too_long);
  if (report.converted.stored_bytes != Bytes())
    fmt::print("  weights: {} as the file's floats, {} stored: {:.2f} times smaller\n", format_bytes(report.float_bytes),
               format_bytes(report.converted.stored_bytes),
               static_cast<double>(report.float_bytes.count()) / static_cast<double>(report.converted.stored_bytes.count()));
  for (const quantiser::OutputNoise& output : report.outputs)
    fmt::print("  output {}: {} dB\n", output.name, text_of_decibels(output.noise_db));
  if (report.rows > 0)
    fmt::print("  top class as in f32: {} of {} ({:.1f} %), {} item{} of data\n", report.agreeing, report.rows,
               100.0 * share_of(report.agreeing, report.rows), report.items, report.items == 1 ? "" : "s");
}

}  // namespace sluice::cli
