// Graphs of bytes: what becomes integer arithmetic gives what the plain operators give, up to a step of the output's scale in few elements,
// and the same bits in every budget and with any number of threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/qdq_builder.h"

using namespace sluice;
using namespace sluice::test;
using model::OpKind;

namespace {

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, const QdqBuilder& onnx, const importer::ConvertOptions& options) {
  const std::string from = folder.path("m.onnx"), path = folder.path(options.fuse ? "fused.sluice" : "plain.sluice");
  write_file(from, onnx.bytes());
  importer::ConvertReport report;
  const Status status = importer::convert(from, path, options, report);
  INFO((report.problems.empty() ? std::string() : report.problems[0].message));
  INFO((status ? std::string() : status.error().to_string()));
  REQUIRE(status);
  auto model = Model::open(path);
  REQUIRE(model);
  return *std::move(model);
}

std::shared_ptr<const Model> converted(const TemporaryFolder& folder, const QdqBuilder& onnx, bool fuse = true) {
  importer::ConvertOptions options;
  options.fuse = fuse;
  return converted(folder, onnx, options);
}

std::vector<std::byte> outputs_of(const std::shared_ptr<const Model>& model, const SessionOptions& options = {}) {
  const auto session = Session::create(model, options);
  INFO((session ? std::string() : session.error().to_string()));
  REQUIRE(session);
  for (std::size_t i = 0; i < model->graph().inputs.size(); ++i) {
    const model::Port& port = model->graph().inputs[i];
    const DType dtype = model->graph().tensor(port.tensor).dtype;
    const auto count = static_cast<std::size_t>(port.onnx_shape.element_count());
    std::vector<float> reals;
    std::vector<std::uint8_t> bytes;
    for (std::size_t e = 0; e < count; ++e) {
      reals.push_back(0.017f * static_cast<float>((e * 53 + i * 11) % 307) - 2.4f);
      bytes.push_back(static_cast<std::uint8_t>(e * 59 + i));
    }
    const bool real = dtype == DType::kF32;
    REQUIRE((*session)->set_input(i, dtype, real ? std::as_bytes(std::span(reals)) : std::as_bytes(std::span(bytes))));
  }
  REQUIRE((*session)->run());
  std::vector<std::byte> all;
  for (std::size_t i = 0; i < model->graph().outputs.size(); ++i) {
    const model::Port& port = model->graph().outputs[i];
    std::vector<std::byte> out(static_cast<std::size_t>(port.onnx_shape.element_count()) *
                               size_of(model->graph().tensor(port.tensor).dtype));
    REQUIRE((*session)->get_output(i, out));
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

std::vector<float> reals_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Of signed bytes, a float each.
std::vector<float> signed_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values;
  for (const std::byte byte : bytes) values.push_back(static_cast<float>(static_cast<std::int8_t>(byte)));
  return values;
}

std::size_t count(const model::Graph& graph, OpKind op, model::NumericClass numeric = model::NumericClass::kInt8) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const model::Node& n) { return n.op == op && n.numeric == numeric; }));
}
std::size_t plain_count(const model::Graph& graph) { return count(graph, OpKind::kPlain, model::NumericClass::kExact); }

/// Nodes between the Quantize of the input and the Dequantize of the output: none of them over reals.
void check_all_integers(const model::Graph& graph) {
  for (const model::Node& node : graph.nodes) {
    INFO(node.name << " " << name_of(node.op));
    if (node.op == OpKind::kQuantize) continue;
    CHECK(graph.tensor(node.inputs[0]).dtype == DType::kU8);
    CHECK(node.op != OpKind::kPlain);
  }
}

/// Few elements may be off by a step, and none by more.
void check_alike(const std::vector<float>& got, const std::vector<float>& want, float step) {
  REQUIRE(got.size() == want.size());
  std::size_t off = 0;
  float worst = 0.0f, largest = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float difference = std::fabs(got[i] - want[i]);
    off += difference > 0.01f * step ? 1 : 0;
    worst = std::max(worst, difference);
    largest = std::max(largest, std::fabs(want[i]));
  }
  CHECK(largest > 3 * step);
  CHECK(worst <= 1.01f * step);
  CHECK(off * 100 <= got.size() + 99);
}

struct Case {
  const char* name;
  std::function<void(QdqBuilder&)> build;  // from "x" to "y"
  OpKind op;                               // of the class int8, at least one
  float step = 0.05f;                      // of what is compared
  Ints input{1, 8, 9, 10};
};

constexpr Linear kIn{0.02f, 121}, kOut{0.05f, 117};
constexpr Linear kSignedIn{0.02f, -7, true}, kSignedOut{0.05f, 3, true};

std::vector<std::string> window(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t group = 1) {
  return {attribute("kernel_shape", Ints{kernel, kernel}), attribute("pads", Ints{pad, pad, pad, pad}),
          attribute("strides", Ints{stride, stride}), attribute("group", group)};
}

/// y = Q/DQ of one node over Q/DQ of x.
auto one(const std::string& op, const std::vector<std::string>& attributes = {}, const Linear& in = kIn, const Linear& out = kOut) {
  return [=](QdqBuilder& b) {
    b.node(op, {b.pair("x", in)}, {"r"}, attributes);
    b.node("Identity", {b.pair("r", out)}, {"y"});
  };
}

auto convolution(const Ints& weight, std::int64_t kernel, std::int64_t pad, std::int64_t stride, std::int64_t group,
                 const std::string& then = "") {
  return [=](QdqBuilder& b) {
    const std::string w = b.float_weight("w", weight);
    b.weight("bias", {weight[0]}, 0.1f);
    b.node("Conv", {b.pair("x", kIn), w, "bias"}, {"c"}, window(kernel, pad, stride, group));
    if (!then.empty()) b.node(then, {"c"}, {"a"});
    b.node("Identity", {b.pair(then.empty() ? "c" : "a", kOut)}, {"y"});
  };
}

/// The same with signed bytes, a weight of bytes and a bias of whole numbers, as quantisers that write files for a runtime do.
auto byte_convolution(const Ints& weight, int axis, bool is_signed, int zero, std::int64_t group = 1) {
  return [=](QdqBuilder& b) {
    const std::string w = b.byte_weight("w", weight, axis, is_signed, zero);
    b.node("Conv", {b.pair("x", kSignedIn), w, b.whole_bias("bias", weight[0], kSignedIn)}, {"c"},
           window(weight[2], weight[2] / 2, 1, group));
    b.node("Identity", {b.pair("c", {0.2f, 3, true})}, {"y"});
  };
}

