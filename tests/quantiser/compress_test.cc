// Small nets with fewer values: what becomes of which layer, how near it stays with data and without, what is refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sluice/quantiser/compressor.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;
using quantiser::CompressOptions;
using quantiser::CompressReport;

namespace {

Floats noise(std::int64_t count, float scale, std::uint32_t state) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(scale * (static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f));
  }
  return values;
}

OnnxBuilder& add_weight(OnnxBuilder& b, const std::string& name, const Ints& dims, float scale) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return b.initializer(tensor(name, dims, noise(count, scale, static_cast<std::uint32_t>(count))));
}

/// 1x1 and 3x3 convolutions, a depthwise one, a norm, two dense layers: one of them with its bias in an Add.
OnnxBuilder net() {
  OnnxBuilder b(13);
  b.input("x", {1, 64, 8, 8});
  add_weight(b, "w0", {80, 64, 1, 1}, 0.2f);
  add_weight(b, "w1", {80, 1, 3, 3}, 0.4f);
  add_weight(b, "w2", {64, 80, 3, 3}, 0.1f);
  add_weight(b, "w3", {64, 96}, 0.2f);
  add_weight(b, "w4", {96, 48}, 0.2f);
  add_weight(b, "b0", {80}, 0.1f);
  add_weight(b, "b3", {96}, 0.1f);
  add_weight(b, "shift", {64}, 0.2f);
  add_weight(b, "mean", {64}, 0.1f);
  b.initializer(tensor("scale", {64}, Floats(64, 1.3f))).initializer(tensor("variance", {64}, Floats(64, 0.8f)));
  b.node("Conv", {"x", "w0", "b0"}, {"c0"}).node("Relu", {"c0"}, {"r0"});
  b.node("Conv", {"r0", "w1"}, {"c1"}, {attribute("pads", Ints{1, 1, 1, 1}), attribute("group", std::int64_t{80})});
  b.node("Conv", {"c1", "w2"}, {"c2"}, {attribute("pads", Ints{1, 1, 1, 1}), attribute("strides", Ints{2, 2})});
  b.node("BatchNormalization", {"c2", "scale", "shift", "mean", "variance"}, {"n2"}).node("Relu", {"n2"}, {"r2"});
  b.node("GlobalAveragePool", {"r2"}, {"g"}).node("Flatten", {"g"}, {"f"});
  b.node("MatMul", {"f", "w3"}, {"m3"}).node("Add", {"m3", "b3"}, {"a3"}).node("Relu", {"a3"}, {"r3"});
  return b.node("Gemm", {"r3", "w4"}, {"y"}).output("y");
}

/// Inputs whose neighbours are alike.
quantiser::Data items(std::size_t count) {
  return {count, [](const model::Graph& graph, std::size_t item) {
            Floats values = noise(64 * 64, 1.0f, static_cast<std::uint32_t>(item + 11));
            for (std::size_t i = 64; i < values.size(); ++i) values[i] = 0.8f * values[i - 64] + 0.4f * values[i];
            const auto bytes = std::as_bytes(std::span(values));
            return std::vector<importer::InputValue>{{DType::kF32, graph.inputs[0].onnx_shape, {bytes.begin(), bytes.end()}}};
          }};
}

struct Outcome {
  Status status;
  CompressReport report;
};

Outcome compressed(const TemporaryFolder& folder, const OnnxBuilder& builder, const std::string& out, const quantiser::Data& data,
                   const CompressOptions& options) {
  write_file(folder.path("given.onnx"), builder.bytes());
  Outcome outcome;
  outcome.status = quantiser::compress(folder.path("given.onnx"), folder.path(out), data, options, outcome.report);
  for (const importer::Problem& problem : outcome.report.problems) UNSCOPED_INFO(problem.op_type + ": " + problem.message);
  return outcome;
}

CompressOptions with(double prune, std::size_t cluster, importer::Coding code = importer::Coding::kSmall) {
  CompressOptions options{.prune = prune, .cluster = cluster};
  options.convert.code = code;
  return options;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t stored_bytes(const model::Graph& graph) {
  std::uint64_t sum = 0;
  for (const model::Stretch& stretch : graph.stretches) sum += stretch.stored_size.count();
  return sum;
}

const Values kInput{noise(64 * 64, 1.0f, 5)};

}  // namespace

