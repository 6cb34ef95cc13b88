// One generic kernel an operator: the same net gives the same bits whether the extents of its tensors are known at open or at run only, at
// every budget and with every number of threads. (That the fast kernels of every instruction set agree with it: tests/differential.)
//
// Each case is one node. The known net gives it the graph's input; the other net gives it the input through a Reshape whose shape comes at
// run, so that nothing behind it has an extent that the plan knows.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <functional>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int kI64 = 7;
using Bits = std::vector<std::uint32_t>;

struct Case {
  std::string name;  // also of the ONNX operator, up to the first blank
  Ints shape;        // of x
  std::function<void(OnnxBuilder&)> weights = {};
  std::vector<std::string> others = {};  // inputs behind x
  std::vector<std::string> attributes = {};
  int opset = 17;
  std::vector<std::string> outputs = {"y"};
  Ints most = {};  // of y, where that follows from nothing
};

OnnxBuilder net_of(const Case& c, bool known) {
  OnnxBuilder b(c.opset);
  b.input(known ? "x" : "given", c.shape);
  if (!known) b.input("shape", {static_cast<std::int64_t>(c.shape.size())}, kI64).node("Reshape", {"given", "shape"}, {"x"});
  if (c.weights) c.weights(b);
  std::vector<std::string> inputs{"x"};
  inputs.insert(inputs.end(), c.others.begin(), c.others.end());
  b.node(c.name.substr(0, c.name.find(' ')), inputs, c.outputs, c.attributes);
  for (const std::string& output : c.outputs)
    if (!output.empty()) b.output(output);
  return b;
}

class Net {
 public:
  Net(const Case& c, bool known) : shape_(c.shape), known_(known) {
    importer::ConvertOptions options;
    options.exact = true;
    if (!known) options.bounds["x"] = *Shape::make(c.shape);
    if (!known && !c.most.empty()) options.bounds["y"] = *Shape::make(c.most);
    write_file(folder_.path("m.onnx"), net_of(c, known).bytes());
    importer::ConvertReport report;
    const Status status = importer::convert(folder_.path("m.onnx"), folder_.path("m.sluice"), options, report);
    for (const importer::Problem& problem : report.problems) UNSCOPED_INFO(problem.message);
    REQUIRE(status);
    model_ = *Model::open(folder_.path("m.sluice"));
    const auto& tensors = model_->graph().tensors;
    CHECK(std::any_of(tensors.begin(), tensors.end(), [](const model::Tensor& tensor) { return tensor.bounded != 0; }) == !known);
  }
  Bits run(const std::vector<float>& x, bool least, int threads) const {
    SessionOptions options;
    options.threads = threads;
    options.budget = least ? *minimum_budget(*model_, options) : kUnlimitedBytes;
    auto session = Session::create(model_, options);
    REQUIRE(session);
    REQUIRE((*session)->set_input(0, DType::kF32, std::as_bytes(std::span(x))));
    if (!known_) REQUIRE((*session)->set_input(1, DType::kI64, std::as_bytes(std::span(shape_))));
    REQUIRE((*session)->run());
    Bits all;
    for (std::size_t port = 0; port < model_->graph().outputs.size(); ++port) {
      Bits bits(static_cast<std::size_t>((*session)->output_shape(port).element_count()));
      REQUIRE((*session)->get_output(port, std::as_writable_bytes(std::span(bits))));
      all.insert(all.end(), bits.begin(), bits.end());
    }
    return all;
  }

 private:
  TemporaryFolder folder_;
  Ints shape_;
  bool known_;
  std::shared_ptr<const Model> model_;
};

std::vector<float> values_for(const Case& c) {
  std::int64_t count = 1;
  for (const std::int64_t extent : c.shape) count *= extent;
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>((i * 7919 + 13) % 1009) / 311.0f - 1.5f);
  return x;
}

void check_same_bits(const Case& c) {
  INFO(c.name);
  const Net known(c, true), unknown(c, false);
  const std::vector<float> x = values_for(c);
  const Bits want = known.run(x, false, 1);
  CHECK(!want.empty());
  for (const int threads : {1, 2})
    for (const bool least : {false, true}) {
      CHECK(known.run(x, least, threads) == want);
      CHECK(unknown.run(x, least, threads) == want);
    }
}

