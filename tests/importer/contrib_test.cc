// Operators of com.microsoft are the operators of ONNX that they are made of: each model is written twice, and gives the same. What ONNX
// Runtime says of them is asked by scripts/contrib-cases.
#include <catch2/catch.hpp>
#include <cmath>
#include <span>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int kU8 = 2, kI8 = 3;
const char* const kContrib = "com.microsoft";

importer::ConvertReport convert(const TemporaryFolder& folder, const OnnxBuilder& builder, Status& status) {
  write_file(folder.path("m.onnx"), builder.bytes());
  importer::ConvertReport report;
  status = importer::convert(folder.path("m.onnx"), folder.path("m.sluice"), {}, report);
  return report;
}

Floats run(const OnnxBuilder& builder) {
  const TemporaryFolder folder;
  Status status;
  for (const importer::Problem& problem : convert(folder, builder, status).problems)
    UNSCOPED_INFO(problem.op_type + ": " + problem.message);
  REQUIRE(status);
  const std::shared_ptr<const Model> model = *Model::open(folder.path("m.sluice"));
  const auto session = Session::create(model, {});
  REQUIRE(session);
  for (std::size_t i = 0; i < model->graph().inputs.size(); ++i) {
    const Floats values = ramp(model->graph().inputs[i].onnx_shape.element_count(), 0.1f + 0.01f * static_cast<float>(i));
    REQUIRE((*session)->set_input(i, DType::kF32, std::as_bytes(std::span(values))));
  }
  REQUIRE((*session)->run());
  Floats values(static_cast<std::size_t>(model->graph().outputs[0].onnx_shape.element_count()));
  REQUIRE((*session)->get_output(0, std::as_writable_bytes(std::span(values))));
  return values;
}

void check_same(const OnnxBuilder& contrib, const OnnxBuilder& made_of) {
  const Floats got = run(contrib), want = run(made_of);
  REQUIRE(got.size() == want.size());
  float most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(got[i] == Approx(want[i]).epsilon(1e-4).margin(1e-5));
    most = std::max(most, std::fabs(want[i]));
  }
  CHECK(most > 0.01f);
}

std::string refusal(const OnnxBuilder& builder) {
  const TemporaryFolder folder;
  Status status;
  const importer::ConvertReport report = convert(folder, builder, status);
  CHECK_FALSE(status);
  return report.problems.empty() ? "" : report.problems[0].message;
}

std::string bytes_of(std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>((i * 37 + i / 11) % 251);
  return bytes;
}

/// Scales and zero points x, w and y, bytes of x, a weight [64, 24] of bytes and its bias.
OnnxBuilder with_bytes() {
  OnnxBuilder b(21);
  b.input("real", {3, 64});
  b.initializer(tensor("xs", {}, Floats{0.01f})).initializer(raw_tensor("xz", {}, kU8, "\x70"));
  b.initializer(tensor("ws", {24}, ramp(24, 0.001f))).initializer(raw_tensor("wz", {}, kI8, "\x03"));
  b.initializer(tensor("ys", {}, Floats{0.05f})).initializer(raw_tensor("yz", {}, kU8, "\x80"));
  b.initializer(raw_tensor("w", {64, 24}, kI8, bytes_of(64 * 24))).weight("bias", {24}, 0.1f);
  b.node("QuantizeLinear", {"real", "xs", "xz"}, {"x"});
  return b;
}

OnnxBuilder& as_real(OnnxBuilder& b) { return b.node("Cast", {"bytes"}, {"y"}, {attribute("to", std::int64_t{1})}).output("y"); }

}  // namespace

TEST_CASE("products of whole numbers with their scales") {
  OnnxBuilder contrib = with_bytes(), made_of = with_bytes();
  contrib.node("MatMulIntegerToFloat", {"x", "w", "xs", "ws", "xz", "wz", "bias"}, {"y"}, {}, kContrib).output("y");
  made_of.node("MatMulInteger", {"x", "w", "xz", "wz"}, {"sums"}).node("Cast", {"sums"}, {"f"}, {attribute("to", std::int64_t{1})});
  made_of.node("Mul", {"xs", "ws"}, {"s"}).node("Mul", {"f", "s"}, {"p"}).node("Add", {"p", "bias"}, {"y"}).output("y");
  check_same(contrib, made_of);

  contrib = with_bytes(), made_of = with_bytes();
  contrib.node("DynamicQuantizeMatMul", {"real", "w", "ws", "wz", "bias"}, {"y"}, {}, kContrib).output("y");
  made_of.node("DynamicQuantizeLinear", {"real"}, {"q", "qs", "qz"}).node("MatMulInteger", {"q", "w", "qz", "wz"}, {"sums"});
  made_of.node("Cast", {"sums"}, {"f"}, {attribute("to", std::int64_t{1})}).node("Mul", {"qs", "ws"}, {"s"});
  made_of.node("Mul", {"f", "s"}, {"p"}).node("Add", {"p", "bias"}, {"y"}).output("y");
  check_same(contrib, made_of);
}