auto two(const std::string& op) {
  return [=](QdqBuilder& b) {
    b.input("x2", {1, 8, 9, 10});
    b.node(op, {b.pair("x", kIn), b.pair("x2", {0.03f, 99})}, {"r"});
    b.node("Identity", {b.pair("r", kOut)}, {"y"});
  };
}

std::vector<Case> cases() {
  const std::vector<std::string> halves{attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})};
  return {
      {"1x1", convolution({20, 8, 1, 1}, 1, 0, 1, 1), OpKind::kConv},
      {"3x3, strided", convolution({20, 8, 3, 3}, 3, 1, 2, 1), OpKind::kConv},
      {"3x3 and Relu", convolution({20, 8, 3, 3}, 3, 1, 1, 1, "Relu"), OpKind::kConv},
      {"groups of few outputs", convolution({16, 4, 3, 3}, 3, 1, 1, 2), OpKind::kConv},
      {"four groups of three outputs", convolution({12, 2, 3, 3}, 3, 1, 2, 4), OpKind::kConv},
      {"groups of three outputs, eight of which become one", convolution({48, 2, 3, 3}, 3, 1, 1, 16), OpKind::kConv, 0.05f, {1, 32, 9, 10}},
      {"asymmetric weights in groups of five outputs", byte_convolution({20, 2, 1, 1}, 0, true, 5, 4), OpKind::kConv, 0.2f},
      {"two outputs of each channel", convolution({16, 1, 3, 3}, 3, 1, 1, 8), OpKind::kConv},
      {"groups of 24 outputs", convolution({48, 4, 3, 3}, 3, 1, 1, 2), OpKind::kConv},
      {"depthwise", convolution({8, 1, 3, 3}, 3, 1, 1, 8), OpKind::kConv},
      {"signed, a scale a channel", byte_convolution({20, 8, 3, 3}, 0, true, 0), OpKind::kConv, 0.2f},
      {"signed, one scale", byte_convolution({20, 8, 3, 3}, -1, true, 0), OpKind::kConv, 0.2f},
      {"unsigned weights with a zero point", byte_convolution({20, 8, 3, 3}, -1, false, 101), OpKind::kConv, 0.2f},
      {"asymmetric depthwise", byte_convolution({8, 1, 3, 3}, 0, true, 5, 8), OpKind::kConv, 0.2f},
      {"1-D",
       [](QdqBuilder& b) {
         const std::string w = b.float_weight("w", {12, 8, 3});
         b.node("Conv", {b.pair("x", kIn), w}, {"c"}, {attribute("pads", Ints{1, 1}), attribute("kernel_shape", Ints{3})});
         b.node("Identity", {b.pair("c", kOut)}, {"y"});
       },
       OpKind::kConv,
       0.05f,
       {2, 8, 30}},
      {"batch-norm between",
       [](QdqBuilder& b) {
         const std::string w = b.float_weight("w", {12, 8, 1, 1});
         b.node("Conv", {b.pair("x", kIn), w}, {"c"}, window(1, 0));
         b.initializer(tensor("var", {12}, Floats(12, 1.5f))).initializer(tensor("gain", {12}, Floats(12, 0.75f)));
         b.weight("mean", {12}, 0.01f).weight("shift", {12}, 0.02f);
         b.node("BatchNormalization", {"c", "gain", "shift", "mean", "var"}, {"n"}).node("Relu", {"n"}, {"a"});
         b.node("Identity", {b.pair("a", kOut)}, {"y"});
       },
       OpKind::kConv},
      {"Clip between bytes of one scale",
       [](QdqBuilder& b) {
         const std::string w = b.float_weight("w", {12, 8, 1, 1});
         b.node("Conv", {b.pair("x", kIn), w}, {"c"}, window(1, 0));
         b.initializer(tensor("low", {}, Floats{0})).initializer(tensor("high", {}, Floats{3}));
         b.node("Clip", {b.pair("c", kOut), "low", "high"}, {"a"});
         b.node("Identity", {b.pair("a", kOut)}, {"y"});
       },
       OpKind::kConv},
      {"a Pad between bytes",
       [](QdqBuilder& b) {
         b.initializer(tensor("pads", {8}, Ints{0, 0, 1, 1, 0, 0, 2, 2})).node("Pad", {b.pair("x", kIn), "pads"}, {"p"});
         const std::string w = b.float_weight("w", {12, 8, 3, 3});
         b.node("Conv", {b.pair("p", kIn), w}, {"c"}, window(3, 0, 2)).node("Identity", {b.pair("c", kOut)}, {"y"});
       },
       OpKind::kConv},
      {"MatMul and Add",
       [](QdqBuilder& b) {
         const std::string w = b.byte_weight("w", {8, 20}, 1);
         b.node("MatMul", {b.pair("x", kIn), w}, {"m"}).weight("bias", {20}, 0.1f).node("Add", {"m", "bias"}, {"r"});
         b.node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kDense,
       0.05f,
       {5, 8}},
      {"Gemm",
       [](QdqBuilder& b) {
         const std::string w = b.byte_weight("w", {20, 8}, 0);
         b.node("Gemm", {b.pair("x", kSignedIn), w, b.whole_bias("bias", 20, kSignedIn)}, {"r"}, {attribute("transB", std::int64_t{1})});
         b.node("Identity", {b.pair("r", kSignedOut)}, {"y"});
       },
       OpKind::kDense,
       0.05f,
       {5, 8}},
      {"behind a flattened image",
       [](QdqBuilder& b) {
         b.node("MaxPool", {b.pair("x", kIn)}, {"p"}, {attribute("kernel_shape", Ints{3, 3})});
         b.node("Flatten", {b.pair("p", kIn)}, {"f"});
         const std::string w = b.byte_weight("w", {20, 448}, 0);
         b.node("Gemm", {b.pair("f", kIn), w}, {"r"}, {attribute("transB", std::int64_t{1})});
         b.node("Identity", {b.pair("r", {0.3f, 128})}, {"y"});
       },
       OpKind::kDense, 0.3f},
      {"MaxPool", one("MaxPool", halves, kIn, kIn), OpKind::kPool, 0.02f},
      {"MaxPool to another scale", one("MaxPool", halves), OpKind::kPool},
      {"AveragePool", one("AveragePool", halves, kIn, {0.0473f, 117}), OpKind::kPool},
      {"AveragePool with padding", one("AveragePool", window(3, 1)), OpKind::kPool},
      {"AveragePool, signed", one("AveragePool", halves, kSignedIn, {0.0473f, -11, true}), OpKind::kPool},
      {"GlobalAveragePool", one("GlobalAveragePool", {}, kIn, {0.01f, 120}), OpKind::kPool, 0.01f},
      {"ReduceMean", one("ReduceMean", {attribute("axes", Ints{2, 3})}, kIn, {0.01f, 120}), OpKind::kPool, 0.01f},
      {"Add", two("Add"), OpKind::kBinary},
      {"Sub", two("Sub"), OpKind::kBinary},
      {"Mul", two("Mul"), OpKind::kBinary},
      {"Add of a constant a channel",
       [](QdqBuilder& b) {
         const std::string c = b.byte_weight("c", {8, 1, 1}, -1);
         b.node("Add", {b.pair("x", kIn), c}, {"r"}).node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kBinary},
      {"Concat of two scales",
       [](QdqBuilder& b) {
         b.input("x2", {1, 8, 9, 10});
         b.node("Concat", {b.pair("x", kIn), b.pair("x2", {0.03f, 99})}, {"r"}, {attribute("axis", std::int64_t{1})});
         b.node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kUnary},
      {"Sigmoid", one("Sigmoid", {}, kIn, {1.0f / 256, 0}), OpKind::kUnary, 1.0f / 256},
      {"HardSigmoid, signed", one("HardSigmoid", {}, kSignedIn, {1.0f / 256, -128, true}), OpKind::kUnary, 1.0f / 256},
      {"LeakyRelu", one("LeakyRelu"), OpKind::kUnary},
      {"Tanh", one("Tanh", {}, kIn, {1.0f / 128, 128}), OpKind::kUnary, 1.0f / 128},
      {"x * sigmoid(x)",
       [](QdqBuilder& b) {
         const std::string x = b.pair("x", kIn);
         b.node("Sigmoid", {x}, {"s"}).node("Mul", {x, "s"}, {"r"}).node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kUnary},
      {"numbers that multiply and add",
       [](QdqBuilder& b) {
         b.initializer(tensor("three", {1}, Floats{3})).initializer(tensor("half", {}, Floats{0.5f}));
         b.node("Add", {b.pair("x", kIn), "three"}, {"s"}).node("Mul", {"s", "half"}, {"r"});
         b.node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kUnary},
      {"another scale",
       [](QdqBuilder& b) {
         b.node("Transpose", {b.pair("x", kIn)}, {"r"}, {attribute("perm", Ints{0, 2, 3, 1})});
         b.node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kUnary},
      {"Resize of the nearest",
       [](QdqBuilder& b) {
         b.initializer(tensor("scales", {4}, Floats{1, 1, 2, 2}));
         b.node("Resize", {b.pair("x", kIn), "", "scales"}, {"r"}, {attribute("mode", "nearest")});
         b.node("Identity", {b.pair("r", kIn)}, {"y"});
       },
       OpKind::kResize, 0.02f},
      {"Resize between neighbours",
       [](QdqBuilder& b) {
         b.initializer(tensor("scales", {4}, Floats{1, 1, 2, 1.7f}));
         b.node("Resize", {b.pair("x", kIn), "", "scales"}, {"r"}, {attribute("mode", "linear")});
         b.node("Identity", {b.pair("r", kOut)}, {"y"});
       },
       OpKind::kResize},
      {"Softmax", one("Softmax", {attribute("axis", std::int64_t{1})}, kIn, {1.0f / 256, 0}), OpKind::kSoftmax, 1.0f / 256},
      {"Softmax, signed", one("Softmax", {attribute("axis", std::int64_t{3})}, kSignedIn, {1.0f / 256, -128, true}), OpKind::kSoftmax,
       1.0f / 256},
  };
}

}  // namespace

TEST_CASE("one operator between bytes is one node of integers") {
  for (const Case& each : cases()) {
    INFO(each.name);
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", each.input).output("y");
    each.build(b);
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    CHECK(count(fused->graph(), each.op) >= 1);
    CHECK(count(plain->graph(), each.op) == 0);
    check_all_integers(fused->graph());
    CHECK(count(fused->graph(), OpKind::kPad, model::NumericClass::kExact) == 0);
    const std::vector<std::byte> got = outputs_of(fused);
    check_alike(reals_of(got), reals_of(outputs_of(plain)), each.step);
    SessionOptions two_threads;
    two_threads.threads = 2;
    CHECK(outputs_of(fused, two_threads) == got);
  }
}

TEST_CASE("groups of few outputs become one where their panels would be empty otherwise, with the same bits") {
  struct Grouped {
    Ints weight;
    std::int64_t groups, merged_groups;
  };
  for (const Grouped& each : {Grouped{{48, 2, 3, 3}, 16, 2},
                              {{32, 4, 3, 3}, 8, 2},
                              {{32, 8, 3, 3}, 4, 2},
                              {{24, 1, 1, 1}, 8, 1},
                              {{7, 1, 3, 3}, 7, 7},
                              {{32, 16, 3, 3}, 2, 2},
                              {{12, 32, 3, 3}, 4, 1},
                              {{26, 1, 3, 3}, 13, 1},
                              {{74, 2, 3, 3}, 37, 37},
                              {{106, 1, 1, 1}, 53, 53}}) {
    INFO(each.weight[0] << " outputs in " << each.groups << " groups");
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", {1, each.weight[1] * each.groups, 9, 10}).output("y");
    convolution(each.weight, each.weight[2], each.weight[2] / 2, 1, each.groups)(b);
    importer::ConvertOptions exact;
    exact.exact = true;
    const auto groups_of = [](const std::shared_ptr<const Model>& model) {
      for (const model::Node& node : model->graph().nodes)
        if (node.op == OpKind::kConv) return node.as<model::ConvAttributes>().groups;
      return std::int64_t{0};
    };
    const auto merged = converted(folder, b);
    CHECK(groups_of(merged) == each.merged_groups);
    const std::vector<std::byte> got = outputs_of(merged);
    const auto as_they_are = converted(folder, b, exact);
    CHECK(groups_of(as_they_are) == each.groups);
    CHECK(outputs_of(as_they_are) == got);
  }
}

TEST_CASE("an average of more bytes than 32 bits hold the sum of stays one of reals") {
  const auto pools = [](std::int64_t side, model::NumericClass numeric) {
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", {1, 1, side, side}).output("y");
    b.node("GlobalAveragePool", {b.pair("x")}, {"g"}).node("Identity", {b.pair("g")}, {"y"});
    return count(converted(folder, b)->graph(), OpKind::kPool, numeric);
  };
  CHECK(pools(2900, model::NumericClass::kInt8) == 1);
  CHECK(pools(3000, model::NumericClass::kInt8) == 0);
  CHECK(pools(3000, model::NumericClass::kExact) == 1);
}

TEST_CASE("bytes may be moved before it is known what they stand for") {
  constexpr int kBytes = 2;
  const Linear one{0.02f, 100}, other{0.05f, 7};
  const Ints image{1, 6, 5, 3};
  struct Moved {
    const char* what;
    std::function<void(QdqBuilder&)> build;
  };
  const auto transposed = [](QdqBuilder& b, const std::string& from, const std::string& to) {
    b.node("Transpose", {from}, {to}, {attribute("perm", Ints{0, 3, 1, 2})});
  };
  const auto layer = [](QdqBuilder& b, const std::string& reals) { b.node("Conv", {reals, b.float_weight("w", {8, 3, 1, 1})}, {"y"}); };
  const Moved cases[] = {
      {"a camera's picture",
       [&](QdqBuilder& b) {
         transposed(b, "x", "t");
         layer(b, b.dequantised("t", one));
       }},
      {"two meanings of the same bytes",
       [&](QdqBuilder& b) {
         transposed(b, "x", "t");
         transposed(b, "x", "u");
         b.node("Add", {b.dequantised("t", one), b.dequantised("u", other)}, {"s"});
         layer(b, "s");
       }},
      {"raw bytes beside rounded ones",
       [&](QdqBuilder& b) {
         b.node("Concat", {"x", b.quantised(b.dequantised("x", other), other)}, {"c"}, {attribute("axis", std::int64_t{2})});
         transposed(b, "c", "t");
         layer(b, b.dequantised("t", one));
       }},
      {"bytes of two scales read with a third",
       [&](QdqBuilder& b) {
         const std::string real = b.dequantised("x", other);
         b.node("Concat", {b.quantised(real, one), b.quantised(real, other)}, {"c"}, {attribute("axis", std::int64_t{2})});
         transposed(b, "c", "t");
         layer(b, b.dequantised("t", {0.01f, 3}));
       }},
      {"bytes read before they are moved",
       [&](QdqBuilder& b) {
         b.node("MaxPool", {b.dequantised("x", one)}, {"p"}, {attribute("kernel_shape", Ints{1, 1})});
         transposed(b, "x", "t");
         transposed(b, "p", "q");
         b.node("Add", {b.dequantised("t", other), "q"}, {"s"});
         layer(b, "s");
       }},
  };
  for (const Moved& moved : cases) {
    INFO(moved.what);
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", image, kBytes).output("y");
    moved.build(b);
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    const std::vector<std::byte> got = outputs_of(fused);
    check_alike(reals_of(got), reals_of(outputs_of(plain)), 1e-4f);
  }
}

namespace {

/// An image network in PyTorch's style: layers of several readers, a residual, a concatenation, a classifier that gives f32.
QdqBuilder network(bool last_rounded = false) {
  QdqBuilder b;
  b.input("x", {1, 3, 40, 40}).output("y");
  b.node("Conv", {b.pair("x", {0.02f, 120}), b.float_weight("w0", {32, 3, 3, 3})}, {"c0"}, window(3, 1, 2)).node("Relu", {"c0"}, {"r0"});
  const std::string stem = b.pair("r0", {0.02f, 0});
  b.node("Conv", {stem, b.float_weight("w1", {32, 1, 3, 3})}, {"c1"}, window(3, 1, 1, 32));
  b.node("Conv", {b.pair("c1", {0.01f, 128}), b.float_weight("w2", {32, 32, 1, 1})}, {"c2"}, window(1, 0));
  b.node("Add", {b.pair("c2", {0.03f, 100}), stem}, {"sum"});
  const std::string sum = b.pair("sum", {0.03f, 90});
  b.node("Conv", {sum, b.float_weight("w3", {48, 32, 1, 1})}, {"c3"}, window(1, 0)).node("Relu", {"c3"}, {"r3"});
  b.node("Conv", {sum, b.float_weight("w4", {48, 32, 3, 3})}, {"c4"}, window(3, 1)).node("Relu", {"c4"}, {"r4"});
  b.node("Concat", {"r3", "r4"}, {"joined"}, {attribute("axis", std::int64_t{1})});
  b.node("MaxPool", {b.pair("joined", {0.04f, 0})}, {"p"}, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})});
  b.node("GlobalAveragePool", {b.pair("p", {0.04f, 0})}, {"g"}).node("Flatten", {b.pair("g", {0.02f, 0})}, {"f"});
  b.weight("bias", {300}, 0.05f);
  const std::vector<std::string> gemm{b.pair("f", {0.02f, 0}), b.float_weight("w5", {300, 96}), "bias"};
  b.node("Gemm", gemm, {last_rounded ? "scores" : "y"}, {attribute("transB", std::int64_t{1})});
  if (last_rounded) b.node("Identity", {b.pair("scores", {0.02f, 128})}, {"y"});
  return b;
}

}  // namespace

TEST_CASE("bytes whose scale comes at run time are multiplied by one node, which scales them and adds the bias") {
  struct Dynamic {
    const char* what;
    std::function<void(QdqBuilder&)> build;
    OpKind op;
    std::size_t nodes;
    Ints input;
  };
  const auto quantised = [](QdqBuilder& b, const std::string& x) { b.node("DynamicQuantizeLinear", {x}, {x + "_q", x + "_s", x + "_z"}); };
  const auto scaled = [](QdqBuilder& b, const std::string& sums, const std::string& scale) {
    b.node("Cast", {sums}, {"reals"}, {attribute("to", std::int64_t{1})});
    b.initializer(tensor("w_s", {}, Floats{0.01f})).node("Mul", {scale, "w_s"}, {"factor"});
    b.node("Mul", {"reals", "factor"}, {"scaled"});
  };
  const Dynamic cases[] = {
      {"MatMulInteger",
       [&](QdqBuilder& b) {
         quantised(b, "x");
         b.byte_weight("w", {24, 20}, -1, false, 128);
         b.node("MatMulInteger", {"x_q", "w_bytes", "x_z", "w_zero"}, {"sums"});
         scaled(b, "sums", "x_s");
         b.weight("bias", {20}, 0.1f).node("Add", {"bias", "scaled"}, {"y"});
       },
       OpKind::kDense,
       1,
       {2, 9, 24}},
      {"ConvInteger",
       [&](QdqBuilder& b) {
         quantised(b, "x");
         b.byte_weight("w", {20, 8, 3, 3}, -1);
         b.node("ConvInteger", {"x_q", "w_bytes", "x_z"}, {"sums"}, window(3, 1));
         scaled(b, "sums", "x_s");
         b.weight("bias", {1, 20, 1, 1}, 0.1f).node("Add", {"scaled", "bias"}, {"r"}).node("Relu", {"r"}, {"y"});
       },
       OpKind::kConv,
       1,
       {1, 8, 9, 10}},
      {"depthwise ConvInteger",
       [&](QdqBuilder& b) {
         quantised(b, "x");
         b.byte_weight("w", {8, 1, 3, 3}, -1);
         b.node("ConvInteger", {"x_q", "w_bytes", "x_z"}, {"sums"}, window(3, 1, 1, 8));
         scaled(b, "sums", "x_s");
         b.node("Identity", {"scaled"}, {"y"});
       },
       OpKind::kConv,
       1,
       {1, 8, 9, 10}},
      {"two activations",
       [&](QdqBuilder& b) {
         b.input("x2", {2, 24, 20});
         quantised(b, "x");
         quantised(b, "x2");
         b.node("MatMulInteger", {"x_q", "x2_q", "x_z", "x2_z"}, {"sums"}).node("Mul", {"x_s", "x2_s"}, {"both"});
         scaled(b, "sums", "both");
         b.node("Identity", {"scaled"}, {"y"});
       },
       OpKind::kMatMul,
       1,
       {2, 9, 24}},
      {"sums that something else reads",
       [&](QdqBuilder& b) {
         quantised(b, "x");
         b.byte_weight("w", {24, 20}, -1);
         b.node("MatMulInteger", {"x_q", "w_bytes", "x_z"}, {"sums"});
         scaled(b, "sums", "x_s");
         b.node("Cast", {"sums"}, {"again"}, {attribute("to", std::int64_t{1})}).node("Add", {"again", "scaled"}, {"y"});
       },
       OpKind::kDense,
       1,
       {2, 9, 24}},
  };
  for (const Dynamic& each : cases) {
    INFO(each.what);
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", each.input).output("y");
    each.build(b);
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    CHECK(count(fused->graph(), each.op) == each.nodes);
    const std::vector<std::byte> got = outputs_of(fused);
    CHECK(reals_of(got) == reals_of(outputs_of(plain)));
    SessionOptions two_threads;
    two_threads.threads = 2;
    CHECK(outputs_of(fused, two_threads) == got);
  }
}

TEST_CASE("products of two activations between bytes are integers") {
  for (const bool rounded : {true, false}) {
    const TemporaryFolder folder;
    QdqBuilder b;
    b.input("x", {2, 3, 9, 24}).input("x2", {2, 3, 24, 20}).output("y");
    b.node("MatMul", {b.pair("x", kSignedIn), b.pair("x2", {0.03f, 99})}, {"p"});
    b.node("Identity", {rounded ? b.pair("p", {0.4f, 117}) : "p"}, {"y"});
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    CHECK(count(fused->graph(), OpKind::kMatMul) == 1);
    check_alike(reals_of(outputs_of(fused)), reals_of(outputs_of(plain)), rounded ? 0.4f : 1e-2f);
  }
}

TEST_CASE("an LSTM's input matrix of bytes, whose gates are packed in another order, has the sums and scales of its own rows") {
  const TemporaryFolder folder;
  QdqBuilder b;
  b.input("x", {6, 2, 8}).output("y");
  const std::string w = b.byte_weight("w", {1, 48, 8}, 1);
  b.weight("r", {1, 48, 12}, 0.02f);
  b.node("LSTM", {b.pair("x", kIn), w, "r"}, {"y"}, {attribute("hidden_size", std::int64_t{12})});
  const auto fused = converted(folder, b), plain = converted(folder, b, false);
  CHECK(count(fused->graph(), OpKind::kDense) == 1);
  check_alike(reals_of(outputs_of(fused)), reals_of(outputs_of(plain)), 1e-2f);
}

TEST_CASE("a network of bytes has one node of reals at each end, or none") {
  const TemporaryFolder folder;
  const auto fused = converted(folder, network()), plain = converted(folder, network(), false);
  check_all_integers(fused->graph());
  CHECK(count(fused->graph(), OpKind::kQuantize) == 1);
  CHECK(count(fused->graph(), OpKind::kDequantize) == 0);  // the last layer gives reals
  CHECK(count(fused->graph(), OpKind::kTranspose, model::NumericClass::kExact) == 0);
  CHECK(count(fused->graph(), OpKind::kUnary) == 0);
  CHECK(fused->graph().tensor(fused->graph().outputs[0].tensor).dtype == DType::kF32);
  const std::vector<float> got = reals_of(outputs_of(fused)), want = reals_of(outputs_of(plain));
  float worst = 0.0f, largest = 0.0f;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::fabs(got[i] - want[i]));
    largest = std::max(largest, std::fabs(want[i]));
  }
  CHECK(largest > 0.1f);
  CHECK(worst < 0.02f * largest);
  CHECK(std::max_element(got.begin(), got.end()) - got.begin() == std::max_element(want.begin(), want.end()) - want.begin());
}

