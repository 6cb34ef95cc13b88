// Small nets of floats become integers: what becomes what, how near it stays, what is refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "sluice/quantiser/quantiser.h"
#include "src/quantiser/assess.h"
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;
using quantiser::Method;
using quantiser::Report;

namespace {

Floats waves(std::int64_t count, float scale, float step) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(scale * std::sin(static_cast<float>(i) * step));
  return values;
}

OnnxBuilder& add_weight(OnnxBuilder& b, const std::string& name, const Ints& dims, float scale) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return b.initializer(tensor(name, dims, waves(count, scale, 0.7391f + 0.01f * static_cast<float>(count % 7))));
}

/// Stem, norm, a residual of depthwise and 1x1, a fork that is concatenated, a mean, a dense layer.
OnnxBuilder picture_net(int opset = 13) {
  OnnxBuilder b(opset);
  b.input("x", {1, 3, 16, 16});
  add_weight(b, "w0", {16, 3, 3, 3}, 0.3f);
  add_weight(b, "w1", {16, 1, 3, 3}, 0.4f);
  add_weight(b, "w2", {16, 16, 1, 1}, 0.3f);
  add_weight(b, "w3", {8, 16, 1, 1}, 0.3f);
  add_weight(b, "w4", {10, 24}, 0.5f);
  add_weight(b, "b0", {16}, 0.1f);
  add_weight(b, "b4", {10}, 0.1f);
  add_weight(b, "shift", {16}, 0.2f);
  add_weight(b, "mean", {16}, 0.1f);
  b.initializer(tensor("scale", {16}, Floats(16, 1.3f))).initializer(tensor("variance", {16}, Floats(16, 0.8f)));
  b.node("Conv", {"x", "w0", "b0"}, {"c0"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("BatchNormalization", {"c0", "scale", "shift", "mean", "variance"}, {"n0"}).node("Relu", {"n0"}, {"r0"});
  b.node("Conv", {"r0", "w1"}, {"c1"}, {attribute("pads", Ints{1, 1, 1, 1}), attribute("group", std::int64_t{16})});
  b.node("Relu", {"c1"}, {"r1"}).node("Conv", {"r1", "w2"}, {"c2"}).node("Add", {"c2", "r0"}, {"a"}).node("Relu", {"a"}, {"ar"});
  b.node("MaxPool", {"ar"}, {"p"}, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})});
  b.node("Conv", {"p", "w3"}, {"c3"}).node("Relu", {"c3"}, {"r3"});
  b.node("Concat", {"r3", "p"}, {"cat"}, {attribute("axis", std::int64_t{1})});
  b.node("GlobalAveragePool", {"cat"}, {"g"}).node("Flatten", {"g"}, {"f"});
  return b.node("Gemm", {"f", "w4", "b4"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
}

/// Items of one f32 input.
quantiser::Data items(std::size_t count, std::int64_t values, float offset = 0) {
  return {count, [=](const model::Graph& graph, std::size_t item) {
            Floats item_values = waves(values, 1.0f, 0.11f + 0.03f * static_cast<float>(item));
            for (float& value : item_values) value += offset;
            const auto bytes = std::as_bytes(std::span(item_values));
            return std::vector<importer::InputValue>{{DType::kF32, graph.inputs[0].onnx_shape, {bytes.begin(), bytes.end()}}};
          }};
}

struct Outcome {
  Status status;
  Report report;
};

Outcome quantised(const TemporaryFolder& folder, const OnnxBuilder& builder, const std::string& out, const quantiser::Data& data,
                  const quantiser::Options& options = {}) {
  write_file(folder.path("given.onnx"), builder.bytes());
  Outcome outcome;
  outcome.status = quantiser::quantise(folder.path("given.onnx"), folder.path(out), data, options, outcome.report);
  for (const importer::Problem& problem : outcome.report.problems) UNSCOPED_INFO(problem.op_type + ": " + problem.message);
  return outcome;
}

std::shared_ptr<const Model> converted_file(const TemporaryFolder& folder, const std::string& onnx) {
  importer::ConvertReport report;
  REQUIRE(importer::convert(folder.path(onnx), folder.path(onnx + ".sluice"), {}, report));
  return *Model::open(folder.path(onnx + ".sluice"));
}

bool has_op(const model::Graph& graph, model::OpKind op, model::NumericClass numeric) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const model::Node& node) { return node.op == op && node.numeric == numeric; });
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a net of convolutions becomes integers from its first layer to its last, near its floats") {
  const TemporaryFolder folder;
  const quantiser::Data data = items(6, 3 * 16 * 16);
  const Outcome made = quantised(folder, picture_net(), "q.onnx", data);
  REQUIRE(made.status);
  CHECK(made.report.layers.size() == 5);
  for (const quantiser::Layer& layer : made.report.layers) {
    CAPTURE(layer.node);
    CHECK(layer.quantised);
    CHECK(layer.noise_db > 25);
    CHECK(layer.after < layer.before);
  }
  REQUIRE(made.report.outputs.size() == 1);
  CHECK(made.report.outputs[0].noise_db > 25);
  CHECK(made.report.rows == 6);
  CHECK(made.report.agreeing == 6);

  const auto integers = converted_file(folder, "q.onnx");
  // Floats come in and go out, and nothing between is one.
  const auto& tensors = integers->graph().tensors;
  CHECK(std::count_if(tensors.begin(), tensors.end(), [](const model::Tensor& t) { return t.dtype == DType::kF32; }) == 2);
  const auto floats = converted(folder, picture_net(), "f");
  const Values input{waves(3 * 16 * 16, 1.0f, 0.17f)};
  const Values want = outputs(floats, input, {}), found = outputs(integers, input, {});
  const float largest = worst(want, {Floats(10)});
  CHECK(worst(want, found) < 0.1f * largest);
  CHECK(worst(want, found) > 0.0f);

  REQUIRE(quantised(folder, picture_net(), "q.sluice", data).status);
  CHECK(outputs(*Model::open(folder.path("q.sluice")), input, {}) == found);
}

