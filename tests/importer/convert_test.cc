// From ONNX to a model file that opens: what is stored, in which order, and that the same input gives the same bytes.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "sluice/importer/importer.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> values_of(const model::ModelFile& file, const model::Weight& weight) {
  const std::string bytes = read_all(file.path());
  std::vector<float> values(weight.bytes.count() / sizeof(float));
  std::memcpy(values.data(), bytes.data() + weight.offset.count(), weight.bytes.count());
  return values;
}

model::ModelFile converted(const OnnxBuilder& b, const TemporaryFolder& folder, const ConvertOptions& options = {}) {
  write_file(folder.path("m.onnx"), b.bytes());
  ConvertReport report;
  const Status status = convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report);
  for (const Problem& problem : report.problems) UNSCOPED_INFO(problem.node + ": " + problem.message);
  REQUIRE(status);
  auto file = model::ModelFile::open(folder.path("m.sluice"), operators::validate_node);
  REQUIRE(file);
  REQUIRE(model::verify_weights(*file));
  return *std::move(file);
}

}  // namespace

TEST_CASE("a convolution's weight is packed by output panels, taps and input channels") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 2, 5, 5}).weight("w", {20, 2, 3, 3}).weight("bias", {20});
  b.node("Conv", {"x", "w", "bias"}, {"y"}).output("y");
  const model::ModelFile file = converted(b, folder);
  REQUIRE(file.graph().nodes.size() == 1);
  const model::Node& node = file.graph().nodes[0];
  const model::Weight& weight = file.graph().weight(node.weights[0]);
  CHECK(weight.panels == 2);
  CHECK(weight.name == "w");
  const std::vector<float> packed = values_of(file, weight), bias = values_of(file, file.graph().weight(node.weights[1]));
  const Floats w = ramp(20 * 2 * 9), source_bias = ramp(20);
  for (std::size_t n = 0; n < 32; ++n)
    for (std::size_t tap = 0; tap < 9; ++tap)
      for (std::size_t k = 0; k < 2; ++k)
        CHECK(packed[((n / 16 * 9 + tap) * 2 + k) * 16 + n % 16] == (n < 20 ? w[(n * 2 + k) * 9 + tap] : 0.0f));
  REQUIRE(bias.size() == 32);
  CHECK(bias[19] == source_bias[19]);
  CHECK(bias[20] == 0.0f);
}

TEST_CASE("a dense layer behind a flattened feature map is packed in the map's order") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 3, 2, 2}).weight("w", {3, 3, 1, 1}).weight("d", {5, 12});
  b.node("Conv", {"x", "w"}, {"c"})
      .node("Flatten", {"c"}, {"f"})
      .node("Gemm", {"f", "d"}, {"y"}, {attribute("transB", std::int64_t{1})})
      .output("y");
  const model::ModelFile file = converted(b, folder);
  const model::Node& dense = file.graph().nodes.back();
  const std::vector<float> packed = values_of(file, file.graph().weight(dense.weights[0]));
  const Floats d = ramp(60);
  for (std::size_t n = 0; n < 5; ++n)
    for (std::size_t pixel = 0; pixel < 4; ++pixel)
      for (std::size_t channel = 0; channel < 3; ++channel)
        CHECK(packed[(pixel * 3 + channel) * 16 + n] == d[n * 12 + channel * 4 + pixel]);
}

TEST_CASE("constants of elementwise operators are stored in physical order, shared weights once") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 2, 3, 1}).weight("w", {2, 2, 1, 1}).weight("k", {1, 2, 3, 1});
  b.node("Conv", {"x", "w"}, {"a"})
      .node("Mul", {"a", "k"}, {"m"})
      .node("Conv", {"m", "w"}, {"n"})
      .node("Tanh", {"n"}, {"t"})
      .node("Sub", {"t", "k"}, {"y"})
      .output("y");
  const model::ModelFile file = converted(b, folder);
  CHECK(file.graph().weights.size() == 2);
  const model::Tensor& constant = file.graph().tensor(file.graph().nodes[1].inputs[1]);
  CHECK(constant.shape == Shape{1, 3, 1, 2});
  const std::vector<float> stored = values_of(file, file.graph().weight(constant.weight));
  const Floats k = ramp(6);
  for (std::size_t h = 0; h < 3; ++h)
    for (std::size_t c = 0; c < 2; ++c) CHECK(stored[h * 2 + c] == k[c * 3 + h]);
}

TEST_CASE("the same input gives the same bytes") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 3, 3}).node("Conv", {"x", "w"}, {"c"}).node("Relu", {"c"}, {"y"}).output("y");
  converted(b, folder);
  const std::string first = read_all(folder.path("m.sluice"));
  converted(b, folder);
  CHECK(first == read_all(folder.path("m.sluice")));
}