TEST_CASE("QGemm with a turned weight and a bias of whole numbers") {
  std::string little;  // i32 up to 511
  for (int i = 0; i < 24; ++i) little += {static_cast<char>(i * 11), static_cast<char>(i % 2), '\0', '\0'};
  OnnxBuilder contrib = with_bytes(), made_of = with_bytes();
  for (OnnxBuilder* b : {&contrib, &made_of})
    b->initializer(raw_tensor("wt", {24, 64}, kI8, bytes_of(64 * 24))).initializer(raw_tensor("c", {24}, 6, little));
  contrib.node("QGemm", {"x", "xs", "xz", "wt", "ws", "wz", "c", "ys", "yz"}, {"bytes"}, {attribute("transB", std::int64_t{1})}, kContrib);
  made_of.node("Transpose", {"wt"}, {"t"}, {attribute("perm", Ints{1, 0})}).node("MatMulInteger", {"x", "t", "xz", "wz"}, {"products"});
  made_of.node("Add", {"products", "c"}, {"sums"}).node("Cast", {"sums"}, {"f"}, {attribute("to", std::int64_t{1})});
  made_of.node("Mul", {"xs", "ws"}, {"s"}).node("Mul", {"f", "s"}, {"p"});
  made_of.node("QuantizeLinear", {"p", "ys", "yz"}, {"bytes"});
  check_same(as_real(contrib), as_real(made_of));
}

TEST_CASE("operators between bytes") {
  const struct {
    const char *contrib, *op;
    std::vector<std::string> attributes;
  } kCases[] = {{"QLinearSigmoid", "Sigmoid", {}},
                {"QLinearLeakyRelu", "LeakyRelu", {attribute("alpha", 0.2f)}},
                {"QLinearSoftmax", "Softmax", {attribute("axis", std::int64_t{-1}), attribute("opset", std::int64_t{13})}}};
  for (const auto& [name, op, attributes] : kCases) {
    OnnxBuilder contrib = with_bytes(), made_of = with_bytes();
    contrib.node(name, {"x", "xs", "xz", "ys", "yz"}, {"bytes"}, attributes, kContrib);
    made_of.node("DequantizeLinear", {"x", "xs", "xz"}, {"r"})
        .node(op, {"r"}, {"s"}, attributes)
        .node("QuantizeLinear", {"s", "ys", "yz"}, {"bytes"});
    check_same(as_real(contrib), as_real(made_of));
  }
  OnnxBuilder contrib = with_bytes(), made_of = with_bytes();
  contrib.node("QLinearConcat", {"ys", "yz", "x", "xs", "xz", "x", "ys", "yz"}, {"bytes"}, {attribute("axis", std::int64_t{1})}, kContrib);
  made_of.node("DequantizeLinear", {"x", "xs", "xz"}, {"a"}).node("DequantizeLinear", {"x", "ys", "yz"}, {"b"});
  made_of.node("Concat", {"a", "b"}, {"c"}, {attribute("axis", std::int64_t{1})}).node("QuantizeLinear", {"c", "ys", "yz"}, {"bytes"});
  check_same(as_real(contrib), as_real(made_of));
}