TEST_CASE("integers are the same bits in every budget, whatever is streamed and cut") {
  const TemporaryFolder folder;
  const auto model = converted(folder, network(true));
  check_all_integers(model->graph());
  const std::vector<std::byte> want = outputs_of(model);
  SessionOptions options;
  options.scope = BudgetScope::kLibrary;
  int ran = 0;
  for (std::uint64_t budget = 256 << 10; budget < 2 << 20; budget += budget / 8) {
    options.budget = Bytes(budget);
    for (const int threads : {1, 2}) {
      options.threads = threads;
      if (!Session::create(model, options)) continue;
      CHECK(outputs_of(model, options) == want);
      ++ran;
    }
  }
  CHECK(ran > 6);
}

TEST_CASE("bytes of the ONNX graph are given as they are: signed ports, ports among others, 16 bits") {
  const auto alike = [](const QdqBuilder& b, std::size_t most_plain) {
    const TemporaryFolder folder;
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    CHECK(plain_count(fused->graph()) <= most_plain);
    CHECK(outputs_of(fused) == outputs_of(plain));
  };
  {  // a signed output that others read too
    QdqBuilder b;
    b.input("x", {4, 6});
    const std::string bytes = b.quantised("x", kSignedIn);
    b.node("Relu", {b.dequantised(bytes, kSignedIn)}, {"r"}).node("Identity", {b.pair("r", kSignedOut)}, {"y"});
    b.node("Identity", {bytes}, {"bytes"}).output("y").output("bytes");
    alike(b, 0);
  }
  {  // unsigned bytes in and out
    QdqBuilder b;
    b.input("x", {4, 6}, 2).node("Relu", {b.dequantised("x", kIn)}, {"r"});
    b.node("Identity", {b.quantised("r", kOut)}, {"y"}).output("y");
    alike(b, 0);
  }
  {  // signed bytes in
    QdqBuilder b;
    b.input("x", {4, 6}, 3).node("Sigmoid", {b.dequantised("x", kSignedIn)}, {"r"});
    b.node("Identity", {b.pair("r", {1.0f / 256, 0})}, {"y"}).output("y");
    alike(b, 0);
  }
  {  // signed bytes in and out, around layers of an image
    QdqBuilder b;
    b.input("x", {1, 3, 9, 10}, 3).node("Conv", {b.dequantised("x", kSignedIn), b.float_weight("w", {8, 3, 3, 3})}, {"c"}, window(3, 1));
    b.node("Conv", {b.pair("c", kSignedOut), b.float_weight("v", {5, 8, 1, 1})}, {"d"}, window(1, 0));
    b.node("Identity", {b.quantised("d", kSignedOut)}, {"y"}).output("y");
    const TemporaryFolder folder;
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    check_alike(signed_of(outputs_of(fused)), signed_of(outputs_of(plain)), 1.0f);
    CHECK(plain_count(fused->graph()) == 0);
    CHECK(count(fused->graph(), OpKind::kQuantize) + count(fused->graph(), OpKind::kDequantize) == 0);
    CHECK(count(fused->graph(), OpKind::kTranspose) == 0);
  }
  {  // unsigned bytes that are moved and given
    QdqBuilder b;
    b.input("x", {1, 3, 9, 10}, 2).node("MaxPool", {b.dequantised("x", kIn)}, {"p"}, {attribute("kernel_shape", Ints{2, 2})});
    b.node("Flatten", {"p"}, {"f"}).node("Identity", {b.quantised("f", kIn)}, {"y"}).output("y");
    alike(b, 0);
  }
  {  // movement of bytes between QuantizeLinear and DequantizeLinear
    QdqBuilder b;
    b.input("x", {2, 4, 6}).node("Transpose", {b.quantised("x", kSignedIn)}, {"t"}, {attribute("perm", Ints{0, 2, 1})});
    b.node("Tanh", {b.dequantised("t", kSignedIn)}, {"r"}).node("Identity", {b.pair("r", {1.0f / 128, 0, true})}, {"y"}).output("y");
    alike(b, 0);
  }
  {  // the same bytes as reals of another scale
    QdqBuilder b;
    b.input("x", {4, 6});
    b.node("Tanh", {b.dequantised(b.quantised("x", kIn), {0.01f, 3})}, {"y"}).output("y");
    alike(b, 1);
  }
  {  // 16 bits
    QdqBuilder b(21);
    b.input("x", {4, 6}).initializer(tensor("s", {}, Floats{0.001f})).initializer(raw_tensor("z", {}, 4, std::string("\x10\x80", 2)));
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"})
        .node("DequantizeLinear", {"q", "s", "z"}, {"d"})
        .node("Relu", {"d"}, {"y"})
        .output("y");
    alike(b, 2);
  }
}

