#include "tests/prediction/families.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/importer/onnx_builder.h"

namespace sluice::test {
namespace {

/// A TensorProto of shape and type alone.
std::string shape_alone(const std::string& name, const Ints& dims) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const std::int64_t dim : dims) w.add_int64(1, dim);
  w.add_int32(2, 1);
  w.add_string(8, name);
  return bytes;
}

/// An image or a sequence on its way through the net.
struct Map {
  std::string name;
  std::int64_t channels = 3;
  std::int64_t extent = 224;
};

class Net {
 public:
  Net(std::string_view family, std::uint32_t number, Arithmetic arithmetic) : integers_(arithmetic == Arithmetic::kIntegers) {
    for (const char c : family) state_ = state_ * 131 + static_cast<unsigned char>(c);
    state_ = (state_ + number) * 0x9e3779b97f4a7c15u + number;
    for (int i = 0; i < 8; ++i) below(2);
  }

  std::uint32_t below(std::uint32_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % count;
  }
  /// 0.3 to 1.7 of what the family has, in whole channels of `step`.
  std::int64_t width(std::int64_t usual, std::int64_t step = 1) {
    const double wanted = static_cast<double>(usual) * (0.3 + 1.4 * below(1000) / 1000.0);
    return std::max<std::int64_t>(step, static_cast<std::int64_t>(std::lround(wanted / static_cast<double>(step))) * step);
  }
  std::int64_t one_of(const Ints& values) { return values[below(static_cast<std::uint32_t>(values.size()))]; }

  Map image(std::int64_t extent = 224) {
    b_.input("x", {1, 3, extent, extent});
    return {quantised("x"), 3, extent};
  }
  std::string fresh(const char* what) { return what + std::to_string(made_++); }
  std::string weight(const Ints& dims) {
    const std::string name = fresh("w");
    b_.initializer(shape_alone(name, dims));
    return name;
  }
  std::string ints(const Ints& values) {
    const std::string name = fresh("i");
    b_.initializer(tensor(name, {static_cast<std::int64_t>(values.size())}, values));
    return name;
  }
  std::string real(float value) {
    const std::string name = fresh("r");
    b_.initializer(tensor(name, {}, Floats{value}));
    return name;
  }
  std::string node(const char* op, const std::vector<std::string>& inputs, const std::vector<std::string>& attributes = {}) {
    const std::string name = fresh(op);
    b_.node(op, inputs, {name}, attributes);
    return name;
  }

  /// Of nets of integers: rounded to 8 bits, as QuantizeLinear and DequantizeLinear say it. A value more narrows nothing.
  std::string quantised(const std::string& x) {
    if (!integers_) return x;
    const std::string scale = real(0.05f), zero = fresh("z");
    b_.initializer(raw_tensor(zero, {}, 2, "\x80"));
    return node("DequantizeLinear", {node("QuantizeLinear", {x, scale, zero}), scale, zero});
  }
  /// The weight of a layer of so many sums; of nets of integers with values of 8 bits.
  std::string panels(const Ints& dims, std::int64_t sums) {
    if (!integers_) return weight(dims);
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    std::string values(static_cast<std::size_t>(count), '\0');
    std::uint32_t state = static_cast<std::uint32_t>(made_) * 2654435769u + 1;
    for (char& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<char>(static_cast<std::int32_t>(state >> 24) % 255 - 127);
    }
    const std::string name = fresh("w");
    b_.initializer(raw_tensor(name, dims, 3, values));
    return node("DequantizeLinear", {name, real(std::sqrt(6 / static_cast<float>(sums)) / 127)});
  }