TEST_CASE("means, pools and convolutions of bytes, channels second and last") {
  const auto image = [](bool last) {
    OnnxBuilder b;
    b.input("real", last ? Ints{1, 5, 6, 8} : Ints{1, 8, 5, 6});
    b.initializer(tensor("xs", {}, Floats{0.02f})).initializer(raw_tensor("xz", {}, kU8, "\x7f"));
    b.initializer(tensor("ys", {}, Floats{0.01f})).initializer(raw_tensor("yz", {}, kU8, "\x80"));
    b.initializer(raw_tensor("w", {4, 8, 3, 3}, kI8, bytes_of(4 * 8 * 9))).initializer(tensor("ws", {}, Floats{0.001f}));
    b.initializer(raw_tensor("wz", {}, kI8, std::string(1, '\0')));
    b.node("QuantizeLinear", {"real", "xs", "xz"}, {"x"});
    return b;
  };
  const std::vector<std::string> window = {attribute("kernel_shape", Ints{3, 3}), attribute("strides", Ints{2, 1})};
  const std::string last = attribute("channels_last", std::int64_t{1}), axes = attribute("axes", Ints{2, 3}),
                    squeeze = attribute("keepdims", std::int64_t{0});
  const auto around = [&](const std::string& op, std::vector<std::string> inputs, std::vector<std::string> attributes) {
    OnnxBuilder contrib = image(true), made_of = image(true);
    made_of.node("Transpose", {"x"}, {"turned"}, {attribute("perm", Ints{0, 3, 1, 2})});
    std::vector<std::string> turned = inputs;
    turned[0] = "turned";
    made_of.node(op, turned, {"planes"}, attributes, op == "QLinearConv" ? "" : kContrib);
    made_of.node("Transpose", {"planes"}, {"bytes"}, {attribute("perm", Ints{0, 2, 3, 1})});
    attributes.push_back(last);
    contrib.node(op, inputs, {"bytes"}, attributes, kContrib);
    check_same(as_real(contrib), as_real(made_of));
  };
  around("QLinearAveragePool", {"x", "xs", "xz", "ys", "yz"}, window);
  around("QLinearGlobalAveragePool", {"x", "xs", "xz", "ys", "yz"}, {});
  around("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, window);

  OnnxBuilder contrib = image(false), made_of = image(false);
  contrib.node("QLinearReduceMean", {"x", "xs", "xz", "ys", "yz"}, {"bytes"}, {axes, squeeze}, kContrib);
  made_of.node("DequantizeLinear", {"x", "xs", "xz"}, {"r"}).node("ReduceMean", {"r"}, {"m"}, {axes, squeeze});
  made_of.node("QuantizeLinear", {"m", "ys", "yz"}, {"bytes"});
  check_same(as_real(contrib), as_real(made_of));
}

TEST_CASE("an attention of bytes, whose mask states ends, and begins") {
  const std::int64_t heads = 2, hidden = 16, rows = 5;
  const std::int32_t ends[] = {3, 5}, ends_and_begins[] = {4, 5, 1, 0};
  const auto attended = [&](std::span<const std::int32_t> ends_of, bool bytes) {
    OnnxBuilder b;
    b.input("real", {2, rows, hidden}).weight("bias", {3 * hidden}, 0.02f);
    b.initializer(tensor("xs", {}, Floats{0.02f})).initializer(raw_tensor("xz", {}, kU8, "\x7f"));
    b.initializer(raw_tensor("w", {hidden, 3 * hidden}, kI8, bytes_of(hidden * 3 * hidden))).initializer(tensor("ws", {}, Floats{0.002f}));
    b.initializer(raw_tensor("wz", {}, kI8, "\x03"));
    b.initializer(raw_tensor("ends", {static_cast<std::int64_t>(ends_of.size())}, 6,
                             {reinterpret_cast<const char*>(ends_of.data()), ends_of.size_bytes()}));
    b.node("QuantizeLinear", {"real", "xs", "xz"}, {"x"});
    if (bytes) {
      b.node("QAttention", {"x", "w", "bias", "xs", "ws", "ends", "xz", "wz"}, {"y"}, {attribute("num_heads", heads)}, kContrib);
      return b.output("y");
    }
    // The same keys, written out for each batch.
    std::string seen;
    for (std::size_t batch = 0; batch < 2; ++batch)
      for (std::int32_t key = 0; key < rows; ++key)
        seen += {static_cast<char>(key < ends_of[batch] && (ends_of.size() == 2 || key >= ends_of[2 + batch])), '\0', '\0', '\0'};
    b.initializer(raw_tensor("seen", {2, rows}, 6, seen));
    b.node("DequantizeLinear", {"x", "xs", "xz"}, {"xr"}).node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"});
    b.node("Attention", {"xr", "wr", "bias", "seen"}, {"y"}, {attribute("num_heads", heads)}, kContrib);
    return b.output("y");
  };
  check_same(attended(ends, true), attended(ends, false));
  check_same(attended(ends_and_begins, true), attended(ends_and_begins, false));
  const std::int32_t three[] = {1, 2, 3};
  CHECK(refusal(attended(three, true)).find("ends and the begins") != std::string::npos);
}

TEST_CASE("pasts and keys of other shapes than an attention has are refused") {
  const auto attention = [](const Ints& past) {
    OnnxBuilder b;
    b.input("x", {2, 3, 16}).weight("w", {16, 48}).weight("bias", {48}).input("past", past);
    return b.node("Attention", {"x", "w", "bias", "", "past"}, {"y"}, {attribute("num_heads", std::int64_t{2})}, kContrib).output("y");
  };
  CHECK(run(attention({2, 2, 2, 4, 8})).size() == 2 * 3 * 16);
  for (const Ints& past : {Ints{}, Ints{2}, Ints{1, 2, 2, 4, 8}, Ints{3, 2, 2, 4, 8}})
    CHECK(refusal(attention(past)).find("it is [2, batch, heads, rows, size]") != std::string::npos);
  const auto of_heads = [](const Ints& keys, const Ints& past) {
    OnnxBuilder b;
    b.input("q", {2, 3, 16}).input("k", keys).input("v", {2, 5, 16}).input("pk", past).input("pv", past);
    b.initializer(raw_tensor("ends", {2}, 6, std::string("\2\0\0\0\3\0\0\0", 8)));
    return b
        .node("MultiHeadAttention", {"q", "k", "v", "", "ends", "", "pk", "pv"}, {"y"}, {attribute("num_heads", std::int64_t{2})}, kContrib)
        .output("y");
  };
  for (const auto& [keys, past] :
       {std::pair(Ints{}, Ints{2, 2, 4, 8}), std::pair(Ints{5}, Ints{2, 2, 4, 8}), std::pair(Ints{2, 5, 16}, Ints{4})})
    CHECK(refusal(of_heads(keys, past)).find("keys have three axes or four") != std::string::npos);
}

TEST_CASE("embeddings of bytes are embeddings") {
  const std::vector<std::string> names = {"words", "places", "kinds", "scale", "shift"};
  const std::vector<Ints> shapes = {{10, 16}, {6, 16}, {2, 16}, {16}, {16}};
  OnnxBuilder contrib, made_of;
  for (OnnxBuilder* b : {&contrib, &made_of}) {
    b->input("real", {2, 3}).initializer(tensor("one", {}, Floats{1.0f}));
    b->node("Abs", {"real"}, {"size"}).node("Cast", {"size"}, {"ids"}, {attribute("to", std::int64_t{6})});
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::int64_t count = 1;
      for (const std::int64_t extent : shapes[i]) count *= extent;
      b->initializer(raw_tensor(names[i], shapes[i], kU8, bytes_of(count)));
      b->initializer(tensor(names[i] + "_s", {}, Floats{0.01f * static_cast<float>(i + 1)}));
      b->initializer(raw_tensor(names[i] + "_z", {}, kU8, std::string(1, static_cast<char>(100 + i))));
    }
  }
  std::vector<std::string> bytes = {"ids", ""}, reals = {"ids", ""};
  for (const std::string& name : names) {
    bytes.push_back(name);
    reals.push_back(name + "_r");
    made_of.node("DequantizeLinear", {name, name + "_s", name + "_z"}, {name + "_r"});
  }
  bytes.push_back("");
  for (const char* const of : {"_s", "_z"})
    for (const std::string& name : names) bytes.push_back(name + of);
  contrib.node("QEmbedLayerNormalization", bytes, {"y", "ends"}, {}, kContrib);
  made_of.node("EmbedLayerNormalization", reals, {"y", "ends"}, {}, kContrib);
  check_same(contrib.output("y"), made_of.output("y"));
}