TEST_CASE("bytes that become bytes of another scale are rounded once, to what ONNX Runtime makes of the two scales") {
  struct Pairs {
    Linear first, second;
    float scale;
    int zero;  // of unsigned bytes
  };
  for (const Pairs& p :
       {Pairs{{0.02f, 121}, {0.0201f, 121}, 0.019999997690320015f, 121}, Pairs{{0.02f, 121}, {0.0199f, 120}, 0.019874509423971176f, 120},
        Pairs{{0.02f, -7, true}, {0.05f, 3, true}, 0.019999997690320015f, 121}, Pairs{{0.02f, 0}, {0.001f, 0}, 0.0010000000474974513f, 0},
        Pairs{{1.0f, 3}, {0.001f, 100}, 0.0009999999310821295f, 100},
        Pairs{{0.013f, -128, true}, {0.011f, -126, true}, 0.010913725011050701f, 0}}) {
    INFO(p.first.scale << " and " << p.second.scale);
    QdqBuilder b;
    b.input("x", {1, 4, 5, 6}).output("y").node("Identity", {b.pair(b.pair("x", p.first), p.second)}, {"y"});
    const TemporaryFolder folder;
    const auto merged = converted(folder, b);
    CHECK(merged->graph().nodes.size() == 2);
    REQUIRE(merged->graph().quantisations.size() == 1);
    CHECK(merged->graph().quantisations[0].scales == std::vector{p.scale});
    const std::vector<std::int32_t> zero = merged->graph().quantisations[0].zero_points;
    CHECK((zero.empty() ? 0 : zero[0]) == p.zero);
    // Each of the roundings that it stands for is off by half a step of its own at most.
    const std::vector<float> got = reals_of(outputs_of(merged)), want = reals_of(outputs_of(converted(folder, b, false)));
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i);
      CHECK(std::fabs(got[i] - want[i]) <= 0.505f * (p.first.scale + p.second.scale + p.scale));
    }
  }
}

