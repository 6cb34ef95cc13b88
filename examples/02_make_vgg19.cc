// Writes VGG-19 as an ONNX file with seeded weights: 575 MB, made in seconds, the same on every machine.
//
//     02_make_vgg19 vgg19.onnx                 the full network
//     02_make_vgg19 small.onnx --divide 16     a sixteenth of the channels, for tests
//
// The weights are uniform with He's variance, 2 / inputs, so that activations neither fade nor explode and the 1000 scores are spread.
// An ONNX file is a protobuf message; the few fields needed are written by hand. Weights go straight to the file, in parts of 64 KiB.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Fields of the messages, from onnx.proto.
namespace field {
constexpr unsigned kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8;
constexpr unsigned kOpsetVersion = 2;
constexpr unsigned kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr unsigned kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4, kNodeAttribute = 5;
constexpr unsigned kAttributeName = 1, kAttributeInt = 3, kAttributeInts = 8, kAttributeType = 20;
constexpr unsigned kTensorDims = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9;
constexpr unsigned kValueName = 1, kValueType = 2, kTypeTensor = 1, kTensorTypeElement = 1, kTensorTypeShape = 2;
constexpr unsigned kShapeDim = 1, kDimValue = 1;
}  // namespace field
constexpr std::uint64_t kFloat = 1, kAttributeTypeInt = 2, kAttributeTypeInts = 7;

/// A protobuf message under construction.
class Message {
 public:
  Message& number(unsigned id, std::uint64_t value) {
    varint(id << 3);
    varint(value);
    return *this;
  }
  Message& text(unsigned id, std::string_view value) {
    head(id, value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(unsigned id, const Message& value) { return text(id, value.bytes_); }
  /// The key and length of a field whose bytes are written by somebody else.
  Message& head(unsigned id, std::uint64_t size) {
    varint(id << 3 | 2);
    varint(size);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

using Dims = std::vector<std::uint64_t>;

struct Initializer {
  std::string name;
  Dims dims;
  float bound;  // values are uniform in [-bound, bound)

  std::uint64_t count() const {
    std::uint64_t product = 1;
    for (const std::uint64_t dim : dims) product *= dim;
    return product;
  }
  /// All of the TensorProto but its values.
  Message head() const {
    Message message;
    for (const std::uint64_t dim : dims) message.number(field::kTensorDims, dim);
    message.number(field::kTensorType, kFloat).text(field::kTensorName, name).head(field::kTensorRaw, count() * sizeof(float));
    return message;
  }
  /// What precedes the values in a graph.
  Message graph_entry() const {
    const Message tensor = head();
    Message entry;
    entry.head(field::kGraphInitializer, tensor.bytes().size() + count() * sizeof(float));
    return entry;
  }
};

/// The graph as it grows: nodes in order, each reading the value that the former one made.
struct Network {
  Message graph;
  std::vector<Initializer> initializers;
  std::string value = "image";
  int nodes = 0;

  /// Appends a node; weights are "W" and "B" of `name` when `weighted`.
  void add(const std::string& type, const std::string& name, bool weighted, const std::vector<Message>& attributes,
           std::string output = {}) {
    if (output.empty()) output = name + ".out";
    Message node;
    node.text(field::kNodeInput, value);
    if (weighted) node.text(field::kNodeInput, name + ".weight").text(field::kNodeInput, name + ".bias");
    node.text(field::kNodeOutput, output).text(field::kNodeName, name).text(field::kNodeType, type);
    for (const Message& attribute : attributes) node.message(field::kNodeAttribute, attribute);
    graph.message(field::kGraphNode, node);
    value = output;
  }
  void add_weights(const std::string& name, const Dims& dims) {
    const std::uint64_t outputs = dims.front();
    std::uint64_t inputs = 1;
    for (std::size_t i = 1; i < dims.size(); ++i) inputs *= dims[i];
    initializers.push_back({name + ".weight", dims, std::sqrt(6.0f / static_cast<float>(inputs))});
    initializers.push_back({name + ".bias", {outputs}, 0.05f});
  }
};

Message int_attribute(std::string_view name, std::uint64_t value) {
  return Message().text(field::kAttributeName, name).number(field::kAttributeInt, value).number(field::kAttributeType, kAttributeTypeInt);
}

Message ints_attribute(std::string_view name, const Dims& values) {
  Message message;
  message.text(field::kAttributeName, name);
  for (const std::uint64_t value : values) message.number(field::kAttributeInts, value);
  return message.number(field::kAttributeType, kAttributeTypeInts);
}

Message float_tensor_value(std::string_view name, const Dims& dims) {
  Message shape;
  for (const std::uint64_t dim : dims) shape.message(field::kShapeDim, Message().number(field::kDimValue, dim));
  const Message tensor = Message().number(field::kTensorTypeElement, kFloat).message(field::kTensorTypeShape, shape);
  return Message().text(field::kValueName, name).message(field::kValueType, Message().message(field::kTypeTensor, tensor));
}

/// Simonyan and Zisserman's configuration E: five stages of 3x3 convolutions, each ended by a 2x2 pool, then three dense layers.
Network vgg19(std::uint64_t divide) {
  constexpr std::uint64_t kStages[][2] = {{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}};  // channels, convolutions
  Network network;
  std::uint64_t channels = 3;
  int stage = 1;
  for (const auto& [wide, convolutions] : kStages) {
    for (std::uint64_t i = 1; i <= convolutions; ++i) {
      const std::string name = "conv" + std::to_string(stage) + "_" + std::to_string(i);
      network.add_weights(name, {wide / divide, channels, 3, 3});
      channels = wide / divide;
      network.add("Conv", name, true, {ints_attribute("kernel_shape", {3, 3}), ints_attribute("pads", {1, 1, 1, 1})});
      network.add("Relu", name + ".relu", false, {});
    }
    const std::string pool = "pool" + std::to_string(stage++);
    network.add("MaxPool", pool, false, {ints_attribute("kernel_shape", {2, 2}), ints_attribute("strides", {2, 2})});
  }
  network.add("Flatten", "flatten", false, {});
  std::uint64_t features = channels * 7 * 7;
  const std::uint64_t widths[] = {4096 / divide, 4096 / divide, 1000};
  for (int i = 0; i < 3; ++i) {
    const std::string name = "fc" + std::to_string(6 + i);
    network.add_weights(name, {widths[i], features});
    network.add("Gemm", name, true, {int_attribute("transB", 1)}, i == 2 ? "scores" : "");
    if (i < 2) network.add("Relu", name + ".relu", false, {});
    features = widths[i];
  }
  network.graph.text(field::kGraphName, "vgg19");
  network.graph.message(field::kGraphInput, float_tensor_value("image", {1, 3, 224, 224}));
  network.graph.message(field::kGraphOutput, float_tensor_value("scores", {1, 1000}));
  return network;
}

/// SplitMix64.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool write(std::FILE* file, std::span<const char> bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(); }

bool write_values(std::FILE* file, const Initializer& initializer, std::uint64_t& state) {
  std::vector<float> part(16384);
  for (std::uint64_t done = 0; done < initializer.count();) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), initializer.count() - done));
    for (std::size_t i = 0; i < count; ++i) {
      // 24 bits are exact in a float.
      const auto steps = static_cast<float>(static_cast<std::int64_t>(next_random(state) >> 40) - (1 << 23));
      part[i] = initializer.bound * (steps / static_cast<float>(1 << 23));
    }
    if (!write(file, {reinterpret_cast<const char*>(part.data()), count * sizeof(float)})) return false;
    done += count;
  }
  return true;
}