using Weights = std::vector<std::pair<std::string, Ints>>;

/// Constants of these names and shapes.
std::function<void(OnnxBuilder&)> with(const Weights& weights) {
  return [=](OnnxBuilder& b) {
    for (const auto& [name, dims] : weights) b.weight(name, dims, 0.037f);
  };
}
std::string ints(const char* name, const Ints& values) { return attribute(name, values); }
std::string number(const char* name, std::int64_t value) { return attribute(name, value); }
std::string word(const char* name, const char* value) { return attribute(name, value); }

}  // namespace

TEST_CASE("elementwise operators: known and unknown extents, the same bits") {
  for (const char* name : {"Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Erf", "Gelu", "Elu", "Softplus"})
    check_same_bits({name, {3, 17}, with({}), {}, {}, 20});
  const auto bounds = [](OnnxBuilder& b) {
    b.initializer(tensor("low", Ints{}, Floats{-0.5f})).initializer(tensor("high", Ints{}, Floats{1.25f}));
  };
  check_same_bits({"Clip", {3, 17}, bounds, {"low", "high"}});
  check_same_bits({"Clip below", {3, 17}, bounds, {"low"}});
  check_same_bits({"Clip above", {3, 17}, bounds, {"", "high"}});
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Sum", "Mean"}) {
    check_same_bits({name, {2, 3, 17}, with({{"b", {3, 17}}}), {"b"}});
    check_same_bits({name, {2, 3, 17}, with({{"b", {3, 1}}}), {"b"}});
  }
  for (const float exponent : {2.0f, 0.5f, 3.0f, -1.0f, 1.7f}) {
    const auto constant = [=](OnnxBuilder& b) { b.initializer(tensor("e", Ints{}, Floats{exponent})); };
    check_same_bits({"Pow " + std::to_string(exponent), {3, 17}, constant, {"e"}});
  }
  check_same_bits({"Pow of tensors", {3, 17}, with({{"e", {3, 17}}}), {"e"}});
}

TEST_CASE("convolutions: known and unknown extents, the same bits") {
  const auto conv = [](const Ints& x, const Ints& w, std::vector<std::string> attributes, bool bias) {
    Weights weights{{"w", w}};
    std::vector<std::string> names{"w"};
    if (bias) weights.push_back({"b", {w[0]}}), names.push_back("b");
    check_same_bits({"Conv", x, with(weights), names, std::move(attributes)});
  };
  conv({1, 5, 9, 7}, {18, 5, 3, 3}, {ints("pads", {1, 1, 1, 1})}, true);
  conv({2, 4, 8, 8}, {6, 4, 1, 1}, {}, false);
  conv({1, 8, 9, 9}, {8, 1, 3, 3}, {number("group", 8), ints("strides", {2, 2}), ints("pads", {0, 1, 1, 0})}, true);
  conv({1, 6, 9, 9}, {4, 3, 3, 2}, {number("group", 2), ints("dilations", {2, 3})}, true);
  conv({1, 4, 21}, {5, 4, 4}, {ints("strides", {3})}, true);
  conv({2, 4, 21, 1}, {18, 4, 4, 1}, {ints("strides", {3, 1}), ints("pads", {2, 0, 1, 0})}, true);  // a column
  conv({2, 4, 5, 6, 7}, {18, 4, 1, 3, 2}, {ints("pads", {0, 1, 0, 0, 1, 1})}, true);                // of volumes: planes
  conv({2, 4, 5, 6, 7}, {5, 4, 3, 1, 1}, {ints("strides", {2, 1, 1}), ints("pads", {1, 0, 0, 0, 0, 0})}, true);
  conv({1, 4, 5, 6, 7}, {5, 4, 3, 3, 3}, {ints("pads", {1, 1, 1, 1, 1, 1})}, true);
  const auto transposed = [](const Ints& x, const Ints& w, const std::vector<std::string>& attributes) {
    check_same_bits({"ConvTranspose", x, with({{"w", w}}), {"w"}, attributes});
    check_same_bits({"ConvTranspose with bias", x, with({{"w", w}, {"b", {w[1]}}}), {"w", "b"}, attributes});
  };
  transposed({1, 5, 4, 6}, {5, 7, 3, 3}, {ints("strides", {2, 2}), ints("pads", {1, 1, 1, 1}), ints("output_padding", {1, 1})});
  transposed({1, 5, 4, 6}, {5, 7, 4, 2}, {ints("strides", {1, 3}), ints("dilations", {2, 1})});
  transposed({2, 3, 9}, {3, 4, 5}, {ints("strides", {4})});
  // Those that sum by taps, and one of three axes, which does not.
  transposed({2, 32, 12, 13}, {32, 3, 4, 3}, {ints("strides", {2, 2}), ints("pads", {1, 1, 1, 1}), ints("output_padding", {1, 1})});
  transposed({1, 130, 12, 12}, {130, 17, 3, 3}, {ints("strides", {2, 1}), ints("dilations", {1, 2})});
  transposed({1, 40, 150}, {40, 2, 5}, {ints("strides", {3})});
  transposed({1, 40, 3, 4, 3}, {40, 2, 2, 3, 2}, {ints("pads", {0, 1, 0, 0, 1, 0})});
}