TEST_CASE("of four scales in a row the first two and the last two are joined before the rest") {
  QdqBuilder b;
  std::string x = "x";
  b.input("x", {1, 4, 5, 6}).output("y");
  for (const Linear& q : {Linear{0.013899367302656174f, 90}, Linear{0.01671411469578743f, 94}, Linear{0.011593999341130257f, 127},
                          Linear{0.010427890345454216f, 139}})
    x = b.pair(x, q);
  b.node("Identity", {x}, {"y"});
  const TemporaryFolder folder;
  const auto merged = converted(folder, b);
  REQUIRE(merged->graph().quantisations.size() == 1);
  CHECK(merged->graph().quantisations[0].scales == std::vector{0.009649327024817467f});  // ONNX Runtime's; one by one: 0.00966473
  CHECK(merged->graph().quantisations[0].zero_points == std::vector{130});
}

TEST_CASE("bytes of two scales are rounded twice where others see what lies between, and for exact sums") {
  const Linear first{0.02f, 121}, second{0.03f, 121};
  for (const int seen : {0, 1, 2, 3}) {
    INFO(seen);
    QdqBuilder b;
    b.input("x", {1, 4, 5, 6}).output("y").output("z");
    const std::string bytes = b.quantised("x", first), real = b.dequantised(bytes, first);
    const std::string more = b.quantised(real, second), last = b.dequantised(more, second);
    b.node("Identity", {last}, {"y"})
        .node(seen == 2 ? "DequantizeLinear" : "Identity",
              seen == 2 ? std::vector<std::string>{more, bytes + "_scale", bytes + "_zero"} : std::vector{seen == 1 ? real : last}, {"z"});
    importer::ConvertOptions options;
    options.exact = seen == 3;
    const TemporaryFolder folder;
    const auto model = converted(folder, b, options), plain = converted(folder, b, false);
    CHECK((outputs_of(model) == outputs_of(plain)) == (seen != 0));
  }
}

