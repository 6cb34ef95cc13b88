#include "tests/golden/made_networks.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/importer/onnx_builder.h"

namespace sluice::test {
namespace {

/// SplitMix64: the next of a sequence of well-mixed numbers.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A graph as it grows: each call appends a node and gives the name of what it makes.
class Network {
 public:
  Network(const std::string& path, const char* input, const Ints& dims, int type)
      : data_name_(std::filesystem::path(path).filename().string() + ".data"), data_(path + ".data", std::ios::binary) {
    graph_.input(input, dims, type);
  }

  std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& attributes = {}) {
    const std::string output = op + std::to_string(count_++);
    graph_.node(op, inputs, {output}, attributes);
    return output;
  }
  std::string integers(const Ints& values) {
    const std::string name = "c" + std::to_string(count_++);
    graph_.initializer(tensor(name, {static_cast<std::int64_t>(values.size())}, values));
    return name;
  }
  std::string number(float value) {
    const std::string name = "c" + std::to_string(count_++);
    graph_.initializer(tensor(name, {}, Floats{value}));
    return name;
  }
  std::string booleans(const Ints& dims, const std::string& bytes) {
    const std::string name = "c" + std::to_string(count_++);
    graph_.initializer(raw_tensor(name, dims, 9, bytes));
    return name;
  }
  /// Values uniform in centre +- bound, from the one seeded sequence of the file.
  std::string weight(const Ints& dims, float bound, float centre = 0) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    const std::string name = "w" + std::to_string(count_++);
    graph_.initializer(external_tensor(name, dims, count * 4));
    std::array<float, 16384> part;
    for (std::int64_t done = 0; done < count;) {
      const auto size = std::min<std::int64_t>(count - done, part.size());
      for (std::int64_t i = 0; i < size; ++i) {
        // 24 bits are exact in a float.
        const auto steps = static_cast<float>(static_cast<std::int64_t>(next_random(state_) >> 40) - (1 << 23));
        part[static_cast<std::size_t>(i)] = centre + bound * (steps / static_cast<float>(1 << 23));
      }
      data_.write(reinterpret_cast<const char*>(part.data()), size * 4);
      done += size;
    }
    data_bytes_ += count * 4;
    return name;
  }
  /// Uniform weights with `gain` times the variance that keeps a signal's power over a sum of `inputs` products.
  std::string even_weight(const Ints& dims, std::int64_t inputs, float gain) {
    return weight(dims, std::sqrt(3 * gain / static_cast<float>(inputs)));
  }

  bool finish(const std::string& path, const std::string& output) {
    graph_.node("Identity", {output}, {"scores"}).output("scores");
    std::ofstream file(path, std::ios::binary);
    file << graph_.bytes();
    file.close();
    data_.close();
    return file.good() && data_.good();
  }

 private:
  std::string external_tensor(const std::string& name, const Ints& dims, std::int64_t bytes) const {
    std::string text;
    protozero::pbf_writer w(text);
    for (const std::int64_t dim : dims) w.add_int64(1, dim);
    w.add_int32(2, 1);
    w.add_string(8, name);
    const std::pair<const char*, std::string> entries[] = {
        {"location", data_name_}, {"offset", std::to_string(data_bytes_)}, {"length", std::to_string(bytes)}};
    for (const auto& [key, value] : entries) {
      protozero::pbf_writer entry(w, 13);
      entry.add_string(1, key);
      entry.add_string(2, value);
    }
    w.add_enum(14, 1);  // data_location: external
    return text;
  }

  OnnxBuilder graph_{17};
  std::string data_name_;
  std::ofstream data_;
  std::int64_t data_bytes_ = 0;
  std::uint64_t state_ = 42;
  int count_ = 0;
};

struct Conv {
  std::int64_t in, out, kernel = 1, stride = 1, groups = 1;
  float gain = 2;  // of a sum that a ReLU follows
};

std::string conv(Network& net, const std::string& x, const Conv& c) {
  const std::int64_t per_group = c.in / c.groups, pad = c.kernel / 2;
  const std::string w = net.even_weight({c.out, per_group, c.kernel, c.kernel}, per_group * c.kernel * c.kernel, c.gain);
  return net.node("Conv", {x, w, net.weight({c.out}, 0.05f)},
                  {attribute("kernel_shape", Ints{c.kernel, c.kernel}), attribute("strides", Ints{c.stride, c.stride}),
                   attribute("pads", Ints{pad, pad, pad, pad}), attribute("group", c.groups)});
}

