// Pieces of transformers as exporters write them, and a small language model made of them.
#pragma once

#include <cmath>
#include <string>

#include "tests/importer/onnx_builder.h"

namespace sluice::test {

/// Adds nodes behind a value and returns the name of what they make.
class TransformerBuilder {
 public:
  explicit TransformerBuilder(OnnxBuilder& b) : b_(b) {}

  std::string scalar(float value) {
    const std::string name = fresh("number");
    b_.initializer(tensor(name, {}, Floats{value}));
    return name;
  }
  std::string ints(const Ints& values) {
    const std::string name = fresh("ints");
    b_.initializer(tensor(name, {static_cast<std::int64_t>(values.size())}, values));
    return name;
  }
  std::string weight(const Ints& dims, float step = 0.01f) {
    const std::string name = fresh("w");
    b_.weight(name, dims, step);
    return name;
  }
  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& attributes = {}) {
    const std::string name = fresh(op);
    b_.node(op, inputs, {name}, attributes);
    return name;
  }

  std::string layer_norm(const std::string& x, std::int64_t channels, float epsilon = 1e-5f) {
    const std::vector<std::string> last{attribute("axes", Ints{-1})};
    const std::string difference = node("Sub", {x, node("ReduceMean", {x}, last)});
    const std::string variance = node("ReduceMean", {node("Pow", {difference, scalar(2.0f)})}, last);
    const std::string ratio = node("Div", {difference, node("Sqrt", {node("Add", {variance, scalar(epsilon)})})});
    return node("Add", {node("Mul", {ratio, weight({channels}, 0.1f)}), weight({channels})});
  }

  std::string gelu_tanh(const std::string& x) {
    const std::string cube = node("Mul", {node("Mul", {node("Mul", {x, scalar(0.044715f)}), x}), x});
    const std::string tangent = node("Tanh", {node("Mul", {node("Add", {x, cube}), scalar(0.7978845608f)})});
    return node("Mul", {node("Mul", {x, scalar(0.5f)}), node("Add", {tangent, scalar(1.0f)})});
  }

  std::string gelu_erf(const std::string& x) {
    const std::string factor = node("Add", {node("Erf", {node("Div", {x, scalar(std::sqrt(2.0f))})}), scalar(1.0f)});
    return node("Mul", {node("Mul", {x, factor}), scalar(0.5f)});
  }

  std::string dense(const std::string& x, std::int64_t in, std::int64_t out) {
    return node("Add", {node("MatMul", {x, weight({in, out}, 0.02f)}), weight({out})});
  }

  /// A mask that hides with `hidden` what lies above the diagonal, through Where.
  std::string hide_future(const std::string& scores, std::int64_t rows, float hidden) {
    std::string bytes;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < rows; ++c) bytes += c > r ? '\1' : '\0';
    const std::string mask = fresh("mask");
    b_.initializer(raw_tensor(mask, {1, 1, rows, rows}, 9, bytes));
    return node("Where", {mask, scalar(hidden), scores});
  }

  /// x [1, rows, heads * depth] with packed queries, keys and values.
  std::string attention(const std::string& x, std::int64_t rows, std::int64_t heads, std::int64_t depth, bool causal = true) {
    const std::int64_t channels = heads * depth;
    const std::string packed = dense(x, channels, 3 * channels);
    const std::string q = fresh("q"), k = fresh("k"), v = fresh("v");
    b_.node("Split", {packed, ints({channels, channels, channels})}, {q, k, v}, {attribute("axis", std::int64_t{2})});
    const auto turned = [&](const std::string& part, const Ints& perm) {
      return node("Transpose", {node("Reshape", {part, ints({1, rows, heads, depth})})}, {attribute("perm", perm)});
    };
    const std::string product = node("MatMul", {turned(q, {0, 2, 1, 3}), turned(k, {0, 2, 3, 1})});
    const std::string scores = node("Mul", {product, scalar(1.0f / std::sqrt(static_cast<float>(depth)))});
    const std::string seen = causal ? hide_future(scores, rows, -1e9f) : scores;
    const std::string weights = node("Softmax", {seen}, {attribute("axis", std::int64_t{-1})});
    const std::string mixed =
        node("Transpose", {node("MatMul", {weights, turned(v, {0, 2, 1, 3})})}, {attribute("perm", Ints{0, 2, 1, 3})});
    return node("Reshape", {mixed, ints({1, rows, channels})});
  }

  std::string block(const std::string& x, std::int64_t rows, std::int64_t heads, std::int64_t depth) {
    const std::int64_t channels = heads * depth;
    const std::string attended = node("Add", {x, dense(attention(layer_norm(x, channels), rows, heads, depth), channels, channels)});
    const std::string wide = gelu_tanh(dense(layer_norm(attended, channels), channels, 4 * channels));
    return node("Add", {attended, dense(wide, 4 * channels, channels)});
  }

 private:
  std::string fresh(const std::string& what) { return what + "_" + std::to_string(made_++); }

  OnnxBuilder& b_;
  int made_ = 0;
};

/// Tokens to scores over a vocabulary, whose table is also the last weight.
inline OnnxBuilder small_language_model(std::int64_t rows, std::int64_t heads, std::int64_t depth, std::int64_t vocabulary) {
  OnnxBuilder b;
  TransformerBuilder t(b);
  const std::int64_t channels = heads * depth;
  b.input("tokens", {1, rows}, 7).weight("table", {vocabulary, channels}, 0.05f);
  std::string x = t.node("Add", {t.node("Gather", {"table", "tokens"}), t.weight({1, rows, channels}, 0.03f)});
  for (int i = 0; i < 2; ++i) x = t.block(x, rows, heads, depth);
  const std::string flat = t.node("Reshape", {t.layer_norm(x, channels), t.ints({rows, channels})});
  const std::string scores = t.node("Gemm", {flat, "table"}, {attribute("transB", std::int64_t{1})});
  b.node("Reshape", {scores, t.ints({1, rows, vocabulary})}, {"scores"}).output("scores");
  return b;
}

}  // namespace sluice::test