TEST_CASE("an addition keeps the order of its operands and the type of the file") {
  for (const Linear& q : {kIn, kSignedIn})
    for (const bool residual_first : {false, true}) {
      QdqBuilder b;
      b.input("x", {1, 8, 5, 6}).output("y");
      const std::string x = b.pair("x", q);
      b.node("Conv", {x, b.float_weight("w", {8, 8, 1, 1})}, {"c"}, window(1, 0));
      const std::string product = b.pair("c", q);
      b.node("Add", residual_first ? std::vector{x, product} : std::vector{product, x}, {"sum"});
      b.node("Add", {b.pair("sum", q), b.pair("z", q)}, {"more"}).input("z", {1, 1, 5, 6});
      b.node("Identity", {b.pair("more", q)}, {"y"});
      const TemporaryFolder folder;
      const auto model = converted(folder, b);  // read from its file
      for (const model::Node& node : model->graph().nodes) {
        INFO(node.name << (q.is_signed ? ", i8" : "") << (residual_first ? ", residual first" : ""));
        CHECK(node.epilogue.residual_first == (node.op == OpKind::kConv && residual_first));
        CHECK(node.epilogue.of_i8 == ((node.op == OpKind::kConv || node.op == OpKind::kBinary) && q.is_signed));
      }
      CHECK((count(model->graph(), OpKind::kConv) == 1 && count(model->graph(), OpKind::kBinary) == 1));
    }
}