std::string classify(Network& net, const std::string& features, std::int64_t width) {
  const std::string flat = net.node("Flatten", {net.node("GlobalAveragePool", {features})});
  return net.node("Gemm", {flat, net.even_weight({1000, width}, width, 1), net.weight({1000}, 0.05f)},
                  {attribute("transB", std::int64_t{1})});
}

/// Sandler and others 2018, width 1.
bool mobilenet_v2(const std::string& path) {
  Network net(path, "image", {1, 3, 224, 224}, 1);
  const std::string zero = net.number(0), six = net.number(6);
  const auto relu6 = [&](const std::string& x) { return net.node("Clip", {x, zero, six}); };
  std::string x = relu6(conv(net, "image", {3, 32, 3, 2}));
  std::int64_t in = 32;
  constexpr std::int64_t kBlocks[][4] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                         {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};  // expansion, channels, repeats, stride
  for (const auto& [expansion, out, repeats, first_stride] : kBlocks) {
    for (std::int64_t r = 0; r < repeats; ++r) {
      const std::int64_t wide = in * expansion, stride = r == 0 ? first_stride : 1;
      std::string y = expansion > 1 ? relu6(conv(net, x, {in, wide})) : x;
      y = relu6(conv(net, y, {wide, wide, 3, stride, wide}));
      y = conv(net, y, {.in = wide, .out = out, .gain = 1});
      x = stride == 1 && in == out ? net.node("Add", {x, y}) : y;
      in = out;
    }
  }
  return net.finish(path, classify(net, relu6(conv(net, x, {320, 1280})), 1280));
}

/// He and others 2015, as torchvision has it: the stride is that of the 3x3 convolution.
bool resnet152(const std::string& path) {
  Network net(path, "image", {1, 3, 224, 224}, 1);
  const auto relu = [&](const std::string& x) { return net.node("Relu", {x}); };
  std::string x = net.node("MaxPool", {relu(conv(net, "image", {3, 64, 7, 2}))},
                           {attribute("kernel_shape", Ints{3, 3}), attribute("strides", Ints{2, 2}), attribute("pads", Ints{1, 1, 1, 1})});
  std::int64_t in = 64;
  constexpr std::int64_t kStages[][2] = {{64, 3}, {128, 8}, {256, 36}, {512, 3}};  // inner channels, blocks
  for (const auto& [inner, blocks] : kStages) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t stride = b == 0 && inner > 64 ? 2 : 1;
      std::string y = relu(conv(net, x, {in, inner}));
      y = relu(conv(net, y, {inner, inner, 3, stride}));
      // Fifty blocks add up: each adds little.
      y = conv(net, y, {.in = inner, .out = 4 * inner, .gain = 0.05f});
      const std::string kept = b == 0 ? conv(net, x, {.in = in, .out = 4 * inner, .stride = stride, .gain = 1}) : x;
      x = relu(net.node("Add", {y, kept}));
      in = 4 * inner;
    }
  }
  return net.finish(path, classify(net, x, in));
}

/// What ViT-B/16 and GPT-2 small have in common.
class Transformer {
 public:
  Transformer(Network& net, std::int64_t tokens) : net_(net), tokens_(tokens) {}

  std::string norm(const std::string& x) {
    return net_.node("LayerNormalization", {x, net_.weight({kWidth}, 0.1f, 1), net_.weight({kWidth}, 0.1f)},
                     {attribute("axis", std::int64_t{-1}), attribute("epsilon", 1e-5f)});
  }
  std::string dense(const std::string& x, std::int64_t in, std::int64_t out, float gain = 1) {
    const std::string product = net_.node("MatMul", {x, net_.even_weight({in, out}, in, gain)});
    return net_.node("Add", {product, net_.weight({out}, 0.05f)});
  }
  /// `mask`: what may be seen, or empty.
  std::string layer(std::string x, const std::string& mask, const std::string& least, bool tanh_gelu) {
    x = net_.node("Add", {x, attention(norm(x), mask, least)});
    const std::string wide = dense(norm(x), kWidth, 4 * kWidth);
    return net_.node("Add", {x, dense(tanh_gelu ? gelu_by_tanh(wide) : gelu_by_erf(wide), 4 * kWidth, kWidth, 0.25f)});
  }