TEST_CASE("clustered layers hold a byte a weight, take few bits of the file, and run at every budget") {
  const TemporaryFolder folder;
  const Outcome made = compressed(folder, net(), "c.sluice", items(8), with(0.3, 16));
  REQUIRE(made.status);
  REQUIRE(made.report.layers.size() == 4);  // not the depthwise one
  for (const quantiser::CompressedLayer& layer : made.report.layers) {
    CAPTURE(layer.node);
    CHECK(layer.values <= 16);
    CHECK(layer.zeros > 0.29);
    CHECK(layer.zeros < 0.6);
    CHECK(layer.noise_db > 12);
  }
  REQUIRE(made.report.outputs.size() == 1);
  CHECK(made.report.outputs[0].noise_db > 10);
  CHECK(made.report.items == 8);
  CHECK(made.report.rows == 8);

  const auto model = *Model::open(folder.path("c.sluice"));
  const auto& weights = model->graph().weights;
  CHECK(std::count_if(weights.begin(), weights.end(), [](const model::Weight& w) { return w.panel_layout.dtype == DType::kI8; }) == 4);
  CHECK(5 * stored_bytes(model->graph()) < stored_bytes(converted(folder, net(), "f")->graph()));
  const Values found = outputs(model, kInput, {});
  const auto least = minimum_budget(*model, {});
  REQUIRE(least);
  CHECK(outputs(model, kInput, {.budget = *least}) == found);
  CHECK(worst(outputs(converted(folder, net(), "f"), kInput, {}), found) > 0);
}

TEST_CASE("so many times smaller, each layer by as much as costs all together the least") {
  const TemporaryFolder folder;
  double before = 1000;
  for (const double smaller : {4.5, 6.0, 9.0, 13.0}) {
    CAPTURE(smaller);
    CompressOptions options = with(0, 0);
    options.smaller = smaller;
    const Outcome made = compressed(folder, net(), "s.sluice", items(8), options);
    REQUIRE(made.status);
    REQUIRE(made.report.layers.size() == 4);
    const auto model = *Model::open(folder.path("s.sluice"));
    CHECK(made.report.converted.stored_bytes.count() == stored_bytes(model->graph()));
    const auto times = static_cast<double>(made.report.float_bytes.count()) / static_cast<double>(stored_bytes(model->graph()));
    CHECK(times >= smaller);
    CHECK(times < 1.3 * smaller);
    CHECK(made.report.outputs[0].noise_db < before);
    before = made.report.outputs[0].noise_db;
    const auto least = minimum_budget(*model, {});
    REQUIRE(least);
    CHECK(outputs(model, kInput, {.budget = *least}) == outputs(model, kInput, {}));
  }
  // The large layer gives more than small ones, which a byte less would cost more.
  CompressOptions options = with(0, 0);
  options.smaller = 8;
  const Outcome made = compressed(folder, net(), "s.sluice", items(8), options);
  const auto& layers = made.report.layers;
  const auto largest = std::ranges::max_element(layers, {}, &quantiser::CompressedLayer::weights);
  for (const auto& layer : layers) CHECK(layer.noise_db >= largest->noise_db);
}

