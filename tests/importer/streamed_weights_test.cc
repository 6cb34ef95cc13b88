// Weights of operators beside convolutions and dense layers stream: at the smallest budget, which does not hold them, the bits are those of
// a run that has all memory, and the values are those of the plain operator, which gets the same weights as inputs.
#include "tests/importer/streaming.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct Recurrent {
  const char* op;
  std::int64_t gates;
  std::string direction = "forward";
  std::int64_t layout = 0;
  bool states = false;
  bool peepholes = false;
  std::vector<std::string> attributes = {};

  std::int64_t hidden = 96, times = 5, batches = 2, inputs = 64;

  Ints w() const { return {directions(), gates * hidden, inputs}; }
  Ints r() const { return {directions(), gates * hidden, hidden}; }
  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }

  /// With the matrices as weights of the file, or as inputs.
  OnnxBuilder build(bool constant) const {
    OnnxBuilder b(14);
    b.input("x", layout == 0 ? Ints{times, batches, inputs} : Ints{batches, times, inputs});
    if (constant)
      b.weight("w", w()).weight("r", r(), 0.007f);
    else
      b.input("w", w()).input("r", r());
    b.weight("b", {directions(), 2 * gates * hidden}, 0.02f);
    std::vector<std::string> names{"x", "w", "r", "b", ""}, outs{"y", "y_h"};
    const bool lstm = std::string(op) == "LSTM";
    if (lstm) outs.push_back("y_c");
    if (states) {
      const Ints state = layout == 0 ? Ints{directions(), batches, hidden} : Ints{batches, directions(), hidden};
      b.weight("h0", state, 0.05f).weight("c0", state, 0.03f);
      names.push_back("h0");
      if (lstm) names.push_back("c0");
    }
    if (peepholes) {
      b.weight("p", {directions(), 3 * hidden}, 0.04f);
      names.resize(7);
      names.push_back("p");
    }
    std::vector<std::string> all = attributes;
    all.push_back(attribute("hidden_size", hidden));
    all.push_back(attribute("direction", direction.c_str()));
    all.push_back(attribute("layout", layout));
    b.node(op, names, outs, all);
    for (const std::string& out : outs) b.output(out);
    return b;
  }
};

void check_recurrent(const Recurrent& node) {
  INFO(node.op << " " << node.direction << " layout " << node.layout);
  const TemporaryFolder folder;
  const auto model = converted(folder, node.build(true), "own"), plain = converted(folder, node.build(false), "plain");
  const auto count = [](const Ints& dims) { return dims[0] * dims[1] * dims[2]; };
  const Floats x = ramp(node.times * node.batches * node.inputs, 0.05f);
  const Values want = outputs(plain, {x, ramp(count(node.w())), ramp(count(node.r()), 0.007f)}, {});
  const auto weights = static_cast<std::uint64_t>(count(node.w()) + count(node.r())) * sizeof(float);
  const Values found = check_budgets(model, {x}, Bytes(weights), true);
  CHECK(worst({Floats(want[0].size())}, want) > 0.1f);
  CHECK(worst(found, want) < 2e-5f);
}

}  // namespace

TEST_CASE("matrices of RNN, GRU and LSTM stream") {
  check_recurrent({"LSTM", 4});
  check_recurrent({"LSTM", 4, "reverse", 1, true});
  check_recurrent({"LSTM", 4, "bidirectional", 0, true, true, {attribute("input_forget", std::int64_t{1})}});
  check_recurrent({"GRU", 3, "bidirectional", 1});
  check_recurrent({"GRU", 3, "reverse", 0, true, false, {attribute("linear_before_reset", std::int64_t{1})}});
  check_recurrent({"RNN", 1, "bidirectional"});
}

namespace {

std::string bytes_of(std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>((i * 37 + i / 11) % 251);
  return bytes;
}

constexpr int kU8 = 2, kI8 = 3;

/// A matrix or kernel of 8 bits behind DequantizeLinear; `constant`: in the file, else an input, which the plain operator reads.
struct Dequantised {
  Ints dims;
  int type = kI8;
  std::int64_t axis = 0;
  bool per_axis = true;
  std::string op = "MatMul";
  Ints x;
  std::vector<std::string> attributes = {};

