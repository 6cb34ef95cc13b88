#include "src/importer/lowering.h"

#include "tests/importer/draft_of.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

/// Shape of the first output of a one-node file with input x of `dims`.
Shape shape_of(const std::string& op, const Ints& dims, const std::vector<std::string>& attributes, int opset = 13) {
  const Lowered result = lowered(OnnxBuilder(opset).input("x", dims).node(op, {"x"}, {"y"}, attributes).output("y"));
  for (const Problem& problem : result.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(result.problems.empty());
  return result.draft.value(result.draft.outputs[0].value).shape;
}

Lowered conv(const Ints& x, const Ints& w, const std::vector<std::string>& attributes, const std::string& op = "Conv") {
  return lowered(OnnxBuilder().input("x", x).weight("w", w).node(op, {"x", "w"}, {"y"}, attributes).output("y"));
}
Shape conv_shape(const Ints& x, const Ints& w, const std::vector<std::string>& attributes, const std::string& op = "Conv") {
  const Lowered result = conv(x, w, attributes, op);
  for (const Problem& problem : result.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(result.problems.empty());
  return result.draft.value(result.draft.outputs[0].value).shape;
}

}  // namespace

TEST_CASE("convolutions: pads, auto_pad, strides, dilations, groups, one dimension") {
  CHECK(conv_shape({1, 3, 9, 8}, {4, 3, 3, 3}, {}) == Shape{1, 4, 7, 6});
  CHECK(conv_shape({1, 3, 9, 8}, {4, 3, 3, 3}, {attribute("pads", Ints{1, 0, 2, 1}), attribute("strides", Ints{2, 1})}) ==
        Shape{1, 4, 5, 7});
  CHECK(conv_shape({1, 3, 9, 8}, {4, 3, 3, 3}, {attribute("dilations", Ints{2, 2})}) == Shape{1, 4, 5, 4});
  CHECK(conv_shape({1, 3, 9, 8}, {4, 3, 3, 3}, {attribute("auto_pad", "SAME_UPPER"), attribute("strides", Ints{2, 2})}) ==
        Shape{1, 4, 5, 4});
  CHECK(conv_shape({1, 4, 9, 8}, {6, 2, 1, 1}, {attribute("group", std::int64_t{2})}) == Shape{1, 6, 9, 8});
  CHECK(conv_shape({1, 3, 20}, {4, 3, 5}, {attribute("strides", Ints{3})}) == Shape{1, 4, 6});
  const Lowered same = conv({1, 1, 8, 8}, {1, 1, 2, 2}, {attribute("auto_pad", "SAME_LOWER")});
  const auto& window = std::get<model::ConvAttributes>(same.draft.nodes[0].attributes).window;
  CHECK((window.pad_top == 1 && window.pad_bottom == 0));
}

TEST_CASE("transposed convolutions: output_padding, output_shape, groups") {
  const std::vector<std::string> stride{attribute("strides", Ints{2, 2})};
  CHECK(conv_shape({1, 3, 4, 5}, {3, 6, 3, 3}, stride, "ConvTranspose") == Shape{1, 6, 9, 11});
  CHECK(conv_shape({1, 3, 4, 5}, {3, 6, 3, 3}, {stride[0], attribute("output_padding", Ints{1, 1}), attribute("pads", Ints{1, 1, 1, 1})},
                   "ConvTranspose") == Shape{1, 6, 8, 10});
  CHECK(conv_shape({1, 3, 4, 5}, {3, 6, 3, 3}, {stride[0], attribute("output_shape", Ints{8, 9})}, "ConvTranspose") == Shape{1, 6, 8, 9});
  CHECK(conv_shape({1, 4, 4, 4}, {4, 3, 2, 2}, {stride[0], attribute("group", std::int64_t{2})}, "ConvTranspose") == Shape{1, 6, 8, 8});
}

TEST_CASE("convolutions of other ranks are refused, or left to the long tail") {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    CHECK(conv({2, 3}, {3, 3}, {}, op).problems.size() == 1);
    CHECK(operators_of(conv({1, 3, 4, 4, 4, 4}, {3, 3, 2, 2, 2, 2}, {}, op).draft) == "plain");
  }
  CHECK(operators_of(conv({1, 3, 4, 4, 4}, {3, 3, 2, 2, 2}, {}, "ConvTranspose").draft) == "plain");
}