  /// With a batch norm behind it, as exporters leave it where training code has one, and an activation: "", or the name of its operator.
  Map conv(const Map& in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1, const std::string& activation = "Relu",
           std::int64_t groups = 1) {
    const std::int64_t pad = kernel / 2;
    const std::int64_t depth = in.channels / groups;
    std::vector<std::string> inputs{in.name, panels({out, depth, kernel, kernel}, depth * kernel * kernel)};
    if (integers_) inputs.push_back(weight({out}));  // which has the norm in it
    std::string y = node("Conv", inputs,
                         {attribute("kernel_shape", Ints{kernel, kernel}), attribute("strides", Ints{stride, stride}),
                          attribute("pads", Ints{pad, pad, pad, pad}), attribute("group", groups)});
    if (!integers_) y = node("BatchNormalization", {y, weight({out}), weight({out}), weight({out}), weight({out})});
    return {quantised(activate(y, activation)), out, (in.extent + 2 * pad - kernel) / stride + 1};
  }
  Map depthwise(const Map& in, std::int64_t kernel, std::int64_t stride, const std::string& activation = "Relu") {
    return conv(in, in.channels, kernel, stride, activation, in.channels);
  }
  std::string activate(const std::string& x, const std::string& activation) {
    if (activation.empty()) return x;
    if (activation == "Relu6") return node("Clip", {x, real(0), real(6)});
    return node(activation.c_str(), {activation == "Relu" ? x : quantised(x)});
  }
  std::string rectified(const std::string& x) { return quantised(node("Relu", {x})); }
  Map pool(const Map& in, const char* kind, std::int64_t kernel, std::int64_t stride) {
    const std::int64_t pad = kernel == 3 ? 1 : 0;
    const std::string y = node(kind, {in.name},
                               {attribute("kernel_shape", Ints{kernel, kernel}), attribute("strides", Ints{stride, stride}),
                                attribute("pads", Ints{pad, pad, pad, pad})});
    return {quantised(y), in.channels, (in.extent + 2 * pad - kernel) / stride + 1};
  }
  Map max_pool(const Map& in, std::int64_t kernel = 3, std::int64_t stride = 2) { return pool(in, "MaxPool", kernel, stride); }
  Map add(const Map& a, const Map& b, const std::string& activation = "") {
    return {quantised(activate(node("Add", {a.name, b.name}), activation)), a.channels, a.extent};
  }
  Map concat(const std::vector<Map>& maps) {
    std::vector<std::string> names;
    std::int64_t channels = 0;
    for (const Map& map : maps) names.push_back(map.name), channels += map.channels;
    return {quantised(node("Concat", names, {attribute("axis", std::int64_t{1})})), channels, maps.front().extent};
  }
  std::string dense(const std::string& x, std::int64_t in, std::int64_t out) {
    return node("Gemm", {x, panels({out, in}, in), weight({out})}, {attribute("transB", std::int64_t{1})});
  }
  std::string flat(const Map& map) { return node("Flatten", {map.name}); }
  std::string pooled(const Map& map) { return node("Flatten", {quantised(node("GlobalAveragePool", {map.name}))}); }
  std::string classified(const Map& map, std::int64_t classes = 1000) { return dense(pooled(map), map.channels, classes); }

  Map squeeze_excite(const Map& map, std::int64_t inner) {
    const Map small{quantised(node("GlobalAveragePool", {map.name})), map.channels, 1};
    const auto pointwise = [&](const std::string& x, std::int64_t in, std::int64_t out) {
      return node("Conv", {x, panels({out, in, 1, 1}, in), weight({out})}, {attribute("kernel_shape", Ints{1, 1})});
    };
    const std::string inside = rectified(pointwise(small.name, map.channels, inner));
    const std::string scale = quantised(
        node("HardSigmoid", {quantised(pointwise(inside, inner, map.channels))}, {attribute("alpha", 1.0f / 6), attribute("beta", 0.5f)}));
    return {quantised(node("Mul", {map.name, scale})), map.channels, map.extent};
  }
  /// 1x1 wide, depthwise, 1x1 narrow, and the way round where shapes allow it.
  Map inverted(const Map& in, std::int64_t wide, std::int64_t out, std::int64_t kernel, std::int64_t stride, const std::string& activation,
               bool excite = false) {
    Map map = wide == in.channels ? in : conv(in, wide, 1, 1, activation);
    map = depthwise(map, kernel, stride, activation);
    if (excite) map = squeeze_excite(map, std::max<std::int64_t>(8, wide / 4));
    map = conv(map, out, 1, 1, "");
    return stride == 1 && out == in.channels ? add(in, map) : map;
  }