bool write_model(std::FILE* file, const Network& network, std::uint64_t seed) {
  std::uint64_t graph_size = network.graph.bytes().size();
  for (const Initializer& initializer : network.initializers) {
    graph_size += initializer.graph_entry().bytes().size() + initializer.head().bytes().size() + initializer.count() * sizeof(float);
  }
  Message start;
  start.number(field::kModelIrVersion, 7)
      .text(field::kModelProducer, "sluice example")
      .message(field::kModelOpset, Message().number(field::kOpsetVersion, 13));
  start.head(field::kModelGraph, graph_size);
  if (!write(file, start.bytes()) || !write(file, network.graph.bytes())) return false;
  std::uint64_t state = seed;
  for (const Initializer& initializer : network.initializers) {
    if (!write(file, initializer.graph_entry().bytes()) || !write(file, initializer.head().bytes())) return false;
    if (!write_values(file, initializer, state)) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t divide = 1;
  std::uint64_t seed = 19;
  const bool options_paired = argc >= 2 && argc % 2 == 0;
  for (int i = 2; options_paired && i < argc; i += 2) {
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--divide") == 0) divide = value;
    if (std::strcmp(argv[i], "--seed") == 0) seed = value;
  }
  if (!options_paired || divide == 0 || 64 % divide != 0) {
    std::fputs("usage: 02_make_vgg19 OUT.onnx [--divide 1|2|4|...|64] [--seed N]\n", stderr);
    return 1;
  }
  std::FILE* file = std::fopen(argv[1], "wb");
  const bool written = file != nullptr && write_model(file, vgg19(divide), seed);
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!written || !closed) {
    std::perror(argv[1]);
    return 5;
  }
  return 0;
}
