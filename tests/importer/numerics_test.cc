// Which convolutions `convert` computes by Winograd.
#include "src/importer/numerics.h"

#include <catch2/catch.hpp>

#include "sluice/importer/importer.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;
using model::NumericClass;

namespace {

NumericClass chosen(const model::ConvAttributes& conv, const model::PanelLayout& layout = {}) {
  model::Graph graph;
  graph.nodes.resize(1);
  graph.nodes[0].op = model::OpKind::kConv;
  graph.nodes[0].attributes = conv;
  graph.weights.resize(1);
  graph.weights[0].panel_layout = layout;
  graph.nodes[0].weights = {WeightId(0)};
  choose_numerics(graph);
  return graph.nodes[0].numeric;
}

model::ConvAttributes convolution(std::int64_t out_h, std::int64_t out_w, std::int64_t in_channels) {
  return {{.in_h = out_h, .in_w = out_w, .out_h = out_h, .out_w = out_w, .kernel_h = 3, .kernel_w = 3}, 1, in_channels, 32};
}

}  // namespace

TEST_CASE("convolutions that gain by Winograd are of its class") {
  for (const auto& [pixels, channels] : {std::pair{224, 64}, {56, 16}, {28, 128}, {14, 512}, {13, 48}, {10, 32}, {8, 512}})
    CHECK(chosen(convolution(pixels, pixels, channels)) == NumericClass::kWinograd4);
}

TEST_CASE("few channels, few pixels and squares mostly cut off stay exact") {
  CHECK(chosen(convolution(224, 224, 3)) == NumericClass::kExact);
  CHECK(chosen(convolution(7, 7, 512)) == NumericClass::kExact);
  CHECK(chosen(convolution(9, 9, 128)) == NumericClass::kExact);
  CHECK(chosen(convolution(1, 400, 64)) == NumericClass::kExact);
}

TEST_CASE("a few outputs stay exact over f32 weights, whose direct sums have pixels as lanes") {
  const auto with = [](std::int64_t pixels, std::int64_t inputs, std::int64_t outputs) {
    model::ConvAttributes conv = convolution(pixels, pixels, inputs);
    conv.out_channels = outputs;
    return conv;
  };
  for (const auto& [inputs, outputs] : {std::pair{16, 1}, {256, 2}, {16, 3}, {64, 4}})
    CHECK(chosen(with(28, inputs, outputs)) == NumericClass::kExact);
  for (const auto& [inputs, outputs] : {std::pair{257, 1}, {65, 3}, {16, 5}, {16, 16}})
    CHECK(chosen(with(28, inputs, outputs)) == NumericClass::kWinograd4);
  CHECK(chosen(with(8, 64, 1)) == NumericClass::kWinograd4);  // rows of fewer pixels than a vector has lanes
  CHECK(chosen(with(28, 64, 1), {.layout = model::WeightLayout::kPanels, .dtype = DType::kBF16}) == NumericClass::kWinograd4);
}

TEST_CASE("groups that fill panels gain as a node of their own would; smaller ones stay exact") {
  model::ConvAttributes conv = convolution(28, 28, 64);
  conv.out_channels = 64;
  for (const std::int64_t groups : {2, 4}) {
    conv.groups = groups;
    CHECK(chosen(conv) == NumericClass::kWinograd4);
  }
  conv.groups = 8;
  CHECK(chosen(conv) == NumericClass::kExact);
  conv.groups = 4;
  conv.in_channels = 32;
  CHECK(chosen(conv) == NumericClass::kExact);
}

TEST_CASE("other windows stay exact") {
  model::ConvAttributes conv = convolution(28, 28, 64);
  conv.window.stride_w = 2;
  CHECK(chosen(conv) == NumericClass::kExact);
  conv = convolution(28, 28, 64);
  conv.window.dilation_h = 2;
  CHECK(chosen(conv) == NumericClass::kExact);
  conv = convolution(28, 28, 64);
  conv.window.kernel_w = 1;
  CHECK(chosen(conv) == NumericClass::kExact);
}

TEST_CASE("--numerics exact keeps Winograd out of the file; the weights are the same raw panels either way") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 16, 8, 8}).weight("w", {20, 16, 3, 3});
  b.node("Conv", {"x", "w"}, {"y"}, {attribute("pads", Ints{1, 1, 1, 1})}).output("y");
  write_file(folder.path("m.onnx"), b.bytes());
  Bytes weight_bytes[2];
  for (const bool exact : {false, true}) {
    ConvertOptions options;
    options.exact = exact;
    ConvertReport report;
    REQUIRE(convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report));
    const auto file = model::ModelFile::open(folder.path("m.sluice"), operators::validate_node);
    REQUIRE(file);
    REQUIRE(file->graph().nodes.size() == 1);
    CHECK(file->graph().nodes[0].numeric == (exact ? NumericClass::kExact : NumericClass::kWinograd4));
    weight_bytes[exact ? 1 : 0] = file->graph().weights[0].bytes;
  }
  CHECK(weight_bytes[0] == weight_bytes[1]);
}