TEST_CASE("the same data gives the same file") {
  const TemporaryFolder folder;
  REQUIRE(quantised(folder, picture_net(), "one.onnx", items(3, 768)).status);
  quantiser::Options pieces;
  pieces.tensor_memory = Bytes(16384);  // several models, a few tensors each
  REQUIRE(quantised(folder, picture_net(), "two.onnx", items(3, 768), pieces).status);
  CHECK(text_of(folder.path("one.onnx")) == text_of(folder.path("two.onnx")));
}

TEST_CASE("what lies between floats stays f32, and layers of transformers become integers") {
  const TemporaryFolder folder;
  OnnxBuilder b(17);
  b.input("x", {1, 8, 32});
  for (const char* name : {"wq", "wk", "wv"}) add_weight(b, name, {32, 32}, 0.2f);
  add_weight(b, "bq", {32}, 0.1f);
  b.initializer(tensor("gain", {32}, Floats(32, 1.0f))).initializer(tensor("zero", {32}, Floats(32, 0.0f)));
  b.node("LayerNormalization", {"x", "gain", "zero"}, {"n"}, {attribute("axis", std::int64_t{-1})});
  b.node("MatMul", {"n", "wq"}, {"q0"}).node("Add", {"q0", "bq"}, {"q"}).node("MatMul", {"n", "wk"}, {"k"});
  b.node("Transpose", {"k"}, {"kt"}, {attribute("perm", Ints{0, 2, 1})}).node("MatMul", {"q", "kt"}, {"s"});
  b.node("Softmax", {"s"}, {"p"}).node("MatMul", {"n", "wv"}, {"v"}).node("MatMul", {"p", "v"}, {"o"});
  b.node("Add", {"o", "x"}, {"y"}).output("y");
  const Outcome made = quantised(folder, b, "q.onnx", items(4, 8 * 32));
  REQUIRE(made.status);
  CHECK(made.report.layers.size() == 3);
  CHECK(made.report.outputs[0].noise_db > 25);
  const auto model = converted_file(folder, "q.onnx");
  CHECK(has_op(model->graph(), model::OpKind::kDense, model::NumericClass::kInt8));
  CHECK_FALSE(has_op(model->graph(), model::OpKind::kBinary, model::NumericClass::kInt8));
}