  std::string layer_norm(const std::string& x, std::int64_t channels) {
    const std::vector<std::string> last{attribute("axes", Ints{-1})};
    const std::string difference = node("Sub", {x, node("ReduceMean", {x}, last)});
    const std::string variance = node("ReduceMean", {node("Pow", {difference, real(2)})}, last);
    const std::string ratio = node("Div", {difference, node("Sqrt", {node("Add", {variance, real(1e-5f)})})});
    return node("Add", {node("Mul", {ratio, weight({channels})}), weight({channels})});
  }
  std::string linear(const std::string& x, std::int64_t in, std::int64_t out) {
    return node("Add", {node("MatMul", {quantised(x), panels({in, out}, in)}), weight({out})});
  }
  std::string gelu(const std::string& x) {
    const std::string factor = node("Add", {node("Erf", {node("Div", {x, real(std::sqrt(2.0f))})}), real(1)});
    return node("Mul", {node("Mul", {x, factor}), real(0.5f)});
  }
  std::string attention(const std::string& x, std::int64_t rows, std::int64_t heads, std::int64_t depth, bool causal) {
    const std::int64_t channels = heads * depth;
    const auto part = [&](const Ints& perm) {
      return node("Transpose", {node("Reshape", {linear(x, channels, channels), ints({1, rows, heads, depth})})},
                  {attribute("perm", perm)});
    };
    const std::string q = part({0, 2, 1, 3}), k = part({0, 2, 3, 1}), v = part({0, 2, 1, 3});
    std::string scores = node("Mul", {node("MatMul", {q, k}), real(1 / std::sqrt(static_cast<float>(depth)))});
    if (causal) {
      std::string bytes;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < rows; ++c) bytes += c > r ? '\1' : '\0';
      const std::string mask = fresh("mask");
      b_.initializer(raw_tensor(mask, {1, 1, rows, rows}, 9, bytes));
      scores = node("Where", {mask, real(-1e9f), scores});
    }
    const std::string shares = node("Softmax", {scores}, {attribute("axis", std::int64_t{-1})});
    const std::string mixed = node("Transpose", {node("MatMul", {shares, v})}, {attribute("perm", Ints{0, 2, 1, 3})});
    return linear(node("Reshape", {mixed, ints({1, rows, channels})}), channels, channels);
  }
  std::string block(const std::string& x, std::int64_t rows, std::int64_t heads, std::int64_t depth, std::int64_t wide, bool causal) {
    const std::int64_t channels = heads * depth;
    const std::string attended = node("Add", {x, attention(layer_norm(x, channels), rows, heads, depth, causal)});
    return node("Add", {attended, linear(gelu(linear(layer_norm(attended, channels), channels, wide)), wide, channels)});
  }

  OnnxBuilder& builder() { return b_; }
  std::string finish(const std::string& last) {
    b_.node("Identity", {last}, {"y"}).output("y");
    return b_.bytes();
  }

 private:
  OnnxBuilder b_{14};
  bool integers_ = false;
  std::uint64_t state_ = 28;
  int made_ = 0;
};

std::string alexnet(Net& net) {
  Map m = net.max_pool(net.conv(net.image(), net.width(64), net.one_of({7, 9, 11}), 4));
  m = net.max_pool(net.conv(m, net.width(192), net.one_of({3, 5, 7})));
  for (const std::int64_t usual : {384, 256, 256}) m = net.conv(m, net.width(usual), net.one_of({1, 3, 5}));
  m = net.max_pool(m);
  const std::int64_t first = net.width(4096), second = net.width(4096);
  const std::string hidden = net.rectified(net.dense(net.flat(m), m.channels * m.extent * m.extent, first));
  return net.finish(net.dense(net.rectified(net.dense(hidden, first, second)), second, 1000));
}

std::string vgg(Net& net) {
  Map m = net.image();
  for (const std::int64_t usual : {64, 128, 256, 512, 512}) {
    for (std::uint32_t layer = 0, layers = 1 + net.below(3); layer < layers; ++layer)
      m = net.conv(m, net.width(usual), net.one_of({1, 3, 3, 5}));
    m = net.max_pool(m, 2, 2);
  }
  const std::int64_t hidden = net.width(2048);
  const std::string x = net.rectified(net.dense(net.flat(m), m.channels * m.extent * m.extent, hidden));
  return net.finish(net.dense(x, hidden, 1000));
}

std::string densenet(Net& net) {
  const std::int64_t growth = net.width(32);
  Map m = net.max_pool(net.conv(net.image(), net.width(64), 7, 2));
  for (const std::uint32_t usual : {6u, 12u, 16u, 8u}) {
    for (std::uint32_t layer = 0, layers = usual / 2 + net.below(usual); layer < layers; ++layer)
      m = net.concat({m, net.conv(net.conv(m, 4 * growth, 1), growth, net.one_of({3, 3, 5}))});
    if (m.extent > 7) m = net.pool(net.conv(m, std::max<std::int64_t>(8, m.channels / 2), 1), "AveragePool", 2, 2);
  }
  return net.finish(net.classified(m));
}