  static constexpr std::int64_t kWidth = 768, kHeads = 12, kLayers = 12;

 private:
  std::string heads(const std::string& x, const Ints& order) {
    const std::string split = net_.node("Reshape", {x, net_.integers({1, tokens_, kHeads, kWidth / kHeads})});
    return net_.node("Transpose", {split}, {attribute("perm", order)});
  }
  std::string attention(const std::string& x, const std::string& mask, const std::string& least) {
    const std::string q = heads(dense(x, kWidth, kWidth), {0, 2, 1, 3});
    const std::string k = heads(dense(x, kWidth, kWidth), {0, 2, 3, 1});
    const std::string v = heads(dense(x, kWidth, kWidth), {0, 2, 1, 3});
    std::string scores = net_.node("Mul", {net_.node("MatMul", {q, k}), net_.number(0.125f)});
    if (!mask.empty()) scores = net_.node("Where", {mask, scores, least});
    const std::string seen = net_.node("MatMul", {net_.node("Softmax", {scores}, {attribute("axis", std::int64_t{-1})}), v});
    const std::string order = net_.node("Transpose", {seen}, {attribute("perm", Ints{0, 2, 1, 3})});
    return dense(net_.node("Reshape", {order, net_.integers({1, tokens_, kWidth})}), kWidth, kWidth, 0.25f);
  }
  std::string gelu_by_erf(const std::string& x) {
    const std::string erf = net_.node("Erf", {net_.node("Div", {x, net_.number(std::sqrt(2.0f))})});
    return net_.node("Mul", {net_.node("Mul", {x, net_.node("Add", {erf, net_.number(1)})}), net_.number(0.5f)});
  }
  std::string gelu_by_tanh(const std::string& x) {
    const std::string cube = net_.node("Mul", {net_.node("Mul", {net_.node("Mul", {x, net_.number(0.044715f)}), x}), x});
    const std::string inner = net_.node("Mul", {net_.node("Add", {x, cube}), net_.number(0.7978845608f)});
    const std::string factor = net_.node("Add", {net_.node("Tanh", {inner}), net_.number(1)});
    return net_.node("Mul", {net_.node("Mul", {x, net_.number(0.5f)}), factor});
  }

  Network& net_;
  std::int64_t tokens_;
};

/// Dosovitskiy and others 2020: patches of 16 x 16 and a class token.
bool vit_b_16(const std::string& path) {
  constexpr std::int64_t kPatches = 196, kWidth = Transformer::kWidth;
  Network net(path, "image", {1, 3, 224, 224}, 1);
  const std::string patches = net.node("Conv", {"image", net.even_weight({kWidth, 3, 16, 16}, 768, 1), net.weight({kWidth}, 0.05f)},
                                       {attribute("kernel_shape", Ints{16, 16}), attribute("strides", Ints{16, 16})});
  const std::string rows =
      net.node("Transpose", {net.node("Reshape", {patches, net.integers({1, kWidth, kPatches})})}, {attribute("perm", Ints{0, 2, 1})});
  std::string x = net.node("Concat", {net.weight({1, 1, kWidth}, 1), rows}, {attribute("axis", std::int64_t{1})});
  x = net.node("Add", {x, net.weight({1, kPatches + 1, kWidth}, 0.1f)});
  Transformer transformer(net, kPatches + 1);
  for (std::int64_t i = 0; i < Transformer::kLayers; ++i) x = transformer.layer(x, "", "", false);
  const std::string token = net.node("Gather", {transformer.norm(x), net.integers({0})}, {attribute("axis", std::int64_t{1})});
  const std::string flat = net.node("Flatten", {token});
  return net.finish(path, net.node("Gemm", {flat, net.even_weight({1000, kWidth}, kWidth, 1), net.weight({1000}, 0.05f)},
                                   {attribute("transB", std::int64_t{1})}));
}