TEST_CASE("FusedMatMul turns its factors") {
  OnnxBuilder contrib, made_of;
  for (OnnxBuilder* b : {&contrib, &made_of}) b->input("x", {2, 8, 5}).weight("w", {6, 8}, 0.1f);
  contrib.node("FusedMatMul", {"x", "w"}, {"y"},
               {attribute("transA", std::int64_t{1}), attribute("transB", std::int64_t{1}), attribute("alpha", 0.5f)}, kContrib);
  made_of.node("Transpose", {"x"}, {"xt"}, {attribute("perm", Ints{0, 2, 1})})
      .node("Transpose", {"w"}, {"wt"}, {attribute("perm", Ints{1, 0})});
  made_of.initializer(tensor("half", {}, Floats{0.5f})).node("MatMul", {"xt", "wt"}, {"p"}).node("Mul", {"p", "half"}, {"y"});
  check_same(contrib.output("y"), made_of.output("y"));
}

TEST_CASE("GroupQueryAttention is rotations and an attention with a past") {
  const std::int64_t heads = 4, key_heads = 2, size = 8, past = 3;
  OnnxBuilder contrib(23), made_of(23);
  for (OnnxBuilder* b : {&contrib, &made_of})
    b->input("qkv", {2, 2, (heads + 2 * key_heads) * size})
        .input("pk", {2, key_heads, past, size})
        .input("pv", {2, key_heads, past, size})
        .weight("cos", {9, size / 2}, 0.05f)
        .weight("sin", {9, size / 2}, 0.03f);
  std::int32_t lengths[] = {4, 4};
  const std::int32_t all = 5;
  contrib.initializer(raw_tensor("l", {2}, 6, {reinterpret_cast<const char*>(lengths), sizeof lengths}));
  contrib.initializer(raw_tensor("t", {}, 6, {reinterpret_cast<const char*>(&all), sizeof all}));
  contrib.node("GroupQueryAttention", {"qkv", "", "", "pk", "pv", "l", "t", "cos", "sin"}, {"y"},
               {attribute("num_heads", heads), attribute("kv_num_heads", key_heads), attribute("do_rotary", std::int64_t{1})}, kContrib);
  made_of.initializer(tensor("sizes", {3}, Ints{heads * size, key_heads * size, key_heads * size}))
      .initializer(tensor("at", {2, 2}, Ints{3, 4, 3, 4}));
  made_of.node("Split", {"qkv", "sizes"}, {"q", "k", "v"}, {attribute("axis", std::int64_t{2})});
  made_of.node("RotaryEmbedding", {"q", "cos", "sin", "at"}, {"qr"}, {attribute("num_heads", heads)});
  made_of.node("RotaryEmbedding", {"k", "cos", "sin", "at"}, {"kr"}, {attribute("num_heads", key_heads)});
  made_of.node("Attention", {"qr", "kr", "v", "", "pk", "pv"}, {"y"},
               {attribute("q_num_heads", heads), attribute("kv_num_heads", key_heads), attribute("is_causal", std::int64_t{1})});
  check_same(contrib.output("y"), made_of.output("y"));
}

