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

constexpr int kU8 = 2, kI8 = 3, kU4 = 21, kI4 = 22, kU2 = 25;

std::int64_t product(const Ints& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return count;
}

/// Whole numbers of an ONNX type, as its bytes.
struct Packed {
  int type = kI8;
  int bits() const { return type == kU4 || type == kI4 ? 4 : type == kU2 ? 2 : 8; }
  bool is_signed() const { return type == kI8 || type == kI4; }
  int value(int field) const { return is_signed() && field >= 1 << (bits() - 1) ? field - (1 << bits()) : field; }
  std::string bytes(const std::vector<int>& fields) const {
    std::string out((fields.size() * static_cast<std::size_t>(bits()) + 7) / 8, '\0');
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::size_t bit = i * static_cast<std::size_t>(bits());
      out[bit / 8] = static_cast<char>(static_cast<unsigned char>(out[bit / 8]) | fields[i] << bit % 8);
    }
    return out;
  }
};

/// A weight behind DequantizeLinear, with one scale and zero for all, for each place of `axis`, or for each `block` places of it.
struct Dequantised {
  Ints dims;
  int type = kI8;
  std::int64_t axis = 0;
  bool per_axis = true;
  std::string op = "MatMul";
  Ints x;
  std::vector<std::string> attributes = {};
  std::int64_t block = 0;
  bool zeros = true;
  bool own_bytes = true;  // false: panels of floats hold it

  std::int64_t count() const { return product(dims); }
  Packed packed() const { return {type}; }
  Ints scale_dims() const {
    if (!per_axis) return {};
    const auto a = static_cast<std::size_t>(axis);
    if (block == 0) return {dims[a]};
    Ints blocks = dims;
    blocks[a] = (dims[a] + block - 1) / block;
    return blocks;
  }
  std::int64_t scale_of(std::int64_t i) const {
    if (!per_axis) return 0;
    std::int64_t inner = 1;
    for (std::size_t a = static_cast<std::size_t>(axis) + 1; a < dims.size(); ++a) inner *= dims[a];
    const std::int64_t extent = dims[static_cast<std::size_t>(axis)], place = i / inner % extent;
    if (block == 0) return place;
    return (i / inner / extent * ((extent + block - 1) / block) + place / block) * inner + i % inner;
  }
  int field(std::int64_t i) const { return static_cast<int>((i * 37 + i / 11) % 251) & ((1 << packed().bits()) - 1); }
  int zero_field(std::int64_t s) const { return zeros ? static_cast<int>(s % 5) & ((1 << packed().bits()) - 1) : 0; }
  float scale(std::int64_t s) const { return 0.001f * static_cast<float>(1 + s % 7); }

  /// With the quantised values in the file, or with the floats that they stand for.
  OnnxBuilder build(bool quantised) const {
    OnnxBuilder b(21);
    b.input("x", x);
    const Packed form = packed();
    if (quantised) {
      std::vector<int> fields, zero_fields;
      Floats scales;
      for (std::int64_t i = 0; i < count(); ++i) fields.push_back(field(i));
      for (std::int64_t s = 0; s < product(scale_dims()); ++s) {
        scales.push_back(scale(s));
        zero_fields.push_back(zero_field(s));
      }
      b.initializer(raw_tensor("q", dims, type, form.bytes(fields)));
      b.initializer(tensor("scale", scale_dims(), scales)).initializer(raw_tensor("zero", scale_dims(), type, form.bytes(zero_fields)));
      std::vector<std::string> inputs{"q", "scale"};
      if (zeros) inputs.push_back("zero");
      b.node("DequantizeLinear", inputs, {"w"}, {attribute("axis", axis), attribute("block_size", block)});
    } else {
      Floats values;
      for (std::int64_t i = 0; i < count(); ++i) {
        const std::int64_t s = scale_of(i);
        values.push_back(static_cast<float>(form.value(field(i)) - form.value(zero_field(s))) * scale(s));
      }
      b.initializer(tensor("w", dims, values));
    }
    if (op == "Gather") {
      b.node("Cast", {"x"}, {"i"}, {attribute("to", std::int64_t{7})}).node("Gather", {"w", "i"}, {"y"}, attributes);
    } else {
      b.node(op, {"x", "w"}, {"y"}, attributes);
    }
    return b.output("y");
  }

  Floats input() const {
    if (op != "Gather") return ramp(product(x), 0.05f);
    Floats places;
    for (std::int64_t i = 0; i < product(x); ++i) places.push_back(static_cast<float>(i * 97 % dims[0]));
    return places;
  }
};

void check_dequantised(const Dequantised& d) {
  INFO(d.op << " " << d.dims.size() << " axes, type " << d.type << ", scales along " << d.axis << ", blocks of " << d.block);
  const TemporaryFolder folder;
  const auto model = converted(folder, d.build(true), "own");
  const model::Weight& weight = model->graph().weights[0];
  CHECK(model::is_quantised(weight.panel_layout) == d.own_bytes);
  const int bits = d.packed().bits() == 2 && d.op != "MatMul" ? 4 : d.packed().bits();  // where no kernel reads two
  const auto bytes = static_cast<std::uint64_t>(d.count() * bits / 8);
  if (d.own_bytes) {
    CHECK(model::bits_of(weight.panel_layout) == bits);
    // Scales of blocks of 32 take 5/32 of a byte a value.
    CHECK(weight.bytes < Bytes(bytes * 5 / 4 + (d.block == 0 ? 0 : static_cast<std::uint64_t>(d.count()) / 5)));
  }
  const Values found = check_budgets(model, {d.input()}, d.own_bytes ? weight.bytes : Bytes(4 * bytes));
  const Values want = outputs(converted(folder, d.build(false), "floats"), {d.input()}, {});
  CHECK(worst({Floats(want[0].size())}, want) > 0.01f);
  // Panels stand for the very floats, whatever their bytes; only the numerics of a 3x3 convolution are chosen by its weight.
  if (d.op == "Conv")
    CHECK(worst(found, want) < 2e-3f);
  else
    CHECK(found == want);
}

}  // namespace