  std::int64_t count() const {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    return count;
  }

  OnnxBuilder build(bool constant) const {
    const std::int64_t scales = per_axis ? dims[static_cast<std::size_t>(axis)] : 1;
    OnnxBuilder b(13);
    b.input("x", x);
    b.initializer(raw_tensor("q", dims, type, bytes_of(count())));
    Floats scale;
    std::string zero;
    for (std::int64_t i = 0; i < scales; ++i) {
      scale.push_back(0.001f * static_cast<float>(1 + i % 7));
      zero += static_cast<char>(i % 5);
    }
    b.initializer(tensor("scale", per_axis ? Ints{scales} : Ints{}, scale));
    b.initializer(raw_tensor("zero", per_axis ? Ints{scales} : Ints{}, type, zero));
    if (!constant) {
      // A sum with an input of zeros keeps the weight from being known.
      b.input("nothing", {1});
    }
    b.node("DequantizeLinear", {"q", "scale", "zero"}, {"w"}, {attribute("axis", axis)});
    std::string weight = "w";
    if (!constant) b.node("Add", {"w", "nothing"}, {weight = "v"});
    b.node(op, {"x", weight}, {"y"}, attributes).output("y");
    return b;
  }
};

void check_dequantised(const Dequantised& d) {
  INFO(d.op << " " << d.dims.size() << " axes, scales along " << d.axis);
  const TemporaryFolder folder;
  const auto model = converted(folder, d.build(true), "own");
  CHECK(model->file().graph().weights[0].panel_layout.dtype == DType::kI8);
  CHECK(model->graph().weights[0].bytes < Bytes(static_cast<std::uint64_t>(d.count() * 5 / 4)));
  std::int64_t inputs = 1;
  for (const std::int64_t dim : d.x) inputs *= dim;
  const Floats x = ramp(inputs, 0.05f);
  const Values found = check_budgets(model, {x}, Bytes(static_cast<std::uint64_t>(d.count())));
  if (d.op == "Conv") return;  // whose weight must be known
  const Values want = outputs(converted(folder, d.build(false), "plain"), {x, {0.0f}}, {});
  CHECK(worst({Floats(want[0].size())}, want) > 0.1f);
  CHECK(worst(found, want) < 2e-3f);
}

}  // namespace

TEST_CASE("weights of 8 bits stay 8 bits and stream") {
  check_dequantised({{512, 640}, kI8, 1, true, "MatMul", {3, 512}});
  check_dequantised({{512, 640}, kU8, 1, true, "MatMul", {2, 2, 512}});
  check_dequantised({{640, 512}, kU8, 0, false, "Gemm", {2, 512}, {attribute("transB", std::int64_t{1})}});
  check_dequantised({{160, 128, 3, 3}, kI8, 0, true, "Conv", {1, 128, 6, 6}, {attribute("pads", Ints{1, 1, 1, 1})}});
}

namespace {

/// An operator over whole numbers between QuantizeLinear and a cast; its weight in the file, or behind a sum that hides it.
struct WholeNumbers {
  std::string op;
  Ints x, w;
  int type = kI8;
  std::vector<std::string> attributes = {};

  bool image() const { return x.size() == 4; }