TEST_CASE("what integers cannot say exactly stays with the generic kernels") {
  const auto classes = [](const QdqBuilder& b, OpKind op) {
    const TemporaryFolder folder;
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    check_alike(reals_of(outputs_of(fused)), reals_of(outputs_of(plain)), 0.2f);
    return count(fused->graph(), op);
  };
  {  // a zero point that moves values out of 8 bits
    QdqBuilder b;
    b.input("x", {1, 8, 9, 10}).output("y");
    byte_convolution({20, 8, 3, 3}, -1, false, 3)(b);
    CHECK(classes(b, OpKind::kConv) == 0);
  }
  {  // a scale a channel of the input
    QdqBuilder b;
    b.input("x", {1, 8, 9, 10}).output("y").initializer(tensor("s", {8}, Floats(8, 0.02f)));
    b.initializer(raw_tensor("z", {8}, 2, std::string(8, '\x60')));
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"d"});
    b.node("Conv", {"d", b.float_weight("w", {20, 8, 1, 1})}, {"c"}, window(1, 0)).node("Identity", {b.pair("c", {0.2f, 128})}, {"y"});
    CHECK(classes(b, OpKind::kConv) == 0);
  }
}

TEST_CASE("weights that their zero point moves out of 8 bits are still summed as whole numbers") {
  constexpr float kInScale = 0.02f, kWeightScale = 0.004f, kOutScale = 1.7f;
  constexpr int kInZero = 117, kWeightZero = 121, kOutZero = 99;
  const auto check = [&](std::int64_t channels, std::int64_t outputs, std::int64_t groups, std::int64_t kernel, std::int64_t h,
                         std::int64_t w) {
    INFO(channels << " to " << outputs << " in " << groups << " groups, kernel " << kernel << ", " << h << "x" << w);
    const std::int64_t depth = channels / groups;
    std::string weights;
    for (std::int64_t i = 0; i < outputs * depth * kernel * kernel; ++i) weights.push_back(static_cast<char>((255 + i * 37 + i / 7) % 256));
    std::vector<std::int32_t> bias;
    for (std::int64_t n = 0; n < outputs; ++n) bias.push_back(static_cast<std::int32_t>(n * 311 % 4001 - 2000));
    QdqBuilder b;
    b.input("x", {1, channels, h, w}, 2);
    b.constants("in", {kInScale, kInZero});
    b.constants("weight", {kWeightScale, kWeightZero});
    b.constants("out", {kOutScale, kOutZero});
    b.initializer(raw_tensor("w", {outputs, depth, kernel, kernel}, 2, weights));
    b.initializer(raw_tensor("bias", {outputs}, 6, {reinterpret_cast<const char*>(bias.data()), bias.size() * sizeof bias[0]}));
    b.node("QLinearConv", {"x", "in_scale", "in_zero", "w", "weight_scale", "weight_zero", "out_scale", "out_zero", "bias"}, {"y"},
           window(kernel, kernel / 2, 1, groups));
    b.output("y", 2);
    const TemporaryFolder folder;
    const auto model = converted(folder, b);
    CHECK(count(model->graph(), OpKind::kConv, model::NumericClass::kWinograd4) == 0);
    CHECK(count(model->graph(), OpKind::kConv, model::NumericClass::kExact) == 1);
    CHECK(plain_count(model->graph()) == 0);
    const std::vector<std::byte> got = outputs_of(model);
    REQUIRE(got.size() == static_cast<std::size_t>(outputs * h * w));
    const float multiplier = kInScale * kWeightScale / kOutScale;
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < outputs * h * w; ++i) {
      const std::int64_t n = i / (h * w), y = i / w % h, x = i % w;
      std::int64_t sum = bias[static_cast<std::size_t>(n)];
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t t = 0; t < kernel * kernel; ++t) {
          const std::int64_t row = y + t / kernel - kernel / 2, column = x + t % kernel - kernel / 2;
          if (row < 0 || row >= h || column < 0 || column >= w) continue;
          const std::int64_t from = ((n / (outputs / groups) * depth + k) * h + row) * w + column;
          const auto value = static_cast<std::uint8_t>(from * 59);  // as outputs_of fills it
          const auto weight = static_cast<std::uint8_t>(weights[static_cast<std::size_t>((n * depth + k) * kernel * kernel + t)]);
          sum += (value - kInZero) * (weight - kWeightZero);
        }
      const float real = std::nearbyint(static_cast<float>(sum) * multiplier);
      wrong +=
          std::to_integer<int>(got[static_cast<std::size_t>(i)]) == static_cast<int>(std::clamp(real + kOutZero, 0.0f, 255.0f)) ? 0 : 1;
    }
    CHECK(wrong == 0);
  };
  for (std::int64_t size = 1; size <= 10; ++size) {
    check(size, size, size, 3, size, 11 - size);
    check(2 * size, 3 * size, size, 1, 11 - size, size);
  }
  check(7, 33, 1, 1, 5, 9);
  check(40, 40, 40, 5, 7, 8);
  check(24, 20, 1, 3, 12, 11);  // which Winograd would take
}

