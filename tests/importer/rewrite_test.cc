#include "src/importer/rewrite/rewrite.h"

#include "tests/importer/draft_of.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;
using model::Function;

namespace {

/// x [1, 4, 6, 6] -> Conv 4 -> c; more nodes follow.
OnnxBuilder conv_builder(int opset = 13) {
  OnnxBuilder b(opset);
  b.input("x", {1, 4, 6, 6}).weight("w", {4, 4, 1, 1}).node("Conv", {"x", "w"}, {"c"});
  return b;
}

void add_batch_norm(OnnxBuilder& b, const std::string& from, const std::string& to, std::int64_t channels) {
  const std::string p = to + ".";
  b.weight(p + "scale", {channels}, 0.1f).weight(p + "shift", {channels}).weight(p + "mean", {channels});
  Floats variance(static_cast<std::size_t>(channels), 0.25f);
  b.initializer(tensor(p + "var", {channels}, variance));
  b.node("BatchNormalization", {from, p + "scale", p + "shift", p + "mean", p + "var"}, {to}, {attribute("epsilon", 0.0f)});
}

model::Activation activation_of(const Draft& draft) { return draft.nodes.back().epilogue.activation; }

}  // namespace

TEST_CASE("batch-norm moves into the convolution, its bias and its scale") {
  OnnxBuilder b = conv_builder();
  add_batch_norm(b, "c", "n", 4);
  b.node("Relu", {"n"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv");
  const DraftNode& node = result.draft.nodes[0];
  CHECK(node.epilogue.activation.function == Function::kRelu);
  REQUIRE(node.epilogue.has_bias);
  const Floats scale = ramp(4, 0.1f), shift = ramp(4), mean = ramp(4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(node.panels->scale[i] == Approx(scale[i] * 2));
    CHECK(node.bias[i] == Approx(shift[i] - mean[i] * scale[i] * 2));
  }
  CHECK(operators_of(rewritten(b, false).draft) == "conv affine unary");
}

TEST_CASE("batch-norm that no convolution takes stays, with its activation") {
  OnnxBuilder b;
  b.input("x", {1, 4, 6, 6});
  add_batch_norm(b, "x", "n", 4);
  b.node("Relu", {"n"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "affine");
  CHECK(activation_of(result.draft).function == Function::kRelu);
}

TEST_CASE("additions and products by constants per channel are bias and scale") {
  OnnxBuilder b = conv_builder();
  b.weight("k", {1, 4, 1, 1}).weight("m", {4, 1, 1}).node("Add", {"k", "c"}, {"d"}).node("Mul", {"d", "m"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv");
  CHECK(result.draft.nodes[0].bias[1] == Approx(ramp(4)[1] * ramp(4)[1]));
  OnnxBuilder full = conv_builder();
  full.weight("k", {1, 4, 6, 6}).node("Add", {"c", "k"}, {"y"}).output("y");
  CHECK(operators_of(rewritten(full).draft) == "conv binary");
}

TEST_CASE("a value that somebody else reads is not folded away") {
  OnnxBuilder b = conv_builder();
  b.node("Relu", {"c"}, {"y"}).output("y").output("c");
  CHECK(operators_of(rewritten(b).draft) == "conv unary");
}

TEST_CASE("a residual addition and its activation join the later convolution") {
  OnnxBuilder b = conv_builder();
  b.weight("v", {4, 4, 3, 3}).node("Relu", {"c"}, {"r"}).node("Conv", {"r", "v"}, {"d"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Add", {"d", "r"}, {"s"}).node("Relu", {"s"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv conv");
  const DraftNode& node = result.draft.nodes[1];
  CHECK(node.epilogue.has_residual);
  CHECK(node.inputs.size() == 2);
  CHECK(node.inputs[1] == result.draft.nodes[0].output);
  CHECK(node.epilogue.activation.function == Function::kRelu);
}

TEST_CASE("a convolution may move behind a later value to take it as residual") {
  OnnxBuilder b = conv_builder();
  b.node("MaxPool", {"x"}, {"p"}, {attribute("kernel_shape", Ints{1, 1})}).node("Add", {"c", "p"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "pool conv");
  CHECK(result.draft.nodes[1].epilogue.has_residual);
}

TEST_CASE("an addition that broadcasts is no residual") {
  OnnxBuilder b = conv_builder();
  b.node("GlobalAveragePool", {"x"}, {"p"}).node("Add", {"c", "p"}, {"y"}).output("y");
  CHECK(operators_of(rewritten(b).draft) == "conv pool binary");
}

TEST_CASE("activations written out are recognised") {
  const Floats three{3.0f}, six{6.0f}, sixth{1.0f / 6.0f};
  SECTION("SiLU") {
    OnnxBuilder b = conv_builder();
    b.node("Sigmoid", {"c"}, {"s"}).node("Mul", {"s", "c"}, {"y"}).output("y");
    const Lowered result = rewritten(b);
    CHECK(operators_of(result.draft) == "conv");
    CHECK(activation_of(result.draft).function == Function::kSilu);
  }
  SECTION("x * HardSigmoid(x)") {
    OnnxBuilder b = conv_builder();
    b.node("HardSigmoid", {"c"}, {"s"}, {attribute("alpha", 1.0f / 6.0f)}).node("Mul", {"c", "s"}, {"y"}).output("y");
    CHECK(activation_of(rewritten(b).draft).function == Function::kHardSwish);
  }
  SECTION("x * Clip(x + 3, 0, 6) / 6, in both orders") {
    for (const bool divide_first : {true, false}) {
      OnnxBuilder b = conv_builder();
      b.initializer(tensor("three", {}, three)).initializer(tensor("six", {}, six)).initializer(tensor("zero", {}, Floats{0.0f}));
      b.node("Add", {"c", "three"}, {"a"}).node("Clip", {"a", "zero", "six"}, {"k"});
      if (divide_first)
        b.node("Div", {"k", "six"}, {"d"}).node("Mul", {"c", "d"}, {"y"});
      else
        b.node("Mul", {"c", "k"}, {"d"}).node("Div", {"d", "six"}, {"y"});
      b.output("y");
      const Lowered result = rewritten(b);
      CHECK(operators_of(result.draft) == "conv");
      CHECK(activation_of(result.draft).function == Function::kHardSwish);
    }
  }
  SECTION("Clip(x + 3, 0, 6) * (1 / 6) alone") {
    OnnxBuilder b = conv_builder();
    b.initializer(tensor("three", {}, three)).initializer(tensor("six", {}, six)).initializer(tensor("zero", {}, Floats{0.0f}));
    b.initializer(tensor("sixth", {}, sixth)).node("Add", {"c", "three"}, {"a"}).node("Clip", {"a", "zero", "six"}, {"k"});
    b.node("Mul", {"k", "sixth"}, {"y"}).output("y");
    CHECK(activation_of(rewritten(b).draft).function == Function::kHardSigmoid);
  }
  SECTION("another factor is no such pattern") {
    OnnxBuilder b = conv_builder();
    b.node("Sigmoid", {"c"}, {"s"}).node("Mul", {"s", "x"}, {"y"}).output("y");
    CHECK(operators_of(rewritten(b).draft) == "conv binary");
  }
}

TEST_CASE("a zero border becomes padding of the convolution") {
  OnnxBuilder b;
  b.input("x", {1, 4, 6, 6}).weight("w", {4, 4, 3, 3}).initializer(tensor("pads", {8}, Ints{0, 0, 0, 1, 0, 0, 1, 2}));
  b.node("Pad", {"x", "pads"}, {"p"}).node("Conv", {"p", "w"}, {"y"}, {attribute("strides", Ints{2, 2})}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv");
  const auto& window = std::get<model::ConvAttributes>(result.draft.nodes[0].attributes).window;
  CHECK((window.pad_top == 0 && window.pad_left == 1 && window.pad_bottom == 1 && window.pad_right == 2));
  CHECK((window.in_h == 6 && window.in_w == 6));
}

TEST_CASE("taps that meet padding alone go, and nothing else of the convolution changes") {
  const auto window_of = [](const Ints& image, const Ints& kernel, const std::vector<std::string>& attributes) {
    OnnxBuilder b;
    b.input("x", image).weight("w", kernel).node("Conv", {"x", "w"}, {"y"}, attributes).output("y");
    const Lowered result = rewritten(b);
    REQUIRE(operators_of(result.draft) == "conv");
    const DraftNode& conv = result.draft.nodes[0];
    const auto window = std::get<model::ConvAttributes>(conv.attributes).window;
    CHECK(conv.panels->values.shape == Shape{kernel[0], kernel[1], window.kernel_h, window.kernel_w});
    return window;
  };
  const auto pads = [](std::int64_t rows, std::int64_t columns) { return attribute("pads", Ints{rows, columns, rows, columns}); };
  const auto dilation = [](std::int64_t both) { return attribute("dilations", Ints{both, both}); };

  // A column of pixels: of five columns of taps only the middle one meets it.
  const model::Window column = window_of({1, 4, 9, 1}, {8, 4, 5, 5}, {pads(2, 2)});
  CHECK((column.kernel_h == 5 && column.kernel_w == 1 && column.pad_top == 2 && column.pad_left == 0 && column.pad_right == 0));
  // A dilation that reaches over the map leaves the centre.
  const model::Window centre = window_of({1, 4, 6, 7}, {8, 4, 3, 3}, {pads(12, 12), dilation(12)});
  CHECK((centre.kernel_h == 1 && centre.kernel_w == 1 && centre.pad_top == 0 && centre.pad_bottom == 0 && centre.pad_left == 0));
  // One that reaches across it from one border only: both outer taps are busy.
  const model::Window busy = window_of({1, 4, 6, 7}, {8, 4, 3, 3}, {pads(5, 5), dilation(5)});
  CHECK((busy.kernel_h == 3 && busy.kernel_w == 3 && busy.pad_top == 5));
  // A stride that skips the only input which a tap could meet.
  const model::Window skipped =
      window_of({1, 4, 2, 8}, {8, 4, 4, 1}, {attribute("pads", Ints{1, 0, 1, 0}), attribute("strides", Ints{3, 1})});
  CHECK((skipped.kernel_h == 2 && skipped.pad_top == 0 && skipped.pad_bottom == 0 && skipped.out_h == 1));
  // Uneven columns of several rows: the kernel is copied.
  const model::Window copied = window_of({1, 4, 9, 2}, {8, 4, 3, 5}, {pads(1, 2)});
  CHECK((copied.kernel_h == 3 && copied.kernel_w == 3 && copied.pad_left == 1 && copied.pad_right == 1));
}

TEST_CASE("one-dimensional convolutions meet without a reshape between them") {
  OnnxBuilder b;
  b.input("x", {1, 4, 16}).weight("w", {8, 4, 3}).weight("v", {8, 8, 3});
  b.node("Conv", {"x", "w"}, {"c"});
  add_batch_norm(b, "c", "n", 8);
  b.node("Relu", {"n"}, {"r"}).node("Conv", {"r", "v"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "reshape conv conv reshape");
  CHECK(result.draft.nodes[1].epilogue.activation.function == Function::kRelu);
}

TEST_CASE("what nobody reads is dropped") {
  OnnxBuilder b = conv_builder();
  b.node("Tanh", {"c"}, {"unused"}).node("Relu", {"x"}, {"y"}).output("y");
  CHECK(operators_of(rewritten(b).draft) == "unary");
}