/// Radford and others 2019, 124 million weights: the table of tokens is the last layer's weight too.
bool gpt2(const std::string& path) {
  constexpr std::int64_t kTokens = 64, kWords = 50257, kWidth = Transformer::kWidth;
  Network net(path, "tokens", {1, kTokens}, 7);
  const std::string table = net.weight({kWords, kWidth}, 0.035f);
  std::string x = net.node("Add", {net.node("Gather", {table, "tokens"}), net.weight({1, kTokens, kWidth}, 0.02f)});
  std::string seen;  // by row: the tokens up to it
  for (std::int64_t row = 0; row < kTokens; ++row)
    for (std::int64_t column = 0; column < kTokens; ++column) seen += column <= row ? '\1' : '\0';
  const std::string mask = net.booleans({1, 1, kTokens, kTokens}, seen);
  const std::string least = net.number(-1e9f);
  Transformer transformer(net, kTokens);
  for (std::int64_t i = 0; i < Transformer::kLayers; ++i) x = transformer.layer(x, mask, least, true);
  const std::string rows = net.node("Reshape", {transformer.norm(x), net.integers({kTokens, kWidth})});
  const std::string logits = net.node("Gemm", {rows, table}, {attribute("transB", std::int64_t{1})});
  return net.finish(path, net.node("Slice", {logits, net.integers({kTokens - 1, 0}), net.integers({kTokens, kWords}), net.integers({0, 1}),
                                             net.integers({1, 97})}));
}

/// Few weights, and one operator after another that none of the others has: the code that runs is what such a net takes beside its arena.
bool many_kinds(const std::string& path) {
  Network net(path, "x", {1, 8, 200, 200}, 1);
  const auto at = [](const char* name, std::int64_t value) { return attribute(name, value); };
  const auto order = [](const Ints& axes) { return attribute("perm", axes); };
  std::string y = net.node("Sigmoid", {conv(net, "x", {8, 16, 3})});
  y = net.node("LRN", {y}, {at("size", 3)});
  y = net.node("InstanceNormalization", {y, net.weight({16}, 0.1f, 1), net.weight({16}, 0.1f)});
  y = net.node("AveragePool", {y}, {attribute("kernel_shape", Ints{3, 3}), attribute("pads", Ints{1, 1, 1, 1})});
  for (const char* op : {"Sin", "Atan", "Asinh", "Erf", "Softsign", "Selu", "Celu", "ThresholdedRelu", "Cosh"}) y = net.node(op, {y});
  y = net.node("Tanh", {net.node("CumSum", {y, net.integers({2})})});
  y = net.node("Where", {net.node("Not", {net.node("Greater", {y, net.number(0.3f)})}), y, net.node("Softplus", {y})});
  y = net.node("Softmax", {net.node("Transpose", {y}, {order({0, 2, 3, 1})})}, {at("axis", -1)});
  y = net.node("LayerNormalization", {y, net.weight({16}, 0.1f, 1), net.weight({16}, 0.1f)}, {at("axis", -1)});
  y = net.node("Transpose", {net.node("MatMul", {y, net.even_weight({16, 16}, 16, 1)})}, {order({0, 3, 1, 2})});
  y = net.node("Pad", {y, net.integers({0, 0, 1, 1, 0, 0, 1, 1})}, {attribute("mode", "reflect")});
  y = net.node("ReduceL2", {y}, {attribute("axes", Ints{1}), at("keepdims", 1)});
  y = net.node("Trilu", {net.node("Mod", {y, net.number(2.5f)}, {at("fmod", 1)})});
  const std::string place = net.node("Cast", {net.node("ArgMax", {y}, {at("axis", 3)})}, {at("to", 1)});
  y = net.node("Add", {y, net.node("ReduceLogSumExp", {place}, {attribute("axes", Ints{2})})});
  y = net.node("AveragePool", {y}, {attribute("kernel_shape", Ints{8, 8}), attribute("strides", Ints{8, 8})});
  return net.finish(path, y);
}

}  // namespace

bool write_made_network(const std::string& name, const std::string& path) {
  if (name == "mobilenet_v2") return mobilenet_v2(path);
  if (name == "resnet152") return resnet152(path);
  if (name == "vit_b_16") return vit_b_16(path);
  if (name == "many_kinds") return many_kinds(path);
  return name == "gpt2" && gpt2(path);
}

}  // namespace sluice::test