TEST_CASE("weights of 8 bits stay 8 bits and stream") {
  check_dequantised({{1024, 1280}, kI8, 1, true, "MatMul", {3, 1024}});
  check_dequantised({{1024, 1280}, kU8, 1, true, "MatMul", {2, 2, 1024}});
  check_dequantised({{1280, 1024}, kU8, 0, false, "Gemm", {2, 1024}, {attribute("transB", std::int64_t{1})}});
  check_dequantised({{640, 256, 3, 3}, kI8, 0, true, "Conv", {1, 256, 6, 6}, {attribute("pads", Ints{1, 1, 1, 1})}});
  check_dequantised({{256, 480, 3, 3}, kU8, 1, true, "ConvTranspose", {1, 256, 4, 4}, {attribute("strides", Ints{2, 2})}});
  check_dequantised({{3000, 96}, kU8, 0, true, "Gather", {2, 3}});
  check_dequantised({{3000, 96}, kI8, 0, false, "Gather", {7}});
}

TEST_CASE("weights of 4 bits stay 4 bits and stream") {
  check_dequantised({{1024, 1280}, kU4, 1, true, "MatMul", {3, 1024}});
  check_dequantised({{1024, 1280}, kI4, 1, true, "MatMul", {17, 1024}});
  check_dequantised({{1280, 1025}, kI4, 0, false, "Gemm", {2, 1025}, {attribute("transB", std::int64_t{1})}});
  check_dequantised({{640, 259, 3, 3}, kI4, 0, true, "Conv", {1, 259, 4, 4}, {attribute("pads", Ints{1, 1, 1, 1})}});
  check_dequantised({{1024, 1280, 1, 1}, kU4, 0, true, "Conv", {1, 1280, 2, 2}});
  check_dequantised({{515, 384, 3, 3}, kI4, 1, true, "ConvTranspose", {1, 515, 3, 3}, {attribute("strides", Ints{2, 2})}});
  check_dequantised({{3000, 97}, kU4, 0, true, "Gather", {2, 3}});
  check_dequantised({{1024, 2560}, kU2, 1, true, "MatMul", {3, 1024}});
  check_dequantised({{3000, 97}, kU2, 0, true, "Gather", {5}});
}

TEST_CASE("weights with a scale for each block stay of their bits and stream") {
  check_dequantised({{1024, 1280}, kI8, 0, true, "MatMul", {3, 1024}, {}, 32});
  check_dequantised({{1000, 1280}, kU8, 0, true, "MatMul", {3, 1000}, {}, 128, false});
  check_dequantised({{1024, 1280}, kI4, 0, true, "MatMul", {3, 1024}, {}, 32, false});
  check_dequantised({{1280, 1024}, kU4, 1, true, "Gemm", {2, 1024}, {attribute("transB", std::int64_t{1})}, 64});
  check_dequantised({{640, 256, 3, 3}, kI8, 1, true, "Conv", {1, 256, 6, 6}, {attribute("pads", Ints{1, 1, 1, 1})}, 64});
  check_dequantised({{3000, 96}, kU4, 1, true, "Gather", {2, 3}, {}, 32});
  // Blocks of outputs: one scale for each input and run of outputs, which no panel has.
  check_dequantised({{1024, 1280}, kI8, 1, true, "MatMul", {3, 1024}, {}, 32, true, false});
}

namespace {

/// An operator over whole numbers between QuantizeLinear and a cast; its weight in the file, or behind a sum that hides it.
struct WholeNumbers {
  std::string op;
  Ints x, w;
  int type = kI8;
  std::vector<std::string> attributes = {};
  char zero = '\3';
  bool streams = true;

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
    b.initializer(raw_tensor("w", w, type, bytes_of(count))).initializer(raw_tensor("w_zero", {}, type, std::string(1, zero)));
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
  const Values found = check_budgets(model, {x}, n.streams ? Bytes(static_cast<std::uint64_t>(weights)) : kUnlimitedBytes);
  const Values want = outputs(plain, {x, {0.0f}}, {});
  CHECK(*std::max_element(want[0].begin(), want[0].end()) - *std::min_element(want[0].begin(), want[0].end()) > 10.0f);
  CHECK(found == want);
}

}  // namespace

TEST_CASE("products of whole numbers stream their weights and are exact") {
  check_whole_numbers({"MatMulInteger", {3, 900}, {900, 900}});
  check_whole_numbers({"MatMulInteger", {3, 900}, {900, 900}, kU8, {}, '\x80'});
  // Less 3 they are no 8 bits any more; less 128 they are.
  check_whole_numbers({"MatMulInteger", {3, 900}, {900, 900}, kU8, {}, '\3'});
  check_whole_numbers({"QLinearMatMul", {2, 2, 700}, {700, 1200}});
  check_whole_numbers({"ConvInteger", {1, 260, 4, 4}, {320, 260, 3, 3}, kU8, {attribute("pads", Ints{1, 1, 1, 1})}});
  check_whole_numbers(
      {"QLinearConv", {1, 260, 5, 4}, {320, 260, 3, 3}, kI8, {attribute("pads", Ints{1, 1, 1, 1}), attribute("strides", Ints{2, 1})}});
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