TEST_CASE("a model does not replace the file that it is made from") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {4}).node("Relu", {"x"}, {"y"}).output("y");
  write_file(folder.path("m.onnx"), b.bytes());
  std::filesystem::create_hard_link(folder.path("m.onnx"), folder.path("same.sluice"));
  ConvertReport report;
  CHECK(convert(folder.path("m.onnx"), folder.path("same.sluice"), {}, report).error().code == ErrorCode::kInvalidArgument);
  CHECK(read_all(folder.path("m.onnx")) == b.bytes());
}

TEST_CASE("a file that changes while it is converted makes no model") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 4}).weight("w", {4, 4}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  write_file(folder.path("m.onnx"), b.bytes());
  ConvertOptions options;
  options.progress = [&](Bytes, Bytes) { std::ofstream(folder.path("m.onnx"), std::ios::app | std::ios::binary) << "more"; };
  ConvertReport report;
  CHECK(convert(folder.path("m.onnx"), folder.path("m.sluice"), options, report).error().code == ErrorCode::kFileChanged);
  CHECK_FALSE(std::filesystem::exists(folder.path("m.sluice")));
}

TEST_CASE("preprocessing and labels are kept; ports say how orders differ") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 8, 8}).node("Conv", {"x", "w"}, {"y"}).output("y");
  ConvertOptions options;
  options.preprocess.present = true;
  options.preprocess.crop = 8;
  options.labels = {"one", "two"};
  const model::ModelFile file = converted(b, folder, options);
  CHECK(file.graph().preprocess.crop == 8);
  CHECK(file.graph().labels == options.labels);
  CHECK(file.graph().inputs[0].onnx_shape == Shape{1, 3, 8, 8});
  CHECK(file.graph().inputs[0].perm[3] == 1);
}

TEST_CASE("every operator that is lowered passes the model's own validation") {
  const TemporaryFolder folder;
  OnnxBuilder b(13);
  b.input("x", {1, 8, 6, 6}).weight("w", {8, 1, 3, 3}).weight("g", {8, 4, 1, 1}).weight("t", {8, 4, 2, 2}).weight("dm", {16, 1, 1, 1});
  b.initializer(tensor("to", {3}, Ints{1, 8, -1})).initializer(tensor("halves", {2}, Ints{4, 4}));
  const std::string pads = attribute("pads", Ints{1, 1, 1, 1});
  b.node("Conv", {"x", "w"}, {"depthwise"}, {attribute("group", std::int64_t{8}), pads});
  b.node("Conv", {"depthwise", "g"}, {"grouped"}, {attribute("group", std::int64_t{2})});
  b.node("ConvTranspose", {"grouped", "t"}, {"up"}, {attribute("strides", Ints{2, 2})});
  b.node("AveragePool", {"up"}, {"down"},
         {attribute("kernel_shape", Ints{3, 3}), attribute("strides", Ints{2, 2}), pads, attribute("ceil_mode", std::int64_t{1})});
  b.node("Conv", {"x", "dm"}, {"multiplied"}, {attribute("group", std::int64_t{8})});
  b.node("Split", {"grouped", "halves"}, {"s0", "s1"}, {attribute("axis", std::int64_t{1})});
  b.node("Concat", {"s1", "s0", "multiplied"}, {"cat"}, {attribute("axis", std::int64_t{1})});
  b.node("LRN", {"grouped"}, {"lrn"}, {attribute("size", std::int64_t{3})});
  b.node("Reshape", {"lrn", "to"}, {"rows"}).node("Transpose", {"rows"}, {"columns"}, {attribute("perm", Ints{0, 2, 1})});
  b.node("MatMul", {"rows", "columns"}, {"product"}).node("Softmax", {"product"}, {"y"}, {attribute("axis", std::int64_t{1})});
  b.output("y").output("down").output("cat").output("x2").node("Identity", {"x"}, {"x2"});
  const model::ModelFile file = converted(b, folder);
  CHECK(file.graph().outputs.size() == 4);
  // An output that is the input has bytes of its own.
  CHECK(file.graph().outputs[3].tensor != file.graph().inputs[0].tensor);
}

TEST_CASE("names from the file are printed without control characters") {
  const TemporaryFolder folder;
  OnnxBuilder b;
  b.input("x", {1}).node("\x1b[2J", {"x"}, {"y\n"}).output("y\n");
  write_file(folder.path("m.onnx"), b.bytes());
  ConvertReport report;
  CHECK_FALSE(convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report));
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].op_type == "?[2J");
}