TEST_CASE("MultiHeadAttention adds a bias to each part") {
  const std::int64_t heads = 2, size = 8;
  OnnxBuilder contrib(23), made_of(23);
  for (OnnxBuilder* b : {&contrib, &made_of})
    b->input("q", {1, 3, heads * size})
        .input("k", {1, 5, heads * size})
        .input("v", {1, 5, heads * size})
        .weight("b", {3 * heads * size}, 0.1f);
  contrib.node("MultiHeadAttention", {"q", "k", "v", "b"}, {"y"}, {attribute("num_heads", heads)}, kContrib);
  made_of.node("Split", {"b"}, {"bq", "bk", "bv"}, {attribute("axis", std::int64_t{0}), attribute("num_outputs", std::int64_t{3})});
  made_of.node("Add", {"q", "bq"}, {"qb"}).node("Add", {"k", "bk"}, {"kb"}).node("Add", {"v", "bv"}, {"vb"});
  made_of.node("Attention", {"qb", "kb", "vb"}, {"y"}, {attribute("q_num_heads", heads), attribute("kv_num_heads", heads)});
  check_same(contrib.output("y"), made_of.output("y"));
}

TEST_CASE("DynamicQuantizeLSTM is an LSTM over what its bytes stand for") {
  const std::int64_t hidden = 8, features = 6;
  OnnxBuilder contrib(21), made_of(21);
  for (OnnxBuilder* b : {&contrib, &made_of}) {
    b->input("x", {3, 2, features}).weight("b", {1, 8 * hidden}, 0.02f).initializer(tensor("s", {1}, Floats{0.004f}));
    b->initializer(raw_tensor("w", {1, features, 4 * hidden}, kI8, bytes_of(features * 4 * hidden)));
    b->initializer(raw_tensor("r", {1, hidden, 4 * hidden}, kI8, bytes_of(hidden * 4 * hidden)));
    b->initializer(raw_tensor("z", {1}, kI8, "\x02"))
        .initializer(raw_tensor("zero", {}, kI8, "\x02"))
        .initializer(tensor("scale", {}, Floats{0.004f}));
  }
  contrib.node("DynamicQuantizeLSTM", {"x", "w", "r", "b", "", "", "", "", "s", "z", "s", "z"}, {"y"}, {attribute("hidden_size", hidden)},
               kContrib);
  for (const std::string name : {"w", "r"}) {
    made_of.node("DequantizeLinear", {name, "scale", "zero"}, {name + "d"});
    made_of.node("Transpose", {name + "d"}, {name + "t"}, {attribute("perm", Ints{0, 2, 1})});
  }
  made_of.node("LSTM", {"x", "wt", "rt", "b"}, {"y"}, {attribute("hidden_size", hidden)});
  check_same(contrib.output("y"), made_of.output("y"));
}