std::string googlenet(Net& net) {
  Map m = net.max_pool(net.conv(net.image(), net.width(64), 7, 2));
  m = net.max_pool(net.conv(net.conv(m, net.width(64), 1), net.width(192), 3));
  const std::int64_t usual[][6] = {{64, 96, 128, 16, 32, 32},   {128, 128, 192, 32, 96, 64},   {192, 96, 208, 16, 48, 64},
                                   {160, 112, 224, 24, 64, 64}, {256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128}};
  for (std::size_t i = 0; i < std::size(usual); ++i) {
    const auto& u = usual[i];
    const Map a = net.conv(m, net.width(u[0]), 1);
    const Map b = net.conv(net.conv(m, net.width(u[1]), 1), net.width(u[2]), 3);
    const Map c = net.conv(net.conv(m, net.width(u[3]), 1), net.width(u[4]), net.one_of({3, 5}));
    m = net.concat({a, b, c, net.conv(net.pool(m, "MaxPool", 3, 1), net.width(u[5]), 1)});
    if (i == 1 || i == 4) m = net.max_pool(m);
  }
  return net.finish(net.classified(m));
}

std::string squeezenet(Net& net) {
  Map m = net.max_pool(net.conv(net.image(), net.width(64), net.one_of({3, 5, 7}), 2));
  int fire = 0;
  for (const std::int64_t usual : {16, 16, 32, 32, 48, 48, 64, 64}) {
    const Map squeezed = net.conv(m, net.width(usual), 1);
    m = net.concat({net.conv(squeezed, net.width(4 * usual), 1), net.conv(squeezed, net.width(4 * usual), net.one_of({3, 3, 5}))});
    if (++fire == 2 || fire == 4) m = net.max_pool(m);
  }
  return net.finish(net.pooled(net.conv(m, 1000, 1)));
}

std::string resnet(Net& net) {
  const bool bottleneck = net.below(2) == 1;
  Map m = net.max_pool(net.conv(net.image(), net.width(64), net.one_of({3, 5, 7}), 2));
  for (const std::int64_t usual : {64, 128, 256, 512}) {
    const std::int64_t out = net.width(bottleneck ? 4 * usual : usual);
    for (std::uint32_t layer = 0, layers = 1 + net.below(4); layer < layers; ++layer) {
      const std::int64_t stride = layer == 0 && usual > 64 ? 2 : 1, middle = net.width(usual), kernel = net.one_of({3, 3, 5});
      const Map inside = bottleneck ? net.conv(net.conv(net.conv(m, middle, 1), middle, kernel, stride), out, 1, 1, "")
                                    : net.conv(net.conv(m, middle, kernel, stride), out, 3, 1, "");
      const Map beside = layer == 0 ? net.conv(m, out, 1, stride, "") : m;
      m = net.add(inside, beside, "Relu");
    }
  }
  return net.finish(net.classified(m));
}