  OnnxBuilder build(bool constant) const {
    std::int64_t count = 1;
    for (const std::int64_t dim : w) count *= dim;
    const std::int64_t outputs = image() ? w[0] : w[1];
    const bool linear = op.rfind("QLinear", 0) == 0;
    OnnxBuilder b(13);
    b.input("x", x);
    if (!constant) b.input("nothing", {1});
    b.initializer(tensor("x_scale", {}, Floats{0.01f})).initializer(raw_tensor("x_zero", {}, kU8, "\x80"));
    b.initializer(raw_tensor("w", w, type, bytes_of(count))).initializer(raw_tensor("w_zero", {}, type, "\x03"));
    b.node("QuantizeLinear", {"x", "x_scale", "x_zero"}, {"q"});
    std::string weight = "w";
    if (!constant) {
      b.node("Cast", {"nothing"}, {"zero"}, {attribute("to", std::int64_t{type})})
          .node("Cast", {"w"}, {"wide"}, {attribute("to", std::int64_t{6})});
      b.node("Cast", {"nothing"}, {"wide_zero"}, {attribute("to", std::int64_t{6})}).node("Add", {"wide", "wide_zero"}, {"wide_sum"});
      b.node("Cast", {"wide_sum"}, {weight = "v"}, {attribute("to", std::int64_t{type})});
    }
    std::vector<std::string> inputs{"q", weight, "x_zero", "w_zero"};
    if (linear) {
      Floats scale;
      for (std::int64_t i = 0; i < outputs; ++i) scale.push_back(0.01f + 0.001f * static_cast<float>(i % 5));
      b.initializer(tensor("w_scale", {outputs}, scale))
          .initializer(raw_tensor("w_zeros", {outputs}, type, std::string(static_cast<std::size_t>(outputs), '\3')));
      b.initializer(tensor("y_scale", {}, Floats{0.7f})).initializer(raw_tensor("y_zero", {}, kU8, "\x80"));
      inputs = {"q", "x_scale", "x_zero", weight, "w_scale", "w_zeros", "y_scale", "y_zero"};
    }
    b.node(op, inputs, {"i"}, attributes).node("Cast", {"i"}, {"y"}, {attribute("to", std::int64_t{1})}).output("y");
    return b;
  }
};

void check_whole_numbers(const WholeNumbers& n) {
  INFO(n.op);
  const TemporaryFolder folder;
  const auto model = converted(folder, n.build(true), "own"), plain = converted(folder, n.build(false), "plain");
  std::int64_t inputs = 1, weights = 1;
  for (const std::int64_t dim : n.x) inputs *= dim;
  for (const std::int64_t dim : n.w) weights *= dim;
  const Floats x = ramp(inputs, 0.1f);
  const Values found = check_budgets(model, {x}, Bytes(static_cast<std::uint64_t>(weights)));
  const Values want = outputs(plain, {x, {0.0f}}, {});
  CHECK(*std::max_element(want[0].begin(), want[0].end()) - *std::min_element(want[0].begin(), want[0].end()) > 10.0f);
  CHECK(found == want);
}

}  // namespace

TEST_CASE("products of whole numbers stream their weights and are exact") {
  check_whole_numbers({"MatMulInteger", {3, 900}, {900, 300}});
  check_whole_numbers({"MatMulInteger", {3, 900}, {900, 300}, kU8});
  check_whole_numbers({"QLinearMatMul", {2, 2, 700}, {700, 400}});
  check_whole_numbers({"ConvInteger", {1, 130, 4, 4}, {160, 130, 3, 3}, kU8, {attribute("pads", Ints{1, 1, 1, 1})}});
  check_whole_numbers(
      {"QLinearConv", {1, 130, 5, 4}, {160, 130, 3, 3}, kI8, {attribute("pads", Ints{1, 1, 1, 1}), attribute("strides", Ints{2, 1})}});
}

TEST_CASE("matrices of a batch stream one by one") {
  const auto build = [](bool constant) {
    OnnxBuilder b;
    b.input("x", {2, 3, 4, 128});
    if (!constant) b.input("nothing", {1});
    b.weight("w", {2, 3, 128, 160});
    if (!constant) b.node("Add", {"w", "nothing"}, {"v"});
    b.node("MatMul", {"x", constant ? "w" : "v"}, {"y"}).output("y");
    return b;
  };
  const TemporaryFolder folder;
  const Floats x = ramp(2 * 3 * 4 * 128, 0.05f);
  const Values found = check_budgets(converted(folder, build(true), "own"), {x}, Bytes(6 * 128 * 160 * sizeof(float)));
  const Values want = outputs(converted(folder, build(false), "plain"), {x, {0.0f}}, {});
  CHECK(worst({Floats(want[0].size())}, want) > 0.1f);
  CHECK(worst(found, want) < 1e-5f);
}