TEST_CASE("forms of few bits that do not run are named") {
  const std::int64_t k = 64, n = 4, block = 32;
  const auto n_bits = [&](const Ints& order, std::int64_t bits) {
    OnnxBuilder b;
    b.input("x", {1, k}).initializer(raw_tensor("B", {n, 2, 16}, kU8, bytes_of(n * 32))).weight("s", {n * 2});
    std::string groups;
    for (const std::int64_t group : order)
      for (int byte = 0; byte < 4; ++byte) groups += static_cast<char>(byte == 0 ? group : 0);
    b.initializer(raw_tensor("g", {static_cast<std::int64_t>(order.size())}, 6, groups));
    const std::vector<std::string> attributes = {attribute("K", k), attribute("N", n), attribute("bits", bits),
                                                 attribute("block_size", block)};
    return b.node("MatMulNBits", {"x", "B", "s", "", order.empty() ? "" : "g"}, {"y"}, attributes, kContrib).output("y");
  };
  Ints plain(static_cast<std::size_t>(k), 0), mixed = plain;
  for (std::size_t i = 32; i < plain.size(); ++i) plain[i] = 1;
  for (std::size_t i = 0; i < mixed.size(); i += 2) mixed[i] = 1;
  CHECK(run(n_bits(plain, 4)) == run(n_bits({}, 4)));
  CHECK(refusal(n_bits(mixed, 4)).find("g_idx") != std::string::npos);
  CHECK(refusal(n_bits({}, 3)).find("supported are 2, 4 and 8") != std::string::npos);

  OnnxBuilder narrow(21);
  narrow.input("x", {4}).initializer(tensor("s", {}, Floats{0.1f})).initializer(raw_tensor("z", {}, 22, "\x01"));
  narrow.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y");
  CHECK(refusal(narrow).find("an input of 4 bits") != std::string::npos);

  OnnxBuilder shared(21);
  shared.input("q", {1, 1, 32}).input("k", {1, 1, 32}).input("v", {1, 1, 32}).input("pk", {1, 2, 9, 16}).input("pv", {1, 2, 9, 16});
  const std::int32_t length = 4;
  shared.initializer(raw_tensor("l", {1}, 6, {reinterpret_cast<const char*>(&length), 4}));
  shared.initializer(raw_tensor("t", {1}, 6, {reinterpret_cast<const char*>(&length), 4}));
  shared.node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "l", "t"}, {"y"},
              {attribute("num_heads", std::int64_t{2}), attribute("kv_num_heads", std::int64_t{2})}, kContrib);
  CHECK(refusal(shared.output("y")).find("shared buffer") != std::string::npos);
}

TEST_CASE("tensors of few bits that do not have their bytes are refused") {
  for (const int type : {21, 22, 25, 26}) {
    OnnxBuilder b(21);
    b.input("x", {1, 3}).initializer(raw_tensor("q", {3, 3}, type, "\1\2")).weight("s", {});
    b.node("DequantizeLinear", {"q", "s"}, {"w"}).node("MatMul", {"x", "w"}, {"y"}).output("y");
    const TemporaryFolder folder;
    Status status;
    convert(folder, b, status);
    REQUIRE_FALSE(status);
    CHECK(status.error().code == ErrorCode::kInvalidModel);
  }
}