TEST_CASE("layers that hurt most stay f32 where that is asked for") {
  const TemporaryFolder folder;
  quantiser::Options options;
  options.method = Method::kMinMax;
  const quantiser::Data data = items(4, 768);
  const double all = quantised(folder, picture_net(), "q.onnx", data, options).report.outputs[0].noise_db;
  options.keep_f32 = 2;
  const Outcome kept = quantised(folder, picture_net(), "k.onnx", data, options);
  REQUIRE(kept.status);
  std::vector<double> stay, go;
  for (const quantiser::Layer& layer : kept.report.layers) (layer.quantised ? go : stay).push_back(layer.alone_db);
  REQUIRE(stay.size() == 2);
  CHECK(*std::max_element(stay.begin(), stay.end()) <= *std::min_element(go.begin(), go.end()));
  CHECK(kept.report.outputs[0].noise_db > all);
  options.keep_f32 = 99;
  const Outcome none = quantised(folder, picture_net(), "n.onnx", data, options);
  REQUIRE(none.status);
  CHECK(none.report.outputs[0].noise_db > 100);
}

TEST_CASE("a bias takes back what rounding the weights adds on average") {
  const TemporaryFolder folder;
  // One large weight in each row makes the others round coarsely, all to one side.
  Floats w(64 * 8, 0.0f);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 64 == 0 ? 12.7f : 0.149f;
  OnnxBuilder b(13);
  b.input("x", {4, 64}).initializer(tensor("w", {8, 64}, w));
  b.node("Gemm", {"x", "w"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
  quantiser::Options options;
  options.method = Method::kMinMax;
  const quantiser::Data data = items(4, 4 * 64, 1.5f);
  const double corrected = quantised(folder, b, "q.onnx", data, options).report.outputs[0].noise_db;
  options.correct_bias = false;
  CHECK(corrected > 6 + quantised(folder, b, "r.onnx", data, options).report.outputs[0].noise_db);
}

TEST_CASE("auto corrects biases where that makes less noise, and says so") {
  bool either[2] = {false, false};
  for (std::int64_t seed = 0; seed < 6; ++seed) {
    const TemporaryFolder folder;
    Floats first(64 * 8), second(8 * 4);
    for (std::size_t i = 0; i < first.size(); ++i)
      first[i] = i % 64 == 0 ? 12.7f : static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 11) % 101) * 0.003f;
    for (std::size_t i = 0; i < second.size(); ++i)
      second[i] = static_cast<float>((i * 53 + static_cast<std::size_t>(seed) * 29) % 97) * 0.02f - 1.0f;
    OnnxBuilder b(13);
    b.input("x", {1, 64}).initializer(tensor("w0", {8, 64}, first)).initializer(tensor("w1", {4, 8}, second));
    b.node("Gemm", {"x", "w0"}, {"h"}, {attribute("transB", std::int64_t{1})}).node("Tanh", {"h"}, {"t"});
    b.node("Gemm", {"t", "w1"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
    const quantiser::Data data = items(4, 64, 1.5f);
    quantiser::Options options;
    const Outcome chosen = quantised(folder, b, "q.onnx", data, options);
    REQUIRE(chosen.status);
    either[chosen.report.corrected] = true;
    options.method = chosen.report.method;
    options.correct_bias = !chosen.report.corrected;
    const Outcome other = quantised(folder, b, "r.onnx", data, options);
    CHECK(other.report.corrected == options.correct_bias);
    CHECK(other.report.outputs[0].noise_db <= chosen.report.outputs[0].noise_db);
  }
  CHECK(either[true]);
}

TEST_CASE("channels of a depthwise net get like ranges") {
  const TemporaryFolder folder;
  // Channels of the tensor between differ by a factor of 200, and the depthwise layer makes up for it.
  Floats first(16 * 3), second(16 * 9);
  for (std::size_t n = 0; n < 16; ++n) {
    const float size = n % 2 == 0 ? 2.0f : 0.01f;
    for (std::size_t k = 0; k < 3; ++k) first[n * 3 + k] = size * (0.3f + 0.1f * static_cast<float>((n + k) % 5));
    for (std::size_t k = 0; k < 9; ++k) second[n * 9 + k] = (0.1f + 0.05f * static_cast<float>((n * k) % 7)) / size;
  }
  OnnxBuilder b(13);
  b.input("x", {1, 3, 16, 16}).initializer(tensor("w0", {16, 3, 1, 1}, first)).initializer(tensor("w1", {16, 1, 3, 3}, second));
  add_weight(b, "b0", {16}, 0.001f);
  b.node("Conv", {"x", "w0", "b0"}, {"c"}).node("Relu", {"c"}, {"r"});
  b.node("Conv", {"r", "w1"}, {"y"}, {attribute("group", std::int64_t{16})}).output("y");
  const quantiser::Data data = items(4, 768, 0.5f);
  quantiser::Options options;
  const Outcome equal = quantised(folder, b, "e.onnx", data, options);
  REQUIRE(equal.status);
  CHECK(equal.report.equalised == 1);
  options.equalise = false;
  const Outcome as_given = quantised(folder, b, "g.onnx", data, options);
  CHECK(as_given.report.equalised == 0);
  CHECK(equal.report.outputs[0].noise_db > as_given.report.outputs[0].noise_db + 6);
  const Values input{waves(768, 1.0f, 0.17f)};
  const Values want = outputs(converted(folder, b, "f"), input, {});
  CHECK(worst(outputs(converted_file(folder, "e.onnx"), input, {}), want) < 0.05f * worst(want, {Floats(want[0].size())}));
}

TEST_CASE("the method that is chosen is no worse than any of them") {
  const TemporaryFolder folder;
  const quantiser::Data data = items(5, 768);
  double best = 0;
  for (const Method method : {Method::kMinMax, Method::kPercentile, Method::kError}) {
    quantiser::Options options;
    options.method = method;
    best = std::max(best, quantised(folder, picture_net(), "q.onnx", data, options).report.outputs[0].noise_db);
  }
  const Outcome chosen = quantised(folder, picture_net(), "q.onnx", data);
  CHECK(chosen.report.outputs[0].noise_db >= Approx(best));
  CHECK(chosen.report.method != Method::kAuto);
}

TEST_CASE("activations get ranges of their own where that leaves less noise") {
  std::size_t own = 0;
  for (std::int64_t seed = 0; seed < 4; ++seed) {
    // The first layer's input has a rare large value that its weights ignore, the second's one that counts.
    Floats first(64 * 8), second(8 * 4);
    for (std::size_t i = 0; i < first.size(); ++i)
      first[i] = i % 64 == 0 ? 0.0f : 0.02f * static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 11) % 13) - 0.12f;
    for (std::size_t i = 0; i < second.size(); ++i)
      second[i] = 0.1f * static_cast<float>((i * 5 + static_cast<std::size_t>(seed)) % 7) - 0.3f;
    OnnxBuilder b(13);
    b.input("x", {1, 64}).initializer(tensor("w0", {8, 64}, first)).initializer(tensor("w1", {4, 8}, second));
    b.node("Gemm", {"x", "w0"}, {"h"}, {attribute("transB", std::int64_t{1})}).node("Exp", {"h"}, {"t"});
    b.node("Gemm", {"t", "w1"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
    const quantiser::Data data = {12, [even = items(12, 64, 1.5f)](const model::Graph& graph, std::size_t item) {
                                    auto inputs = even.load(graph, item);
                                    const float large = 40.0f;
                                    std::memcpy(inputs[0].data.data(), &large, sizeof(large));
                                    return inputs;
                                  }};
    const TemporaryFolder folder;
    double best = 0;
    for (const Method method : {Method::kMinMax, Method::kPercentile, Method::kError})
      for (const bool corrected : {true, false}) {
        quantiser::Options options;
        options.method = method, options.correct_bias = corrected, options.percentile = 98;
        best = std::max(best, quantised(folder, b, "q.onnx", data, options).report.outputs[0].noise_db);
      }
    quantiser::Options options;
    options.percentile = 98;
    const Outcome chosen = quantised(folder, b, "q.onnx", data, options);
    CHECK(chosen.report.outputs[0].noise_db >= Approx(best));
    if (chosen.report.own_ranges == 0) continue;
    ++own;
    CHECK(chosen.report.outputs[0].noise_db > best);
  }
  CHECK(own > 0);
}

TEST_CASE("what cannot be quantised is refused, with its reason, and leaves no file") {
  const TemporaryFolder folder;
  const auto refused = [&](const OnnxBuilder& b, const std::string& out, const quantiser::Data& data, ErrorCode code) {
    const Outcome outcome = quantised(folder, b, out, data);
    REQUIRE_FALSE(outcome.status);
    CHECK(outcome.status.error().code == code);
    return outcome.report.problems.empty() ? outcome.status.error().to_string() : outcome.report.problems[0].message;
  };
  CHECK(refused(picture_net(), "q.onnx", {}, ErrorCode::kInvalidArgument).find("nothing to show") != std::string::npos);
  CHECK(refused(picture_net(11), "q.onnx", items(1, 768), ErrorCode::kUnsupported).find("13 or newer") != std::string::npos);
  CHECK(quantised(folder, picture_net(11), "old.sluice", items(1, 768)).status);
  OnnxBuilder plain(13);
  plain.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  CHECK(refused(plain, "q.onnx", items(1, 6), ErrorCode::kUnsupported).find("nothing to quantise") != std::string::npos);
  OnnxBuilder unknown(13);
  unknown.input("x", {2, 3}).weight("w", {3, 4}).node("MatMul", {"x", "w"}, {"m"}).node("Frobnicate", {"m"}, {"y"}).output("y");
  refused(unknown, "q.onnx", items(1, 6), ErrorCode::kUnsupported);
  CHECK(refused(picture_net(), "given.onnx", items(1, 768), ErrorCode::kInvalidArgument).find("replace") != std::string::npos);
  CHECK(text_of(folder.path("q.onnx")).empty());
}

namespace {

/// A convolution by `w` and one by `v`.
OnnxBuilder two_layers(const Floats& w, const Floats& bias) {
  OnnxBuilder b(13);
  b.input("x", {1, 4, 6, 6}).initializer(tensor("w", {4, 4, 1, 1}, w)).initializer(tensor("b", {4}, bias));
  add_weight(b, "v", {4, 4, 1, 1}, 0.4f);
  return b.node("Conv", {"x", "w", "b"}, {"c"}).node("Relu", {"c"}, {"r"}).node("Conv", {"r", "v"}, {"y"}).output("y");
}

}  // namespace

TEST_CASE("a layer whose weights or bias are no numbers stays f32, and the others are quantised as without it") {
  const TemporaryFolder folder;
  const Floats sound = waves(16, 0.4f, 0.7f), bias = waves(4, 0.1f, 0.3f);
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const bool in_bias : {false, true}) {
      CAPTURE(value, in_bias);
      Floats w = sound, b = bias;
      (in_bias ? b : w)[1] = value;
      const Outcome made = quantised(folder, two_layers(w, b), "q.onnx", items(2, 4 * 36));
      REQUIRE(made.status);
      REQUIRE(made.report.layers.size() == 2);
      CHECK_FALSE(made.report.layers[0].quantised);
      CHECK(made.report.layers[1].quantised);
      quantiser::Options options;
      options.keep_f32 = 1;  // of those that can be quantised
      const Outcome kept = quantised(folder, two_layers(w, b), "k.onnx", items(2, 4 * 36), options);
      REQUIRE(kept.status);
      CHECK_FALSE(kept.report.layers[0].quantised);
      CHECK_FALSE(kept.report.layers[1].quantised);
    }
}

TEST_CASE("a value of the data that is no number spoils no bias") {
  const TemporaryFolder folder;
  quantiser::Data data = items(4, 4 * 36);
  data.load = [sound = data.load](const model::Graph& graph, std::size_t item) {
    auto values = sound(graph, item);
    const float bad = item == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    if (item < 2) std::memcpy(values[0].data.data(), &bad, sizeof bad);
    return values;
  };
  const OnnxBuilder net = two_layers(waves(16, 0.4f, 0.7f), waves(4, 0.1f, 0.3f));
  const Outcome made = quantised(folder, net, "q.onnx", data);
  REQUIRE(made.status);
  const Values input{waves(4 * 36, 1.0f, 0.17f)};
  const Values want = outputs(converted(folder, net, "f"), input, {});
  CHECK(worst(outputs(converted_file(folder, "q.onnx"), input, {}), want) < 0.05f * worst(want, {Floats(want[0].size())}));
}

TEST_CASE("a model that gives integers alone is judged by its last layer") {
  const TemporaryFolder folder;
  OnnxBuilder b(13);
  b.input("x", {1, 4, 6, 6});
  add_weight(b, "w", {4, 4, 1, 1}, 0.4f);
  b.node("Conv", {"x", "w"}, {"c"}).node("ArgMax", {"c"}, {"y"}, {attribute("axis", std::int64_t{1})}).output("y", 7);
  const Outcome made = quantised(folder, b, "q.onnx", items(2, 4 * 36));
  REQUIRE(made.status);
  REQUIRE(made.report.outputs.size() == 1);
  CHECK(made.report.outputs[0].name == "c");
  CHECK(made.report.outputs[0].noise_db > 25);
  CHECK(made.report.rows == 2 * 36);
}

TEST_CASE("nodes without outputs and layers without channels do no harm") {
  const TemporaryFolder folder;
  OnnxBuilder idle(13);
  idle.input("x", {1, 4, 6, 6}).initializer(tensor("one", {4}, Floats(4, 1.0f)));
  add_weight(idle, "w", {4, 4, 1, 1}, 0.4f);
  idle.node("Conv", {"x", "w"}, {}).node("Conv", {"x", "w"}, {"c"}).node("BatchNormalization", {"c", "one", "one", "one", "one"}, {});
  idle.node("Conv", {"x", "w"}, {"d"}).node("Relu", {"d"}, {}).node("Conv", {"x", "w"}, {"y"}).output("y");
  CHECK(quantised(folder, idle, "q.onnx", items(1, 4 * 36)).status);
  OnnxBuilder none(13);
  none.input("x", {1, 4, 6, 6}).initializer(tensor("w", {0, 4, 1, 1}, Floats{})).initializer(tensor("s", {0}, Floats{}));
  none.node("Conv", {"x", "w"}, {"c"}).node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"y"}).output("y");
  CHECK(quantised(folder, none, "q.onnx", items(1, 4 * 36)).status.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("an addition or a product of one input is refused, and nothing behind its inputs is read") {
  const TemporaryFolder folder;
  OnnxBuilder sum(13);
  sum.input("x", {2, 3}).weight("w", {3, 4}).node("MatMul", {"x", "w"}, {"m"}).node("Add", {"m"}, {"y"}).output("y");
  CHECK_FALSE(quantised(folder, sum, "q.onnx", items(1, 6)).status);
  OnnxBuilder product(13);
  product.input("x", {2, 3}).weight("w", {3, 4}).node("MatMul", {"x", "w"}, {"m"});
  product.node("Sigmoid", {"m"}, {"s"}).node("Mul", {"s"}, {"y"}).output("y");
  CHECK_FALSE(quantised(folder, product, "q.onnx", items(1, 6)).status);
}

TEST_CASE("noise counts what is no number, and has a figure where there is no signal") {
  quantiser::Noise noise;
  const Floats wanted = {2.0f, 0.0f}, lost = {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  noise.add(wanted, lost);
  CHECK(noise.decibels() == Approx(0.0));
  quantiser::Noise silence;
  silence.add(Floats{0.0f}, Floats{1.0f});
  CHECK(silence.decibels() == Approx(-200.0));
}
