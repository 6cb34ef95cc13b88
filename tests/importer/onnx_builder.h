// Writes small ONNX files for tests, field by field, so that a test can also write what no exporter would.
#pragma once

#include <cstdint>
#include <fstream>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <vector>

namespace sluice::test {

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// The bytes of an AttributeProto.
inline std::string attribute(const std::string& name, std::int64_t value) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_int64(3, value);
  w.add_enum(20, 2);
  return bytes;
}
inline std::string attribute(const std::string& name, float value) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_float(2, value);
  w.add_enum(20, 1);
  return bytes;
}
inline std::string attribute(const std::string& name, const char* value) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_bytes(4, std::string(value));
  w.add_enum(20, 3);
  return bytes;
}
inline std::string attribute(const std::string& name, const Ints& values) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  for (const std::int64_t value : values) w.add_int64(8, value);
  w.add_enum(20, 7);
  return bytes;
}

/// A TensorProto with raw data, whatever its dims say.
inline std::string raw_tensor(const std::string& name, const Ints& dims, int type, std::string_view raw) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const std::int64_t dim : dims) w.add_int64(1, dim);
  w.add_int32(2, type);
  w.add_string(8, name);
  w.add_bytes(9, raw.data(), raw.size());
  return bytes;
}
inline std::string tensor(const std::string& name, const Ints& dims, const Floats& values) {
  return raw_tensor(name, dims, 1, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}
inline std::string tensor(const std::string& name, const Ints& dims, const Ints& values) {
  return raw_tensor(name, dims, 7, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)});
}
inline std::string tensor_attribute(const std::string& name, const std::string& tensor_bytes) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_message(5, tensor_bytes);
  w.add_enum(20, 4);
  return bytes;
}

/// Values that are small, different and the same everywhere.
inline Floats ramp(std::int64_t count, float step = 0.01f) {
  Floats values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(step * static_cast<float>((i * 7) % 23 - 11));
  return values;
}

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int opset = 13) : opset_(opset) {}

  OnnxBuilder& input(const std::string& name, const Ints& dims, int type = 1) { return port(11, name, dims, type); }
  OnnxBuilder& output(const std::string& name, int type = 1) { return port(12, name, {}, type); }
  /// An input one of whose extents has a name instead of a number.
  OnnxBuilder& free_input(const std::string& name, const std::string& param, const Ints& rest) { return port(11, name, rest, 1, param); }
  /// An input that is a sequence (of tensors of this shape), and an output that is one.
  OnnxBuilder& sequence_input(const std::string& name, const Ints& dims) { return port(11, name, dims, 1, "", 4); }
  OnnxBuilder& sequence_output(const std::string& name) { return port(12, name, {}, 1, "", 4); }
  OnnxBuilder& initializer(const std::string& tensor_bytes) { return field(5, tensor_bytes); }
  OnnxBuilder& weight(const std::string& name, const Ints& dims, float step = 0.01f) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    return initializer(tensor(name, dims, ramp(count, step)));
  }
  OnnxBuilder& node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                    const std::vector<std::string>& attributes = {}, const std::string& domain = "") {
    std::string bytes;
    protozero::pbf_writer w(bytes);
    for (const std::string& name : inputs) w.add_string(1, name);
    for (const std::string& name : outputs) w.add_string(2, name);
    w.add_string(3, op + "_" + (outputs.empty() ? "none" : outputs[0]));
    w.add_string(4, op);
    for (const std::string& a : attributes) w.add_message(5, a);
    if (!domain.empty()) w.add_string(7, domain);
    return field(1, bytes);
  }
  /// A field of the GraphProto, as bytes.
  OnnxBuilder& field(std::uint32_t tag, const std::string& bytes) {
    protozero::pbf_writer w(graph_);
    w.add_message(tag, bytes);
    return *this;
  }

  /// Whose operator set the file names; ONNX's own unless a test says otherwise.
  OnnxBuilder& domain(const std::string& name) {
    domain_ = name;
    return *this;
  }

  std::string bytes() const {
    std::string model;
    protozero::pbf_writer w(model);
    w.add_int64(1, 8);
    w.add_message(7, graph_);
    std::string opset;
    protozero::pbf_writer o(opset);
    o.add_string(1, domain_);
    o.add_int64(2, opset_);
    w.add_message(8, opset);
    return model;
  }

  /// The GraphProto alone: a body.
  const std::string& graph() const { return graph_; }

 private:
  OnnxBuilder& port(std::uint32_t tag, const std::string& name, const Ints& dims, int type, const std::string& param = "",
                    std::uint32_t holder = 0) {
    std::string shape, tensor_type, type_bytes, bytes;
    protozero::pbf_writer s(shape);
    const auto add_dim = [&](auto&& fill) {
      std::string dim;
      protozero::pbf_writer d(dim);
      fill(d);
      s.add_message(1, dim);
    };
    if (!param.empty()) add_dim([&](protozero::pbf_writer& d) { d.add_string(2, param); });
    for (const std::int64_t extent : dims) add_dim([&](protozero::pbf_writer& d) { d.add_int64(1, extent); });
    protozero::pbf_writer t(tensor_type);
    t.add_int32(1, type);
    t.add_message(2, shape);
    protozero::pbf_writer v(type_bytes);
    v.add_message(1, tensor_type);
    if (holder != 0) {  // of TypeProto: what holds tensors of that type
      std::string element, held;
      protozero::pbf_writer(element).add_message(1, type_bytes);
      protozero::pbf_writer(held).add_message(holder, element);
      type_bytes = held;
    }
    protozero::pbf_writer w(bytes);
    w.add_string(1, name);
    w.add_message(2, type_bytes);
    return field(tag, bytes);
  }

  int opset_;
  std::string domain_;
  std::string graph_;
};

/// A body of If, Loop or Scan.
inline std::string attribute(const std::string& name, const OnnxBuilder& body) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, name);
  w.add_message(6, body.graph());
  w.add_enum(20, 5);
  return bytes;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// "y", the rows of x [4, 2] whose first value is not zero, times 10: how many there are is known at run only. "zero" is the constant [0].
inline OnnxBuilder rows_without_leading_zero() {
  OnnxBuilder b;
  b.input("x", {4, 2}).initializer(tensor("zero", {1}, Ints{0})).initializer(tensor("one", {1}, Ints{1}));
  b.initializer(tensor("ten", {1}, Floats{10})).initializer(tensor("flat", {1}, Ints{-1}));
  b.node("Slice", {"x", "zero", "one", "one"}, {"first"}).node("NonZero", {"first"}, {"places"});
  b.node("Slice", {"places", "zero", "one", "zero"}, {"row"}).node("Reshape", {"row", "flat"}, {"rows"});
  b.node("Gather", {"x", "rows"}, {"kept"}, {attribute("axis", std::int64_t{0})}).node("Mul", {"kept", "ten"}, {"y"});
  return b;
}

}  // namespace sluice::test