TEST_CASE("a convolution of one column is that of a row") {
  const auto column = conv({1, 3, 20, 1}, {4, 3, 5, 1}, {attribute("pads", Ints{1, 0, 2, 0}), attribute("strides", Ints{2, 1})});
  REQUIRE(operators_of(column.draft) == "reshape conv reshape");
  const auto& window = std::get<model::ConvAttributes>(column.draft.nodes[1].attributes).window;
  CHECK((window.kernel_h == 1 && window.kernel_w == 5 && window.stride_w == 2 && window.pad_left == 1 && window.pad_right == 2));
  CHECK(column.draft.value(column.draft.outputs[0].value).shape == Shape{1, 4, 10, 1});
  CHECK(operators_of(conv({1, 3, 20, 1}, {4, 3, 1, 1}, {}).draft) == "conv");
}

TEST_CASE("convolutions of volumes: columns for a kernel along the depth, planes for others, a sum of them for all three axes") {
  const auto operators = [](const Ints& w, const std::vector<std::string>& attributes) {
    const Lowered result = conv({1, 3, 4, 5, 6}, w, attributes);
    return operators_of(result.draft) + " " + result.draft.value(result.draft.outputs[0].value).shape.to_string();
  };
  CHECK(operators({2, 3, 1, 1, 1}, {}) == "reshape conv reshape 1x2x4x5x6");
  CHECK(operators({2, 3, 3, 1, 1}, {attribute("pads", Ints{1, 0, 0, 1, 0, 0})}) == "reshape conv reshape 1x2x4x5x6");
  CHECK(operators({2, 3, 1, 3, 3}, {}) == "transpose reshape conv reshape transpose 1x2x4x3x4");
  // Of few channels the taps of the depth are channels.
  CHECK(operators({2, 3, 2, 3, 3}, {}) == "slice transpose reshape slice transpose reshape concat conv reshape transpose 1x2x3x3x4");
  const Lowered many = conv({1, 40, 4, 5, 6}, {2, 40, 2, 3, 3}, {});
  CHECK(operators_of(many.draft) == "slice transpose reshape conv slice transpose reshape conv binary reshape transpose");
}

TEST_CASE("pools: ceil_mode keeps a window only if it begins on the image or its leading padding") {
  const std::string kernel = attribute("kernel_shape", Ints{2, 2}), ceil = attribute("ceil_mode", std::int64_t{1});
  const std::string stride = attribute("strides", Ints{2, 2});
  CHECK(shape_of("MaxPool", {1, 2, 5, 5}, {kernel, stride}) == Shape{1, 2, 2, 2});
  CHECK(shape_of("MaxPool", {1, 2, 5, 5}, {kernel, stride, ceil}) == Shape{1, 2, 3, 3});
  CHECK(shape_of("MaxPool", {1, 1, 2, 2}, {attribute("kernel_shape", Ints{1, 1}), stride, ceil}) == Shape{1, 1, 1, 1});
  CHECK(shape_of("AveragePool", {1, 2, 7}, {attribute("kernel_shape", Ints{3})}) == Shape{1, 2, 5});
  CHECK(shape_of("GlobalAveragePool", {2, 3, 7, 5}, {}) == Shape{2, 3, 1, 1});
  CHECK(shape_of("ReduceMean", {2, 3, 7, 5}, {attribute("axes", Ints{2, 3}), attribute("keepdims", std::int64_t{0})}) == Shape{2, 3});
  CHECK(shape_of("ReduceMean", {2, 6, 5}, {attribute("axes", Ints{-1})}) == Shape{2, 6, 1});
}

TEST_CASE("shape arithmetic is folded: flattening by Shape, Gather, Unsqueeze, Concat and Reshape") {
  OnnxBuilder b(11);
  b.input("x", {2, 3, 4, 5}).initializer(tensor("zero", {}, Ints{0})).initializer(tensor("minus", {1}, Ints{-1}));
  b.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n"}).node("Unsqueeze", {"n"}, {"n1"}, {attribute("axes", Ints{0})});
  b.node("Concat", {"n1", "minus"}, {"to"}, {attribute("axis", std::int64_t{0})}).node("Reshape", {"x", "to"}, {"y"}).output("y");
  const Lowered result = lowered(b);
  REQUIRE(result.problems.empty());
  CHECK(operators_of(result.draft) == "reshape");
  CHECK(result.draft.value(result.draft.outputs[0].value).shape == Shape{2, 60});
}

