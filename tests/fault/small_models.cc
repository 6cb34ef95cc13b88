#include "tests/fault/small_models.h"

#include <cstring>
#include <random>

#include "tests/importer/transformer_builder.h"

namespace sluice::test {
namespace {

constexpr int kI8 = 3, kU8 = 2, kI64 = 7, kBool = 9;

std::string bytes_of(std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += static_cast<char>((i * 37 + i / 11) % 251);
  return bytes;
}

OnnxBuilder layers() {
  OnnxBuilder b;
  b.input("x", {3, 48}).weight("w", {48, 160}).weight("c", {160}).weight("v", {160, 40}).weight("d", {40});
  b.node("Gemm", {"x", "w", "c"}, {"h"}).node("Relu", {"h"}, {"r"}).node("Gemm", {"r", "v", "d"}, {"l"});
  return b.node("Softmax", {"l"}, {"y"}).output("y");
}

/// Layers whose inputs fill the first cache, so that sums are formed in parts of the depth: one over a matrix, one over a matrix of which
/// most rows are zero, which is sparse.
OnnxBuilder deep_layers() {
  constexpr std::int64_t kInputs = 3300, kOutputs = 40;
  Floats sparse(kInputs * kOutputs);
  for (std::int64_t k = 0; k < kInputs; k += 3)
    for (std::int64_t n = 0; n < kOutputs; ++n)
      sparse[static_cast<std::size_t>(k * kOutputs + n)] = 0.001f * static_cast<float>(1 + (k + n) % 7);
  OnnxBuilder b;
  b.input("x", {60, kInputs}).weight("w", {kInputs, kOutputs}, 0.001f).initializer(tensor("s", {kInputs, kOutputs}, sparse));
  b.node("MatMul", {"x", "w"}, {"y"}).node("MatMul", {"x", "s"}, {"z"});
  return b.output("y").output("z");
}

OnnxBuilder convolutions() {
  OnnxBuilder b;
  b.input("x", {1, 3, 16, 16}).weight("w", {32, 3, 3, 3}).weight("c", {32}).weight("v", {40, 32, 3, 3}, 0.005f);
  for (const char* name : {"scale", "shift", "mean", "variance"}) b.initializer(tensor(name, {40}, Floats(40, 0.5f)));
  b.node("Conv", {"x", "w", "c"}, {"a"}, {attribute("pads", Ints{1, 1, 1, 1})}).node("Relu", {"a"}, {"r"});
  b.node("MaxPool", {"r"}, {"p"}, {attribute("kernel_shape", Ints{2, 2}), attribute("strides", Ints{2, 2})});
  b.node("Conv", {"p", "v"}, {"q"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("BatchNormalization", {"q", "scale", "shift", "mean", "variance"}, {"n"}).node("GlobalAveragePool", {"n"}, {"y"});
  return b.output("y");
}

OnnxBuilder separable_residual() {
  OnnxBuilder b;
  b.input("x", {1, 32, 12, 12}).weight("w", {32, 1, 3, 3}).weight("p", {32, 32, 1, 1});
  b.node("Conv", {"x", "w"}, {"d"}, {attribute("pads", Ints{1, 1, 1, 1}), attribute("group", std::int64_t{32})});
  return b.node("Conv", {"d", "p"}, {"q"}).node("Add", {"q", "x"}, {"s"}).node("Relu", {"s"}, {"y"}).output("y");
}

OnnxBuilder branches() {
  OnnxBuilder b;
  b.input("x", {1, 16, 8, 8}).weight("w", {16, 16, 1, 1}).weight("v", {32, 16, 3, 3}).initializer(tensor("parts", {2}, Ints{16, 32}));
  b.node("Conv", {"x", "w"}, {"a"}).node("Conv", {"x", "v"}, {"c"}, {attribute("pads", Ints{1, 1, 1, 1})});
  b.node("Concat", {"a", "c"}, {"ac"}, {attribute("axis", std::int64_t{1})}).node("Sigmoid", {"ac"}, {"s"});
  b.node("Split", {"s", "parts"}, {"y", "z"}, {attribute("axis", std::int64_t{1})});
  return b.output("y").output("z");
}

OnnxBuilder upsampling() {
  OnnxBuilder b;
  b.input("x", {1, 16, 5, 5}).weight("w", {16, 24, 2, 2}).initializer(tensor("by", {4}, Floats{1, 1, 2, 2}));
  b.node("ConvTranspose", {"x", "w"}, {"t"}, {attribute("strides", Ints{2, 2})});
  return b.node("Resize", {"t", "", "by"}, {"y"}, {attribute("mode", "linear")}).output("y");
}

OnnxBuilder recurrent() {
  OnnxBuilder b(14);
  b.input("x", {3, 2, 20}).weight("w", {2, 4 * 32, 20}).weight("r", {2, 4 * 32, 32}).weight("b", {2, 8 * 32});
  b.node("LSTM", {"x", "w", "r", "b"}, {"y", "h"}, {attribute("hidden_size", std::int64_t{32}), attribute("direction", "bidirectional")});
  return b.output("y").output("h");
}

OnnxBuilder embedding() {
  OnnxBuilder b;
  b.input("at", {5}, kI64).weight("table", {4000, 24}).weight("w", {24, 17});
  return b.node("Gather", {"table", "at"}, {"e"}).node("MatMul", {"e", "w"}, {"y"}).output("y");
}

OnnxBuilder eight_bits() {
  OnnxBuilder b;
  b.input("x", {2, 64}).initializer(raw_tensor("q", {64, 96}, kI8, bytes_of(64 * 96)));
  b.initializer(tensor("scale", {96}, Floats(96, 0.01f))).initializer(raw_tensor("zero", {96}, kI8, std::string(96, '\3')));
  b.node("DequantizeLinear", {"q", "scale", "zero"}, {"w"}, {attribute("axis", std::int64_t{1})});
  return b.node("MatMul", {"x", "w"}, {"y"}).output("y");
}

OnnxBuilder whole_numbers() {
  OnnxBuilder b;
  b.input("x", {3, 40}).initializer(tensor("scale", {}, Floats{0.01f})).initializer(raw_tensor("zero", {}, kU8, "\x80"));
  b.initializer(raw_tensor("w", {40, 33}, kI8, bytes_of(40 * 33))).initializer(raw_tensor("w_zero", {}, kI8, "\x03"));
  b.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"}).node("MatMulInteger", {"q", "w", "zero", "w_zero"}, {"i"});
  return b.node("Cast", {"i"}, {"y"}, {attribute("to", std::int64_t{1})}).output("y");
}

OnnxBuilder loop() {
  OnnxBuilder body;
  body.input("i", {}, kI64).input("go", {}, kBool).input("v", {3, 24}).input("done", {1});
  body.node("MatMul", {"v", "a"}, {"next"}).node("Add", {"done", "one"}, {"more"});
  body.node("Less", {"more", "most"}, {"again"}).node("Squeeze", {"again"}, {"going"});
  body.output("going").output("next").output("more");
  OnnxBuilder b;
  b.input("x", {3, 24}).weight("a", {24, 24}).initializer(tensor("one", {1}, Floats{1})).initializer(tensor("zero", {1}, Floats{0}));
  b.initializer(tensor("most", {1}, Floats{4}));
  return b.node("Loop", {"", "", "x", "zero"}, {"y", "count"}, {attribute("body", body)}).output("y").output("count");
}

OnnxBuilder extents_at_run_time() { return rows_without_leading_zero().output("y"); }

OnnxBuilder batches() {
  OnnxBuilder b;
  b.free_input("x", "N", {16}).weight("w", {16, 40});
  return b.node("MatMul", {"x", "w"}, {"h"}).node("Tanh", {"h"}, {"y"}).output("y");
}

template <class T, class Make>
void fill(std::vector<std::byte>& bytes, const Make& make) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

std::vector<SmallModel> small_models() {
  std::vector<SmallModel> models = {{"layers", layers().bytes(), {}},
                                    {"deep_layers", deep_layers().bytes(), {}},
                                    {"convolutions", convolutions().bytes(), {}},
                                    {"separable_residual", separable_residual().bytes(), {}},
                                    {"branches", branches().bytes(), {}},
                                    {"upsampling", upsampling().bytes(), {}},
                                    {"recurrent", recurrent().bytes(), {}},
                                    {"language", small_language_model(4, 2, 8, 40).bytes(), {}},
                                    {"embedding", embedding().bytes(), {}},
                                    {"eight_bits", eight_bits().bytes(), {}},
                                    {"whole_numbers", whole_numbers().bytes(), {}},
                                    {"loop", loop().bytes(), {}},
                                    {"extents_at_run_time", extents_at_run_time().bytes(), {}},
                                    {"batches", batches().bytes(), {}}};
  models.back().options.open_dims["N"] = {1, 2, 3};
  return models;
}

std::vector<std::vector<std::byte>> inputs_for(const model::Graph& graph) {
  std::mt19937 random(11);
  std::vector<std::vector<std::byte>> inputs;
  for (const model::Port& port : graph.inputs) {
    const model::Tensor& tensor = graph.tensor(port.tensor);
    std::vector<std::byte>& bytes = inputs.emplace_back(tensor.bytes().count());
    if (tensor.dtype == DType::kF32) fill<float>(bytes, [&] { return static_cast<float>(random() % 2001) / 1000.0f - 1.0f; });
    if (tensor.dtype == DType::kI32) fill<std::int32_t>(bytes, [&] { return static_cast<std::int32_t>(random() % 2); });
    if (tensor.dtype == DType::kI64) fill<std::int64_t>(bytes, [&] { return static_cast<std::int64_t>(random() % 2); });
  }
  return inputs;
}

}  // namespace sluice::test