TEST_CASE("pools: known and unknown extents, the same bits") {
  for (const char* name : {"MaxPool", "AveragePool"}) {
    const std::vector<std::string> window{ints("kernel_shape", {3, 2}), ints("strides", {2, 2}), ints("pads", {1, 0, 1, 1})};
    check_same_bits({name, {1, 5, 9, 8}, with({}), {}, window});
    auto with_ceil = window;
    with_ceil.push_back(number("ceil_mode", 1));
    check_same_bits({name, {1, 5, 10, 9}, with({}), {}, with_ceil});
    check_same_bits({name, {2, 3, 17}, with({}), {}, {ints("kernel_shape", {5}), ints("strides", {3})}});
    check_same_bits({name, {2, 3, 4, 7, 9}, with({}), {}, {ints("kernel_shape", {2, 3, 2}), ints("strides", {1, 2, 2})}});
    check_same_bits({name, {2, 3, 4, 7, 9}, with({}), {}, {ints("kernel_shape", {1, 3, 2}), ints("pads", {0, 1, 0, 0, 1, 1})}});
  }
  check_same_bits({"AveragePool of padding too",
                   {1, 5, 9, 8},
                   with({}),
                   {},
                   {ints("kernel_shape", {3, 3}), ints("pads", {1, 1, 1, 1}), number("count_include_pad", 1)}});
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool"}) {
    check_same_bits({name, {2, 5, 9, 8}});
    check_same_bits({name, {1, 3, 33}});
  }
}

TEST_CASE("normalisations and sums: known and unknown extents, the same bits") {
  for (const char* name : {"Softmax", "LogSoftmax"}) {
    for (const std::int64_t axis : {-1, 1, 0}) check_same_bits({name, {3, 5, 37}, with({}), {}, {number("axis", axis)}});
    check_same_bits({name, {3, 5, 37}, with({}), {}, {number("axis", 1)}, 11});
  }
  for (const std::int64_t axis : {-1, 1}) {
    const Ints of = axis < 0 ? Ints{37} : Ints{5, 37};
    check_same_bits({"LayerNormalization", {3, 5, 37}, with({{"s", of}, {"b", of}}), {"s", "b"}, {number("axis", axis)}});
    check_same_bits({"LayerNormalization without shift", {3, 5, 37}, with({{"s", of}}), {"s"}, {number("axis", axis)}});
  }
  const auto statistics = [](OnnxBuilder& b) {
    b.weight("s", {5}).weight("b", {5}, 0.3f).weight("m", {5}, 0.1f).initializer(tensor("v", {5}, Floats{0.5f, 1.5f, 2.0f, 0.1f, 9.0f}));
  };
  check_same_bits({"BatchNormalization", {2, 5, 3, 4}, statistics, {"s", "b", "m", "v"}});
  for (const Ints& axes : {Ints{2, 3}, Ints{3}, Ints{1}, Ints{0, 1}, Ints{1, 2}, Ints{0, 1, 2, 3}})
    for (const std::int64_t keep : {0, 1})
      check_same_bits({"ReduceMean", {2, 5, 9, 11}, with({}), {}, {ints("axes", axes), number("keepdims", keep)}, 13});
}

