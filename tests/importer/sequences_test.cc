// Sequences and optionals, which convert takes apart; and words for what it does not take: types, domains, casts.
#include <catch2/catch.hpp>

#include "tests/importer/made.h"

using namespace sluice;
using namespace sluice::test;

namespace {

std::string number(const std::string& name, std::int64_t value) { return tensor(name, {}, Ints{value}); }

std::string problems_of(const Made& m) {
  std::string text;
  for (const importer::Problem& problem : m.report.problems) text += problem.op_type + ": " + problem.message + "\n";
  return text;
}

std::size_t nodes_of(const Made& m) { return m.model->graph().nodes.size(); }

/// a, b, c of two values each, and the numbers 0 to 2.
OnnxBuilder three_inputs() {
  OnnxBuilder b;
  for (const char* name : {"a", "b", "c"}) b.input(name, {2});
  b.initializer(number("zero", 0)).initializer(number("one", 1)).initializer(number("last", -1));
  return b;
}

void run_three(Made& m) {
  INFO(problems_of(m));
  REQUIRE(m.status);
  for (std::size_t i = 0; i < m.model->graph().inputs.size(); ++i)
    m.set(i, DType::kF32, Floats{1 + 2.0f * static_cast<float>(i), 2 + 2.0f * static_cast<float>(i)});
  REQUIRE(m.session->run());
}

}  // namespace

TEST_CASE("a sequence is built, changed and joined at convert: what is left is one concatenation") {
  OnnxBuilder b = three_inputs();
  b.node("SequenceConstruct", {"a", "b"}, {"s"}).node("SequenceInsert", {"s", "c", "zero"}, {"t"});
  b.node("SequenceErase", {"t", "last"}, {"u"}).node("SequenceInsert", {"u", "b"}, {"v"});
  b.node("ConcatFromSequence", {"v"}, {"y"}, {attribute("axis", std::int64_t{0})}).output("y");
  Made m(b);
  run_three(m);
  CHECK(m.get<float>() == Floats{5, 6, 1, 2, 3, 4});
  CHECK(nodes_of(m) == 1);
}

TEST_CASE("an item and the length of a sequence, tensors joined along a new axis") {
  OnnxBuilder b = three_inputs();
  b.node("SequenceConstruct", {"a", "b", "c"}, {"s"}).node("SequenceAt", {"s", "last"}, {"item"}).node("SequenceLength", {"s"}, {"count"});
  b.node("ConcatFromSequence", {"s"}, {"stacked"}, {attribute("axis", std::int64_t{1}), attribute("new_axis", std::int64_t{1})});
  b.node("Neg", {"item"}, {"y"}).output("y").output("stacked").output("count", kI64);
  Made m(b);
  run_three(m);
  CHECK(m.get<float>(0) == Floats{-5, -6});
  CHECK(m.get<float>(1) == Floats{1, 3, 5, 2, 4, 6});
  CHECK(m.get<std::int64_t>(2) == Ints{3});
}