TEST_CASE("layers that read one value are looked at together") {
  OnnxBuilder b(13);
  b.input("x", {1, 64, 8, 8});
  add_weight(b, "w0", {64, 64, 1, 1}, 0.2f);
  add_weight(b, "w1", {64, 64, 3, 3}, 0.1f);
  add_weight(b, "w2", {96, 128, 1, 1}, 0.1f);
  b.node("Conv", {"x", "w0"}, {"c0"}).node("Conv", {"x", "w1"}, {"c1"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Concat", {"c0", "c1"}, {"c"}, {attribute("axis", std::int64_t{1})}).node("Conv", {"c", "w2"}, {"y"}).output("y");
  const TemporaryFolder folder;
  const Outcome seeing = compressed(folder, b, "s.sluice", items(6), with(0, 6)), blind = compressed(folder, b, "b.sluice", {}, with(0, 6));
  REQUIRE(seeing.status);
  REQUIRE(blind.status);
  REQUIRE(seeing.report.layers.size() == 3);
  CHECK(seeing.report.outputs[0].noise_db > 8);
  // An input like those that were looked at, and none of them.
  const auto full = converted(folder, b, "f");
  const std::vector<std::byte> bytes = items(9).load(full->graph(), 8)[0].data;
  Values like{Floats(bytes.size() / sizeof(float))};
  std::memcpy(like[0].data(), bytes.data(), bytes.size());
  const Values wanted = outputs(full, like, {});
  CHECK(worst(wanted, outputs(*Model::open(folder.path("s.sluice")), like, {})) <
        worst(wanted, outputs(*Model::open(folder.path("b.sluice")), like, {})));
}

TEST_CASE("with data a layer loses less than without") {
  const TemporaryFolder folder;
  for (const auto& [prune, cluster] : {std::pair{0.75, std::size_t{0}}, std::pair{0.0, std::size_t{6}}}) {
    const Outcome seeing = compressed(folder, net(), "s.sluice", items(12), with(prune, cluster));
    const Outcome blind = compressed(folder, net(), "b.sluice", {}, with(prune, cluster));
    REQUIRE(seeing.status);
    REQUIRE(blind.status);
    CHECK(blind.report.outputs.empty());
    CHECK(blind.report.items == 0);
    const Values wanted = outputs(converted(folder, net(), "f"), kInput, {});
    CHECK(worst(wanted, outputs(*Model::open(folder.path("s.sluice")), kInput, {})) <
          worst(wanted, outputs(*Model::open(folder.path("b.sluice")), kInput, {})));
  }
}

TEST_CASE("pruning with data makes blocks that kernels skip, of layers that gain by it") {
  const TemporaryFolder folder;
  const Outcome half = compressed(folder, net(), "half.sluice", items(4), with(0.5, 0));
  REQUIRE(half.status);
  CHECK(half.report.layers.size() == 3);  // a 3x3 convolution may take Winograd's sums
  for (const quantiser::CompressedLayer& layer : half.report.layers) {
    CHECK(layer.values == 0);
    CHECK(layer.zeros == Approx(0.5).margin(0.02));
  }
  CHECK(half.report.converted.sparse_weights == 3);
  CHECK(compressed(folder, net(), "most.sluice", items(4), with(0.75, 0)).report.converted.sparse_weights == 4);
}

TEST_CASE("the same data gives the same file, in one look or several") {
  const TemporaryFolder folder;
  REQUIRE(compressed(folder, net(), "one.sluice", items(3), with(0.3, 12)).status);
  CompressOptions pieces = with(0.3, 12);
  pieces.tensor_memory = Bytes(16384);
  REQUIRE(compressed(folder, net(), "two.sluice", items(3), pieces).status);
  CHECK(text_of(folder.path("one.sluice")) == text_of(folder.path("two.sluice")));
}

TEST_CASE("what cannot be compressed is refused by name") {
  const TemporaryFolder folder;
  CHECK(compressed(folder, net(), "x", {}, with(1.5, 0)).status.error().code == ErrorCode::kInvalidArgument);
  CHECK(compressed(folder, net(), "x", {}, with(0.5, 1)).status.error().code == ErrorCode::kInvalidArgument);
  CHECK(compressed(folder, net(), "x", {}, with(0.5, 257)).status.error().code == ErrorCode::kInvalidArgument);
  CompressOptions both = with(0, 16);
  both.convert.weights = kernels::PanelStorage::kInt4;
  CHECK(compressed(folder, net(), "x", {}, both).status.error().code == ErrorCode::kInvalidArgument);
  for (CompressOptions options : {with(0, 0), with(0, 16), with(0.5, 0), with(0, 0)}) {
    options.smaller = options.cluster == 0 && options.prune == 0 ? 0.5 : 8;
    CHECK(compressed(folder, net(), "x", {}, options).status.error().code == ErrorCode::kInvalidArgument);
  }
  CompressOptions far = with(0, 0);
  far.smaller = 900;
  const Outcome much = compressed(folder, net(), "x", {}, far);
  REQUIRE(much.status.error().code == ErrorCode::kInvalidArgument);
  REQUIRE(much.report.problems.size() == 1);
  CHECK(much.report.problems[0].message.find("times smaller than the file's floats at the most") != std::string::npos);
  CHECK(compressed(folder, net(), "given.onnx", {}, with(0, 16)).status.error().code == ErrorCode::kInvalidArgument);
  OnnxBuilder none(13);
  none.input("x", {1, 8}).node("Relu", {"x"}, {"y"}).output("y");
  const Outcome nothing = compressed(folder, none, "x", {}, with(0.5, 16));
  REQUIRE(nothing.status.error().code == ErrorCode::kUnsupported);
  CHECK(nothing.report.problems.size() == 1);
}

TEST_CASE("a layer that sums too many values is changed without the data, and the report says so") {
  constexpr std::int64_t kLength = 5121;  // one more than is made up for
  const TemporaryFolder folder;
  OnnxBuilder b(13);
  b.input("x", {1, kLength});
  add_weight(b, "w", {kLength, 32}, 0.2f);
  add_weight(b, "v", {32, 256}, 0.2f);
  b.node("MatMul", {"x", "w"}, {"h"}).node("MatMul", {"h", "v"}, {"y"}).output("y");
  const quantiser::Data data{
      1, [](const model::Graph& graph, std::size_t) {
        const Floats values = noise(kLength, 1.0f, 5);
        const auto bytes = std::as_bytes(std::span(values));
        return std::vector<importer::InputValue>{{DType::kF32, graph.inputs[0].onnx_shape, {bytes.begin(), bytes.end()}}};
      }};
  const Outcome outcome = compressed(folder, b, "long.sluice", data, with(0.5, 16));
  REQUIRE(outcome.status);
  REQUIRE(outcome.report.layers.size() == 2);
  CHECK(outcome.report.layers[0].too_long == kLength);
  CHECK(outcome.report.layers[1].too_long == 0);
  CHECK(outcome.report.layers[0].zeros >= 0.5);
}