std::string mobilenet_v1(Net& net) {
  Map m = net.conv(net.image(), net.width(32), 3, 2);
  const std::int64_t usual[][2] = {{64, 1},  {128, 2}, {128, 1}, {256, 2},  {256, 1}, {512, 2},
                                   {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  for (const auto& [channels, stride] : usual) m = net.conv(net.depthwise(m, net.one_of({3, 3, 5, 7}), stride), net.width(channels), 1);
  return net.finish(net.classified(m));
}

/// Stages of inverted bottlenecks: channels, layers, stride, widening.
using Stages = std::vector<Ints>;
std::string inverted_net(Net& net, const Stages& stages, const Ints& kernels, const std::string& activation, bool excites,
                         std::int64_t head) {
  Map m = net.conv(net.image(), net.width(32, 8), 3, 2, activation);
  m = net.conv(net.depthwise(m, 3, 1, activation), net.width(16, 8), 1, 1, "");
  for (const Ints& stage : stages) {
    const std::int64_t out = net.width(stage[0], net.one_of({1, 4, 8}));
    for (std::int64_t layer = 0; layer < stage[1]; ++layer) {
      const std::int64_t wide = m.channels * net.one_of({stage[3] - 1, stage[3], stage[3] + 1});
      const bool excite = excites && net.below(2) == 1;
      m = net.inverted(m, std::max(m.channels, wide), out, net.one_of(kernels), layer == 0 ? stage[2] : 1, activation, excite);
    }
  }
  return net.finish(net.classified(net.conv(m, net.width(head), 1, 1, activation)));
}
std::string mobilenet_v2(Net& net) {
  return inverted_net(net, {{24, 2, 2, 6}, {32, 3, 2, 6}, {64, 4, 2, 6}, {96, 3, 1, 6}, {160, 3, 2, 6}, {320, 1, 1, 6}}, {3, 5, 7}, "Relu6",
                      false, 1280);
}
std::string mobilenet_v3(Net& net) {
  return inverted_net(net, {{24, 2, 2, 4}, {40, 3, 2, 3}, {80, 4, 2, 3}, {112, 2, 1, 6}, {160, 3, 2, 6}}, {3, 5}, "HardSwish", true, 960);
}
std::string mnasnet(Net& net) {
  return inverted_net(net, {{24, 3, 2, 3}, {40, 3, 2, 3}, {80, 3, 2, 6}, {96, 2, 1, 6}, {192, 4, 2, 6}, {320, 1, 1, 6}}, {3, 5}, "Relu",
                      false, 1280);
}
std::string proxylessnas(Net& net) {
  return inverted_net(net, {{32, 2, 2, 3}, {56, 4, 2, 3}, {112, 4, 2, 6}, {128, 4, 1, 3}, {256, 4, 2, 6}, {432, 1, 1, 6}}, {3, 5, 7},
                      "Relu6", false, 1728);
}

Map shuffled(Net& net, const Map& m) {
  const std::string split = net.node("Reshape", {m.name, net.ints({1, 2, m.channels / 2, m.extent, m.extent})});
  const std::string turned = net.node("Transpose", {split}, {attribute("perm", Ints{0, 2, 1, 3, 4})});
  return {net.node("Reshape", {turned, net.ints({1, m.channels, m.extent, m.extent})}), m.channels, m.extent};
}
std::string shufflenet_v2(Net& net) {
  Map m = net.max_pool(net.conv(net.image(), net.width(24), 3, 2));
  for (const std::int64_t usual : {116, 232, 464}) {
    const std::int64_t half = net.width(usual / 2), kernel = net.one_of({3, 3, 5, 7});
    const Map left = net.conv(net.depthwise(m, kernel, 2, ""), half, 1);
    m = shuffled(net, net.concat({left, net.conv(net.depthwise(net.conv(m, half, 1), kernel, 2, ""), half, 1)}));
    for (std::uint32_t layer = 0, layers = 2 + net.below(4); layer < layers; ++layer) {
      const auto slice_on_channels = [&](bool second) {
        const std::string y =
            net.node("Slice", {m.name, net.ints({second ? half : 0}), net.ints({second ? 2 * half : half}), net.ints({1})});
        return Map{y, half, m.extent};
      };
      const Map kept = slice_on_channels(false), worked = slice_on_channels(true);
      m = shuffled(net, net.concat({kept, net.conv(net.depthwise(net.conv(worked, half, 1), net.one_of({3, 3, 5}), 1, ""), half, 1)}));
    }
  }
  return net.finish(net.classified(net.conv(m, net.width(1024), 1)));
}

/// Cells of four places joined by one of five operations each, on maps of 32 x 32.
std::string nasbench201(Net& net) {
  Map m = net.conv(net.image(32), net.width(16, 2), 3);
  std::uint32_t operations[6];
  for (std::uint32_t& operation : operations) operation = net.below(5);
  operations[2] = 1 + net.below(2);  // something convolves
  const auto edge = [&](const Map& from, std::uint32_t operation) {
    if (operation == 1) return net.conv(from, from.channels, 1);
    if (operation == 2) return net.conv(from, from.channels, 3);
    return operation == 3 ? net.pool(from, "AveragePool", 3, 1) : from;
  };
  const auto cell = [&](const Map& in) {
    const Map a = edge(in, operations[0]);
    const Map b = net.add(edge(in, operations[1]), edge(a, operations[2]));
    return net.add(net.add(edge(in, operations[3]), edge(a, operations[4])), edge(b, operations[5]));
  };
  for (int stage = 0; stage < 3; ++stage) {
    if (stage > 0) {
      const std::int64_t out = net.width(16 << stage, 2);
      m = net.add(net.conv(net.conv(m, out, 3, 2), out, 3, 1, ""), net.conv(net.pool(m, "AveragePool", 2, 2), out, 1, 1, ""));
    }
    for (std::uint32_t layer = 0, layers = 2 + net.below(4); layer < layers; ++layer) m = cell(m);
  }
  return net.finish(net.classified(m, 10));
}

std::string encoder(Net& net) {
  const std::int64_t heads = net.one_of({2, 3, 4, 6, 8, 12}), depth = net.one_of({32, 48, 64}), channels = heads * depth;
  const std::int64_t rows = net.one_of({16, 49, 64, 100, 128, 196, 256});
  net.builder().input("x", {1, rows, channels});
  std::string x = "x";
  const std::int64_t wide = net.width(4 * channels, 8);
  for (std::uint32_t layer = 0, layers = 1 + net.below(6); layer < layers; ++layer) x = net.block(x, rows, heads, depth, wide, false);
  return net.finish(net.linear(net.layer_norm(x, channels), channels, net.width(500)));
}

std::string language(Net& net) {
  const std::int64_t heads = net.one_of({2, 4, 6, 8, 12}), depth = net.one_of({32, 64}), channels = heads * depth;
  const std::int64_t rows = net.one_of({8, 16, 32, 64, 128}), words = net.width(8000, 8);
  net.builder().input("tokens", {1, rows}, 7);
  std::string x = net.node("Gather", {net.weight({words, channels}), "tokens"});
  for (std::uint32_t layer = 0, layers = 1 + net.below(6); layer < layers; ++layer)
    x = net.block(x, rows, heads, depth, 4 * channels, true);
  return net.finish(net.linear(net.layer_norm(x, channels), channels, words));
}

/// Convolutions over time, some with a recurrent layer behind them.
std::string sequence(Net& net) {
  std::int64_t length = net.one_of({128, 400, 1000, 4000, 8000}), channels = net.one_of({1, 3, 9, 40});
  net.builder().input("x", {1, channels, length});
  std::string x = net.quantised("x");
  for (std::uint32_t layer = 0, layers = 3 + net.below(5); layer < layers && length >= 16; ++layer) {
    const std::int64_t out = net.width(32 << (layer / 2), 4), kernel = net.one_of({3, 5, 7, 9}), stride = 1 + net.below(2),
                       pad = kernel / 2;
    x = net.node("Conv", {x, net.panels({out, channels, kernel}, channels * kernel), net.weight({out})},
                 {attribute("kernel_shape", Ints{kernel}), attribute("strides", Ints{stride}), attribute("pads", Ints{pad, pad})});
    x = net.quantised(net.activate(x, net.below(3) == 0 ? "Tanh" : "Relu"));
    length = (length + 2 * pad - kernel) / stride + 1;
    channels = out;
  }
  if (net.below(2) == 1 && length <= 500) {
    const std::int64_t hidden = net.one_of({32, 64, 128});
    const std::string time = net.node("Transpose", {x}, {attribute("perm", Ints{2, 0, 1})}), y = net.fresh("lstm");
    net.builder().node("LSTM",
                       {time, net.weight({1, 4 * hidden, channels}), net.weight({1, 4 * hidden, hidden}), net.weight({1, 8 * hidden})}, {y},
                       {attribute("hidden_size", hidden)});
    return net.finish(net.linear(net.node("Reshape", {y, net.ints({length, hidden})}), hidden, net.width(40)));
  }
  const std::string mean = net.node("Flatten", {net.quantised(net.node("GlobalAveragePool", {x}))});
  return net.finish(net.dense(mean, channels, net.width(40)));
}

struct Family {
  std::string_view name;
  std::string (*make)(Net& net);
};
constexpr Family kFamilies[] = {{"alexnet", alexnet},           {"vgg", vgg},
                                {"densenet", densenet},         {"googlenet", googlenet},
                                {"squeezenet", squeezenet},     {"resnet", resnet},
                                {"mobilenet_v1", mobilenet_v1}, {"mobilenet_v2", mobilenet_v2},
                                {"mobilenet_v3", mobilenet_v3}, {"shufflenet_v2", shufflenet_v2},
                                {"mnasnet", mnasnet},           {"proxylessnas", proxylessnas},
                                {"nasbench201", nasbench201},   {"encoder", encoder},
                                {"language", language},         {"sequence", sequence}};

}  // namespace

std::span<const std::string_view> family_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Family& family : kFamilies) all.push_back(family.name);
    return all;
  }();
  return names;
}

std::string variant_of(std::string_view family, std::uint32_t number, Arithmetic arithmetic) {
  for (const Family& each : kFamilies) {
    if (each.name != family) continue;
    Net net(family, number, arithmetic);
    return each.make(net);
  }
  return {};
}

}  // namespace sluice::test