TEST_CASE("a tensor is split into a sequence, by one length, by each length, or into places without their axis") {
  const auto split = [](const Ints* lengths, bool one_length, bool keeps) {
    OnnxBuilder b;
    b.input("x", {5, 2});
    std::vector<std::string> inputs = {"x"};
    if (lengths != nullptr) {
      b.initializer(tensor("lengths", one_length ? Ints{} : Ints{static_cast<std::int64_t>(lengths->size())}, *lengths));
      inputs.emplace_back("lengths");
    }
    b.node("SplitToSequence", inputs, {"s"}, {attribute("axis", std::int64_t{0}), attribute("keepdims", std::int64_t{keeps ? 1 : 0})});
    return b.sequence_output("s");
  };
  const Ints twos{2}, parts{1, 4};
  Made places(split(nullptr, false, true));
  INFO(problems_of(places));
  REQUIRE(places.status);
  CHECK(places.model->graph().outputs.size() == 5);
  Made m(split(&twos, true, true));
  REQUIRE(m.status);
  m.set(0, DType::kF32, Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  REQUIRE(m.session->run());
  REQUIRE(m.model->graph().outputs.size() == 3);
  CHECK(m.model->graph().outputs[2].name == "s.2");
  CHECK(m.get<float>(1) == Floats{4, 5, 6, 7});
  CHECK(m.get<float>(2) == Floats{8, 9});
  Made by_parts(split(&parts, false, true));
  REQUIRE(by_parts.status);
  CHECK(by_parts.model->graph().outputs[1].onnx_shape.to_string() == "4x2");
  Made rows(split(nullptr, false, false));
  REQUIRE(rows.status);
  CHECK(rows.model->graph().outputs[4].onnx_shape.to_string() == "2");
}

TEST_CASE("pieces that do not make up their axis are refused, and billions of them before there is a list; an axis of nothing has none") {
  const auto split = [](std::int64_t extent, const Ints& shape, const Ints& lengths) {
    OnnxBuilder b;
    b.input("x", {extent}).initializer(tensor("lengths", shape, lengths)).initializer(number("zero", 0));
    b.node("SplitToSequence", {"x", "lengths"}, {"s"}, {attribute("axis", std::int64_t{0})});
    return b.node("SequenceAt", {"s", "zero"}, {"y"}).output("y");
  };
  CHECK(problems_of(Made(split(6, {1}, {4}))).find("leave 2 of the axis of 6 out") != std::string::npos);
  CHECK(problems_of(Made(split(6, {2}, {9, -3}))).find("longer than the axis of 6, or negative") != std::string::npos);
  const Made many(split(4'000'000'000, {}, {1}));
  CHECK(problems_of(many).find("--max-constants") != std::string::npos);
  Made whole(split(6, {}, {INT64_MAX}));
  INFO(problems_of(whole));
  CHECK(whole.status);

  OnnxBuilder b;
  b.input("x", {6}).initializer(tensor("none", {1}, Ints{0})).node("Slice", {"x", "none", "none"}, {"empty"});
  b.node("SplitToSequence", {"empty"}, {"s"}).node("SequenceLength", {"s"}, {"y"}).output("y", kI64);
  Made m(b);
  INFO(problems_of(m));
  REQUIRE(m.status);
  m.set(0, DType::kF32, Floats(6));
  REQUIRE(m.session->run());
  CHECK(m.get<std::int64_t>() == Ints{0});
}

TEST_CASE("a sequence among the inputs has as many tensors as --dim says, and SequenceMap runs its body on each") {
  OnnxBuilder body;
  body.node("Mul", {"item", "factor"}, {"product"}).output("product");
  body.input("item", {2}).input("factor", {2});
  OnnxBuilder b;
  b.sequence_input("s", {2}).input("f", {2}).node("SequenceMap", {"s", "f"}, {"t"}, {attribute("body", body)}).sequence_output("t");
  const Made unbound(b);
  CHECK(problems_of(unbound).find("it is a sequence; how many tensors it has must be bound: --dim s=COUNT") != std::string::npos);
  Made m(b, {.dims = {{"s", 2}}});
  INFO(problems_of(m));
  REQUIRE(m.status);
  REQUIRE(m.model->graph().inputs.size() == 3);
  CHECK(m.model->graph().inputs[1].name == "s.1");
  run_three(m);  // s is (1, 2), (3, 4), f is (5, 6)
  CHECK(m.get<float>(0) == Floats{5, 12});
  CHECK(m.get<float>(1) == Floats{15, 24});
  const Made open(b, {.open_dims = {{"s", {1, 2}}}});
  CHECK_FALSE(open.status);
}

TEST_CASE("branches chosen at run time may give sequences of one length") {
  const auto branch = [](const char* first) {
    OnnxBuilder body;
    body.node("SequenceConstruct", {first, "b"}, {std::string("of_") + first}).sequence_output(std::string("of_") + first);
    return body;
  };
  OnnxBuilder b;
  b.input("a", {2}).input("b", {2}).input("go", {}, kBool);
  b.node("If", {"go"}, {"s"}, {attribute("then_branch", branch("a")), attribute("else_branch", branch("b"))});
  b.node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", std::int64_t{0})}).output("y");
  Made m(b);
  INFO(problems_of(m));
  REQUIRE(m.status);
  m.set(0, DType::kF32, Floats{1, 2});
  m.set(1, DType::kF32, Floats{3, 4});
  for (const std::uint8_t go : {std::uint8_t{1}, std::uint8_t{0}}) {
    m.set(2, DType::kBool, std::vector<std::uint8_t>{go});
    REQUIRE(m.session->run());
    CHECK(m.get<float>() == (go != 0 ? Floats{1, 2, 3, 4} : Floats{3, 4, 3, 4}));
  }
}

TEST_CASE("an optional has a value or has none") {
  OnnxBuilder b;
  b.input("a", {2}).node("Optional", {"a"}, {"full"}).node("Optional", {}, {"empty"});
  b.node("OptionalHasElement", {"full"}, {"yes"}).node("OptionalHasElement", {"empty"}, {"no"});
  b.node("OptionalGetElement", {"full"}, {"element"}).node("Neg", {"element"}, {"y"});
  b.output("y").output("yes", kBool).output("no", kBool);
  Made m(b);
  run_three(m);
  CHECK(m.get<float>(0) == Floats{-1, -2});
  CHECK(m.get<std::uint8_t>(1) == std::vector<std::uint8_t>{1});
  CHECK(m.get<std::uint8_t>(2) == std::vector<std::uint8_t>{0});
  OnnxBuilder none;
  none.input("a", {2}).node("Optional", {}, {"empty"}).node("OptionalGetElement", {"empty"}, {"y"}).output("y");
  CHECK(problems_of(Made(none)).find("the value of an optional that has none") != std::string::npos);
}

TEST_CASE("what a sequence cannot be is said") {
  const auto refused = [](const std::function<void(OnnxBuilder&)>& fill) {
    OnnxBuilder b = three_inputs();
    b.input("place", {}, kI64).node("SequenceConstruct", {"a", "b"}, {"s"});
    fill(b);
    const Made m(b);
    CHECK_FALSE(m.status);
    std::string text = problems_of(m);
    for (const std::string& input : m.report.value_inputs) text += "value " + input;
    return text;
  };
  CHECK_THAT(refused([](OnnxBuilder& b) {
               b.node("Add", {"a", "s"}, {"y"}).output("y");
             }),
             Catch::Contains("Add: input 1 is a sequence or an optional without a value"));
  CHECK_THAT(refused([](OnnxBuilder& b) { b.node("SequenceAt", {"s", "place"}, {"y"}).output("y"); }), Catch::Contains("value place"));
  CHECK_THAT(refused([](OnnxBuilder& b) {
               b.initializer(number("far", 2)).node("SequenceAt", {"s", "far"}, {"y"}).output("y");
             }),
             Catch::Contains("position 2 is outside a sequence of 2 tensors"));
  CHECK_THAT(refused([](OnnxBuilder& b) { b.node("SequenceLength", {"a"}, {"y"}).output("y"); }),
             Catch::Contains("input 0 is no sequence"));
  CHECK_THAT(refused([](OnnxBuilder& b) { b.node("SequenceEmpty", {}, {"y"}).sequence_output("y"); }),
             Catch::Contains("a sequence without tensors"));
}

TEST_CASE("constants that are reals of several types are joined as f32") {
  const std::string halves("\x00\x3c\x00\x40", 4);  // 1 and 2
  OnnxBuilder b;
  b.input("x", {4}).initializer(raw_tensor("half", {2}, 10, halves)).initializer(tensor("whole", {2}, Floats{3, 4}));
  b.node("Cast", {"half"}, {"cast"}, {attribute("to", std::int64_t{1})});
  b.node("Concat", {"cast", "whole"}, {"joined"}, {attribute("axis", std::int64_t{0})}).node("Add", {"x", "joined"}, {"y"}).output("y");
  Made m(b);
  INFO(problems_of(m));
  REQUIRE(m.status);
  m.set(0, DType::kF32, Floats{10, 20, 30, 40});
  REQUIRE(m.session->run());
  CHECK(m.get<float>() == Floats{11, 22, 33, 44});

  // A loop's carried value begins as f16 and goes on as f32.
  OnnxBuilder body;
  body.input("i", {}, kI64).input("c", {}, kBool).input("before", {});
  body.node("Add", {"before", "step"}, {"after"}).node("Identity", {"before"}, {"shown"}).node("Identity", {"c"}, {"goes"});
  body.output("goes", kBool).output("after").output("shown");
  OnnxBuilder loop;
  loop.initializer(number("times", 2))
      .initializer(raw_tensor("start", {}, 10, halves.substr(0, 2)))
      .initializer(tensor("step", {}, Floats{2}));
  loop.input("x", {2}).node("Loop", {"times", "", "start"}, {"end", "all"}, {attribute("body", body)});
  loop.node("Add", {"x", "all"}, {"y"}).output("y");
  Made l(loop);
  INFO(problems_of(l));
  REQUIRE(l.status);
  l.set(0, DType::kF32, Floats{10, 20});
  REQUIRE(l.session->run());
  CHECK(l.get<float>() == Floats{11, 23});
}

TEST_CASE("types and domains are told by their names") {
  OnnxBuilder text;
  text.input("x", {2}, 8).node("Identity", {"x"}, {"y"}).output("y", 8);
  CHECK_THAT(problems_of(Made(text)), Catch::Contains("input `x`: its values are of type string"));
  OnnxBuilder narrow;
  narrow.input("x", {2}).node("Cast", {"x"}, {"y"}, {attribute("to", std::int64_t{17})}).output("y", 17);
  CHECK_THAT(problems_of(Made(narrow)), Catch::Contains("it casts to float8e4m3fn"));
  OnnxBuilder wide;
  wide.input("x", {2}, 13).node("Pow", {"x", "x"}, {"y"}).output("y", 13);
  CHECK_THAT(problems_of(Made(wide)), Catch::Contains("of a type that it does not take: u64, u64"));
  OnnxBuilder trees;
  trees.domain("ai.onnx.ml").input("x", {2}).node("Binarizer", {"x"}, {"y"}, {}, "ai.onnx.ml").output("y");
  CHECK_THAT(problems_of(Made(trees)), Catch::Contains("ai.onnx.ml::Binarizer: the operator is not supported: classical machine learning"));
}

TEST_CASE("an input without a declared shape takes the one that --dim states") {
  OnnxBuilder b;
  std::string port;  // a ValueInfoProto whose TypeProto has an element type and no shape
  protozero::pbf_writer w(port);
  w.add_string(1, "x");
  w.add_message(2, std::string("\x0a\x02\x08\x01"));
  b.field(11, port).node("Neg", {"x"}, {"y"}).output("y");
  CHECK_THAT(problems_of(Made(b)), Catch::Contains("free dimensions must be bound: --dim x.0=... and so on, as its shape is not declared"));
  const Made m(b, {.dims = {{"x.0", 2}, {"x.1", 3}}});
  REQUIRE(m.status);
  CHECK(m.model->graph().outputs[0].onnx_shape.to_string() == "2x3");
}

TEST_CASE("PRelu of old files has a slope for each channel") {
  OnnxBuilder b(6);
  b.input("x", {1, 2, 2}).initializer(tensor("slope", {2}, Floats{10, 100})).node("PRelu", {"x", "slope"}, {"y"}).output("y");
  Made m(b);
  INFO(problems_of(m));
  REQUIRE(m.status);
  m.set(0, DType::kF32, Floats{-1, 2, 3, -4});
  REQUIRE(m.session->run());
  CHECK(m.get<float>() == Floats{-10, 2, 3, -400});
}