TEST_CASE("resize sizes by arithmetic on shapes") {
  OnnxBuilder b(13);
  b.input("x", {1, 2, 5, 7})
      .initializer(tensor("two", {1}, Ints{2}))
      .initializer(tensor("from", {1}, Ints{2}))
      .initializer(tensor("to", {1}, Ints{4}));
  b.node("Shape", {"x"}, {"s"}).node("Slice", {"s", "from", "to"}, {"hw"}).node("Mul", {"hw", "two"}, {"hw2"});
  b.initializer(tensor("nc", {2}, Ints{1, 2})).node("Concat", {"nc", "hw2"}, {"sizes"}, {attribute("axis", std::int64_t{0})});
  b.node("Resize", {"x", "", "", "sizes"}, {"y"}, {attribute("mode", "linear")}).output("y");
  const Lowered result = lowered(b);
  REQUIRE(result.problems.empty());
  CHECK(result.draft.value(result.draft.outputs[0].value).shape == Shape{1, 2, 10, 14});
}

TEST_CASE("free dimensions: named when unbound, bound by name, by place where they have none") {
  OnnxBuilder b;
  b.free_input("x", "batch", {3}).node("Relu", {"x"}, {"y"}).output("y");
  const Lowered unbound = lowered(b);
  REQUIRE(unbound.problems.size() == 1);
  CHECK(unbound.problems[0].message.find("--dim batch=") != std::string::npos);
  const Lowered bound = lowered(b, {{"batch", 4}});
  REQUIRE(bound.problems.empty());
  CHECK(bound.draft.value(bound.draft.inputs[0].value).shape == Shape{4, 3});
  OnnxBuilder nameless;
  nameless.input("x", {-1, 3}).node("Relu", {"x"}, {"y"}).output("y");
  REQUIRE(lowered(nameless).problems.size() == 1);
  CHECK(lowered(nameless, {{"x.0", 2}}).problems.empty());
  CHECK(lowered(nameless, {{"x.0", 2}, {"typo", 2}}).problems.size() == 1);
}

TEST_CASE("an extent that the file states is replaced by place: a batch for an export with a batch of one") {
  OnnxBuilder b;
  b.input("x", {1, 3}).node("Relu", {"x"}, {"y"}).output("y");
  const Lowered batch = lowered(b, {{"x.0", 4}});
  REQUIRE(batch.problems.empty());
  CHECK(batch.draft.value(batch.draft.outputs[0].value).shape == Shape{4, 3});
  CHECK(lowered(b, {{"x.2", 4}}).problems.size() == 1);
}

TEST_CASE("all problems of a file are reported, each once, with node and operator") {
  OnnxBuilder b;
  b.input("x", {1, 4}).node("NoSuch", {"x"}, {"a"}).node("Relu", {"a"}, {"b"}).node("FusedThing", {"x"}, {"c"}, {}, "com.example");
  b.node("Softmax", {"x"}, {"d"}, {attribute("axis", std::int64_t{7})}).node("Add", {"b", "d"}, {"y"}).output("y");
  const Lowered result = lowered(b);
  REQUIRE(result.problems.size() == 3);
  CHECK(result.problems[0].op_type == "NoSuch");
  CHECK(result.problems[0].node == "NoSuch_a");
  CHECK(result.problems[1].op_type == "com.example::FusedThing");
  CHECK(result.problems[2].code == ErrorCode::kInvalidModel);
  CHECK(result.problems[2].opset == 13);
}

TEST_CASE("softmax before opset 13 runs over all axes from its own on") {
  const Lowered old = lowered(OnnxBuilder(11).input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}).output("y"));
  CHECK(operators_of(old.draft) == "reshape softmax reshape");
  const Lowered now = lowered(OnnxBuilder(13).input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}).output("y"));
  CHECK(operators_of(now.draft) == "softmax");
  CHECK(now.draft.nodes[0].axis == 2);
}

TEST_CASE("nodes may stand in any order") {
  OnnxBuilder b;
  b.input("x", {1, 4}).node("Tanh", {"a"}, {"y"}).node("Relu", {"x"}, {"a"}).output("y");
  CHECK(operators_of(lowered(b).draft) == "unary unary");
}

TEST_CASE("a weight filled by ConstantOfShape stays one value") {
  OnnxBuilder b(9);
  b.input("x", {1, 4096}).initializer(tensor("shape", {2}, Ints{4096, 4096}));
  b.node("ConstantOfShape", {"shape"}, {"w"}, {tensor_attribute("value", tensor("", {1}, Floats{0.5f}))});
  b.node("MatMul", {"x", "w"}, {"y"}).output("y");
  const Lowered result = lowered(b);
  REQUIRE(result.draft.nodes.size() == 1);
  REQUIRE(result.draft.nodes[0].panels);
  CHECK(uniform_value(result.draft.nodes[0].panels->values) == 0.5);
}

TEST_CASE("the operator table is in order and without doubles") {
  const auto table = operator_table();
  for (std::size_t i = 1; i < table.size(); ++i) CHECK(table[i - 1].op_type < table[i].op_type);
}