TEST_CASE("products: known and unknown extents, the same bits") {
  check_same_bits({"MatMul", {3, 5, 19}, with({{"b", {19, 23}}}), {"b"}});
  check_same_bits({"MatMul by itself", {3, 7, 7}, with({}), {"x"}});
  check_same_bits({"Gemm", {5, 19}, with({{"w", {23, 19}}, {"c", {23}}}), {"w", "c"}, {number("transB", 1)}});
}

TEST_CASE("resized images: known and unknown extents, the same bits") {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinates : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"})
      for (const bool by_sizes : {false, true}) {
        const auto wanted = [=](OnnxBuilder& b) {
          b.initializer(tensor("none", {0}, Floats{}));
          if (by_sizes)
            b.initializer(tensor("sizes", {4}, Ints{1, 3, 9, 4}));
          else
            b.initializer(tensor("scales", {4}, Floats{1.0f, 1.0f, 1.7f, 0.6f}));
        };
        const std::vector<std::string> inputs =
            by_sizes ? std::vector<std::string>{"none", "none", "sizes"} : std::vector<std::string>{"none", "scales"};
        check_same_bits({std::string("Resize ") + mode + " " + coordinates,
                         {1, 3, 5, 7},
                         wanted,
                         inputs,
                         {word("mode", mode), word("coordinate_transformation_mode", coordinates), word("nearest_mode", "floor")},
                         13,
                         {"y"},
                         {1, 3, 9, 9}});
      }
}

TEST_CASE("recurrent layers: known and unknown extents, the same bits") {
  for (const auto& [name, gates] : {std::pair<const char*, std::int64_t>{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}})
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const std::int64_t d = std::string(direction) == "bidirectional" ? 2 : 1, hidden = 19;
      const Weights weights{{"w", {d, gates * hidden, 7}}, {"r", {d, gates * hidden, hidden}}, {"b", {d, 2 * gates * hidden}}};
      std::vector<std::string> attributes{number("hidden_size", hidden), word("direction", direction)};
      check_same_bits({name, {6, 2, 7}, with(weights), {"w", "r", "b"}, attributes});
      if (gates != 3) continue;
      attributes.push_back(number("linear_before_reset", 1));
      check_same_bits({"GRU linear before reset", {6, 2, 7}, with(weights), {"w", "r", "b"}, attributes});
    }
}

TEST_CASE("what moves values: known and unknown extents, the same bits") {
  check_same_bits({"Transpose", {3, 5, 7}, with({}), {}, {ints("perm", {2, 0, 1})}});
  check_same_bits({"Concat", {3, 5, 7}, with({{"b", {3, 2, 7}}}), {"b"}, {number("axis", 1)}});
  check_same_bits({"Flatten", {3, 5, 7}});
  const auto table = [](OnnxBuilder& b) { b.initializer(tensor("i", {4}, Ints{2, 0, -1, 1})); };
  check_same_bits({"Gather", {3, 5, 7}, table, {"i"}});
  const auto cut = [](OnnxBuilder& b) {
    b.initializer(tensor("from", {2}, Ints{1, -1}))
        .initializer(tensor("to", {2}, Ints{5, 0}))
        .initializer(tensor("a", {2}, Ints{1, 2}))
        .initializer(tensor("s", {2}, Ints{2, -2}));
  };
  check_same_bits({"Slice", {3, 5, 7}, cut, {"from", "to", "a", "s"}});
  for (const char* mode : {"constant", "reflect", "edge"}) {
    const auto pads = [](OnnxBuilder& b) { b.initializer(tensor("p", {6}, Ints{0, 1, 2, 1, 3, 1})); };
    check_same_bits({"Pad", {3, 5, 7}, pads, {"p"}, {word("mode", mode)}});
  }
  const auto shape = [](OnnxBuilder& b) { b.initializer(tensor("s", {4}, Ints{2, 3, 5, 7})); };
  check_same_bits({"Expand", {3, 1, 7}, shape, {"s"}});
}