TEST_CASE("products with weights that their zero point moves out of 8 bits are the sums of whole numbers") {
  constexpr int kInZero = 117, kWeightZero = 121;
  const auto check = [&](std::int64_t lines, std::int64_t depth, std::int64_t outputs, bool image) {
    INFO(lines << " lines, " << depth << " to " << outputs << (image ? ", as an image" : ""));
    std::string weights;
    for (std::int64_t i = 0; i < depth * outputs; ++i) weights.push_back(static_cast<char>((255 + i * 37 + i / 7) % 256));
    QdqBuilder b;
    b.input("x", image ? Ints{1, depth, lines, 1} : Ints{lines, depth}, 2);
    b.constants("in", {1.0f, kInZero});
    b.constants("weight", {1.0f, kWeightZero});
    b.initializer(raw_tensor("w", image ? Ints{outputs, depth, 1, 1} : Ints{depth, outputs}, 2, weights));
    b.node(image ? "ConvInteger" : "MatMulInteger", {"x", "w", "in_zero", "weight_zero"}, {"y"}).output("y", 6);
    const TemporaryFolder folder;
    const auto model = converted(folder, b);
    CHECK(count(model->graph(), image ? OpKind::kConv : OpKind::kDense) == 2);
    const std::vector<std::byte> got = outputs_of(model);
    REQUIRE(got.size() == static_cast<std::size_t>(lines * outputs) * sizeof(std::int32_t));
    std::int64_t wrong = 0;
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t n = 0; n < outputs; ++n) {
        std::int32_t sum = 0, found = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const auto value = static_cast<std::uint8_t>((image ? k * lines + line : line * depth + k) * 59);  // as outputs_of fills it
          const auto weight = static_cast<std::uint8_t>(weights[static_cast<std::size_t>(image ? n * depth + k : k * outputs + n)]);
          sum += (value - kInZero) * (weight - kWeightZero);
        }
        std::memcpy(&found, got.data() + (image ? n * lines + line : line * outputs + n) * sizeof found, sizeof found);
        wrong += found == sum ? 0 : 1;
      }
    CHECK(wrong == 0);
  };
  for (const bool image : {false, true}) {
    for (std::int64_t size = 1; size <= 10; ++size) check(11 - size, size, 2 * size + 1, image);
    check(1, 300, 65, image);
    check(13, 67, 33, image);
  }
}

TEST_CASE("QOperator models are integers too") {
  const auto whole = [](QdqBuilder& b, const std::string& op, std::vector<std::string> inputs,
                        const std::vector<std::string>& attributes = {}, const std::string& domain = "com.microsoft") {
    b.node(op, inputs, {"q"}, attributes, domain);
    b.node("Identity", {b.dequantised("q", kOut)}, {"y"}).output("y");
    const TemporaryFolder folder;
    const auto fused = converted(folder, b), plain = converted(folder, b, false);
    check_all_integers(fused->graph());
    CHECK(plain_count(fused->graph()) == 0);
    check_alike(reals_of(outputs_of(fused)), reals_of(outputs_of(plain)), kOut.scale);
  };
  const auto start = [](QdqBuilder& b, const Ints& dims) {
    b.input("x", dims);
    b.constants("in", kIn);
    b.constants("out", kOut);
    return b.quantised("x", kIn);
  };
  {
    QdqBuilder b;
    const std::string x = start(b, {1, 8, 9, 10});
    b.byte_weight("w", {20, 8, 3, 3}, 0);
    std::vector<std::int32_t> bias(20, 700);
    b.initializer(raw_tensor("bias", {20}, 6, {reinterpret_cast<const char*>(bias.data()), 80}));
    whole(b, "QLinearConv", {x, "in_scale", "in_zero", "w_bytes", "w_scale", "w_zero", "out_scale", "out_zero", "bias"}, window(3, 1), "");
  }
  {
    QdqBuilder b;
    const std::string x = start(b, {5, 8});
    b.byte_weight("w", {8, 20}, 1);
    whole(b, "QLinearMatMul", {x, "in_scale", "in_zero", "w_bytes", "w_scale", "w_zero", "out_scale", "out_zero"}, {}, "");
  }
  {
    QdqBuilder b;
    const std::string x = start(b, {5, 8});
    b.byte_weight("w", {20, 8}, 0);
    whole(b, "QGemm", {x, "in_scale", "in_zero", "w_bytes", "w_scale", "w_zero", "", "out_scale", "out_zero"},
          {attribute("transB", std::int64_t{1})});
  }
  for (const char* op : {"QLinearAdd", "QLinearMul"}) {
    QdqBuilder b;
    const std::string x = start(b, {5, 8});
    b.input("x2", {5, 8});
    const std::string x2 = b.quantised("x2", kIn);
    whole(b, op, {x, "in_scale", "in_zero", x2, "in_scale", "in_zero", "out_scale", "out_zero"});
  }
  {
    QdqBuilder b;
    const std::string x = start(b, {1, 8, 9, 10});
    whole(b, "QLinearGlobalAveragePool", {x, "in_scale", "in_zero", "out_scale", "out_zero"});
  }
  {
    QdqBuilder b;
    const std::string x = start(b, {1, 8, 9, 10});
    whole(b, "QLinearConcat", {"out_scale", "out_zero", x, "in_scale", "in_zero", x, "in_scale", "in_zero"},
          {attribute("axis", std::int64_t{1})});
  }
}
