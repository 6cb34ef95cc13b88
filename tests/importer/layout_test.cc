#include "src/importer/rewrite/perm.h"
#include "tests/importer/draft_of.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;

namespace {

Shape physical_shape(const Draft& draft, ValueId value) { return physical(draft.value(value).shape, draft.value(value).layout); }
const std::string kSame = attribute("pads", Ints{1, 1, 1, 1});

}  // namespace

TEST_CASE("a convolution's input and output are NHWC through their ports, without a transpose") {
  OnnxBuilder b;
  b.input("x", {1, 3, 8, 6}).weight("w", {4, 3, 3, 3}).node("Conv", {"x", "w"}, {"y"}, {kSame}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "conv");
  CHECK(physical_shape(result.draft, result.draft.inputs[0].value) == Shape{1, 8, 6, 3});
  CHECK(physical_shape(result.draft, result.draft.outputs[0].value) == Shape{1, 8, 6, 4});
}

TEST_CASE("a flattened feature map reaches a dense layer in its own order, and the layer's features follow") {
  OnnxBuilder b;
  b.input("x", {1, 3, 4, 5}).weight("w", {8, 3, 3, 3}).weight("d", {10, 160});
  b.node("Conv", {"x", "w"}, {"c"}, {kSame}).node("Flatten", {"c"}, {"f"}).node("Dropout", {"f"}, {"o"});
  b.node("Gemm", {"o", "d"}, {"y"}, {attribute("transB", std::int64_t{1})}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv reshape dense");
  CHECK(result.draft.nodes[2].panels->k_inner == 8);
  CHECK(result.draft.nodes[2].panels->k_inner_stride == 20);
}

TEST_CASE("a flattened feature map that is an output keeps ONNX's order") {
  OnnxBuilder b;
  b.input("x", {1, 3, 4, 5}).weight("w", {8, 3, 3, 3});
  b.node("Conv", {"x", "w"}, {"c"}, {kSame}).node("Flatten", {"c"}, {"y"}).output("y");
  CHECK(operators_of(rewritten(b).draft) == "conv transpose reshape");
}

TEST_CASE("global pools flatten without a move") {
  OnnxBuilder b;
  b.input("x", {1, 8, 4, 5}).weight("d", {8, 10}).node("GlobalAveragePool", {"x"}, {"p"}).node("Flatten", {"p"}, {"f"});
  b.node("MatMul", {"f", "d"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "pool reshape dense");
  CHECK(result.draft.nodes[2].panels->k_inner_stride == 0);
}

TEST_CASE("greatest and least values are found in whatever order the axes lie") {
  const auto axes_of = [](const std::vector<std::string>& attributes, const Shape& extents) {
    OnnxBuilder b(13);
    b.input("x", {2, 3, 4, 5}).weight("w", {8, 3, 3, 3}).node("Conv", {"x", "w"}, {"c"}, {kSame});
    const Lowered result = rewritten(b.node("ReduceMax", {"c"}, {"r"}, attributes).node("Relu", {"r"}, {"y"}).output("y"));
    CHECK(operators_of(result.draft) == "conv plain unary");
    CHECK(physical_shape(result.draft, result.draft.nodes[1].output) == extents);
    const auto& arguments = std::get<model::PlainAttributes>(result.draft.nodes[1].attributes).arguments;
    return Ints(arguments.begin() + 1, arguments.begin() + 1 + arguments[0]);
  };
  CHECK(axes_of({attribute("axes", Ints{2, 3})}, Shape{2, 1, 1, 8}) == Ints{1, 2});
  CHECK(axes_of({attribute("axes", Ints{1}), attribute("keepdims", std::int64_t{0})}, Shape{2, 4, 5}) == Ints{3});
  CHECK(axes_of({attribute("axes", Ints{-1}), attribute("keepdims", std::int64_t{0})}, Shape{2, 4, 8}) == Ints{2});
}

TEST_CASE("transposes round NHWC models cancel") {
  OnnxBuilder b;
  b.input("x", {1, 8, 6, 3}).weight("w", {4, 3, 3, 3});
  b.node("Transpose", {"x"}, {"t"}, {attribute("perm", Ints{0, 3, 1, 2})}).node("Conv", {"t", "w"}, {"c"}, {kSame});
  b.node("Transpose", {"c"}, {"y"}, {attribute("perm", Ints{0, 2, 3, 1})}).output("y");
  const Lowered result = rewritten(b);
  CHECK(operators_of(result.draft) == "conv");
  const Value& out = result.draft.value(result.draft.outputs[0].value);
  CHECK(out.shape == Shape{1, 8, 6, 4});
  CHECK(equal(out.layout, kIdentityPerm, 4));
}

TEST_CASE("axes follow the order: concat, softmax over channels, slice, pad, resize") {
  OnnxBuilder b;
  b.input("x", {1, 4, 6, 8}).weight("w", {4, 4, 1, 1}).initializer(tensor("scales", {4}, Floats{1, 1, 2, 2}));
  b.initializer(tensor("pads", {8}, Ints{0, 0, 0, 1, 0, 0, 0, 2}))
      .initializer(tensor("start", {1}, Ints{1}))
      .initializer(tensor("end", {1}, Ints{3}));
  b.initializer(tensor("axis", {1}, Ints{1}));
  b.node("Conv", {"x", "w"}, {"c"}).node("Concat", {"c", "x"}, {"k"}, {attribute("axis", std::int64_t{1})});
  b.node("Slice", {"k", "start", "end", "axis"}, {"s"}).node("Pad", {"s", "pads"}, {"p"}).node("Resize", {"p", "", "scales"}, {"r"});
  b.node("Softmax", {"r"}, {"y"}, {attribute("axis", std::int64_t{1})}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv concat slice pad resize softmax");
  CHECK(std::get<model::AxisAttributes>(result.draft.nodes[1].attributes).axis == 3);
  CHECK(std::get<model::SliceAttributes>(result.draft.nodes[2].attributes).start[3] == 1);
  CHECK(std::get<model::PadAttributes>(result.draft.nodes[3].attributes).before[2] == 1);
  CHECK(std::get<model::ResizeAttributes>(result.draft.nodes[4].attributes).scale[2] == 2.0f);
  CHECK(std::get<model::ResizeAttributes>(result.draft.nodes[4].attributes).scale[3] == 1.0f);
}

TEST_CASE("a constant of lower rank broadcasts in the new order") {
  OnnxBuilder b;
  b.input("x", {1, 4, 6, 8}).weight("w", {4, 4, 1, 1}).weight("row", {8}).node("Conv", {"x", "w"}, {"c"}).node("Tanh", {"c"}, {"t"});
  b.node("Mul", {"t", "row"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "conv binary");
  CHECK(physical_shape(result.draft, result.draft.nodes[1].inputs[1]) == Shape{1, 1, 8, 1});
}

TEST_CASE("an operand of fewer axes gets all of an image's, unless it is a single row") {
  OnnxBuilder b;
  b.input("x", {1, 4, 6, 8}).weight("gain", {4, 1, 1}).weight("mask", {6, 8}).weight("row", {8});
  b.node("Mul", {"x", "gain"}, {"a"}).node("Add", {"a", "mask"}, {"m"}).node("Sub", {"m", "row"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "binary binary binary");
  CHECK(physical_shape(result.draft, result.draft.nodes[0].inputs[1]) == Shape{1, 4, 1, 1});
  CHECK(physical_shape(result.draft, result.draft.nodes[1].inputs[1]) == Shape{1, 1, 6, 8});
  CHECK(physical_shape(result.draft, result.draft.nodes[2].inputs[1]) == Shape{8});
}

TEST_CASE("a channel shuffle moves bytes once") {
  OnnxBuilder b;
  b.input("x", {1, 8, 4, 4})
      .weight("w", {8, 8, 1, 1})
      .initializer(tensor("split", {5}, Ints{1, 2, 4, 4, 4}))
      .initializer(tensor("join", {4}, Ints{1, 8, 4, 4}));
  b.node("Conv", {"x", "w"}, {"c"})
      .node("Reshape", {"c", "split"}, {"s"})
      .node("Transpose", {"s"}, {"t"}, {attribute("perm", Ints{0, 2, 1, 3, 4})});
  b.node("Reshape", {"t", "join"}, {"j"}).node("Conv", {"j", "w"}, {"y"}).output("y");
  CHECK(operators_of(rewritten(b).draft) == "conv reshape transpose reshape conv");
}

TEST_CASE("reshapes translate orders of axes where the bytes can stay") {
  const ReshapeMap map({1, 8, 4, 4}, {1, 2, 4, 4, 4});
  CHECK(map.forward({2, 3, 1}) == std::vector<int>{3, 4, 1, 2});
  CHECK(map.backward({3, 4, 1, 2}) == std::vector<int>{2, 3, 1});
  CHECK(map.backward({1, 3, 4, 2}) == std::nullopt);
  const ReshapeMap flatten({1, 8, 4, 4}, {1, 128});
  CHECK(flatten.forward({2, 3, 1}) == std::nullopt);
  CHECK(flatten.forward({1, 2, 3}) == std::vector<int>{1});
}
