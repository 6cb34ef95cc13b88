#include "src/quantiser/write_onnx.h"

#include <protozero/pbf_writer.hpp>
#include <set>
#include <vector>

#include "sluice/core/file.h"
#include "src/importer/refusal.h"

namespace sluice::quantiser {
namespace {

using importer::AttributeType;
using importer::Constant;
using importer::OnnxAttribute;
using importer::OnnxGraph;
using importer::OnnxInitializer;
using importer::OnnxNode;
using importer::OnnxPort;
using importer::refuse_unsupported;
using protozero::pbf_writer;

void add_text(pbf_writer& to, std::uint32_t tag, std::string_view text) { to.add_bytes(tag, text.data(), text.size()); }

/// The fields of a TensorProto but its values, which stand behind it.
std::string tensor_head(std::string_view name, const Constant& tensor) {
  if (tensor.bits != 8 || tensor.strides != importer::dense_strides(tensor.shape))
    refuse_unsupported("tensor `" + std::string(name) + "` is of a type that is read and not written");
  std::string bytes;
  pbf_writer to(bytes);
  for (const std::int64_t extent : tensor.shape.dims()) to.add_int64(1, extent);
  to.add_int64(2, importer::onnx_type_of(tensor.dtype));
  add_text(to, 8, name);
  return bytes;
}

std::string_view stored_values(const Constant& tensor) {
  return {reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.elements()) * size_of(tensor.dtype)};
}

std::string attribute_bytes(const OnnxAttribute& attribute) {
  std::string bytes;
  pbf_writer to(bytes);
  add_text(to, 1, attribute.name);
  to.add_int64(20, static_cast<std::int64_t>(attribute.type));
  switch (attribute.type) {
    case AttributeType::kFloat:
      to.add_float(2, attribute.f);
      return bytes;
    case AttributeType::kInt:
      to.add_int64(3, attribute.i);
      return bytes;
    case AttributeType::kString:
      add_text(to, 4, attribute.s);
      return bytes;
    case AttributeType::kTensor: {
      if (!attribute.tensor_problem.empty()) break;
      std::string tensor = tensor_head("", attribute.tensor);
      pbf_writer values(tensor);
      add_text(values, 9, stored_values(attribute.tensor));
      to.add_message(5, tensor);
      return bytes;
    }
    case AttributeType::kFloats:
      for (const float value : attribute.floats) to.add_float(7, value);
      return bytes;
    case AttributeType::kInts:
      for (const std::int64_t value : attribute.ints) to.add_int64(8, value);
      return bytes;
    case AttributeType::kStrings:
      for (const std::string_view value : attribute.strings) add_text(to, 9, value);
      return bytes;
    case AttributeType::kGraph:
    case AttributeType::kOther:
      break;
  }
  refuse_unsupported("attribute `" + std::string(attribute.name) + "` is of a kind that is read and not written");
}

std::string node_bytes(const OnnxNode& node) {
  std::string bytes;
  pbf_writer to(bytes);
  for (const std::string_view input : node.inputs) add_text(to, 1, input);
  for (const std::string_view output : node.outputs) add_text(to, 2, output);
  add_text(to, 3, node.name);
  add_text(to, 4, node.op_type);
  for (const OnnxAttribute& attribute : node.attributes) to.add_message(5, attribute_bytes(attribute));
  if (!node.domain.empty()) add_text(to, 7, node.domain);
  return bytes;
}

std::string port_bytes(const OnnxPort& port) {
  std::string shape;
  pbf_writer extents(shape);
  for (const importer::OnnxDim& dim : port.dims) {
    pbf_writer extent(extents, 1);
    if (!dim.param.empty())
      add_text(extent, 2, dim.param);
    else if (dim.stated)
      extent.add_int64(1, dim.value);
  }
  std::string bytes;
  pbf_writer to(bytes);
  add_text(to, 1, port.name);
  pbf_writer type(to, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int64(1, port.elem_type);
  if (port.has_shape) tensor.add_message(2, shape);
  return bytes;
}

/// What is written: bytes that are held here, then values that lie elsewhere.
struct Chunk {
  std::string held;
  std::string_view elsewhere;
};

/// The tag and length before `size` bytes of a message or of values.
std::string length_prefix(std::uint32_t tag, std::uint64_t size) {
  std::string bytes;
  protozero::add_varint_to_buffer(&bytes, tag << 3 | static_cast<std::uint32_t>(protozero::pbf_wire_type::length_delimited));
  protozero::add_varint_to_buffer(&bytes, size);
  return bytes;
}

Chunk initializer_chunk(const OnnxInitializer& initializer) {
  if (!initializer.problem.empty()) refuse_unsupported("initialiser `" + std::string(initializer.name) + "`: " + initializer.problem);
  const std::string_view values = stored_values(initializer.tensor);
  const std::string head = tensor_head(initializer.name, initializer.tensor) + length_prefix(9, values.size());
  return {length_prefix(5, head.size() + values.size()) + head, values};
}

std::vector<Chunk> chunks_of(const OnnxGraph& graph) {
  std::string body;
  pbf_writer to(body);
  for (const OnnxNode& node : graph.nodes) to.add_message(1, node_bytes(node));
  add_text(to, 2, graph.name);
  for (const OnnxPort& input : graph.inputs) to.add_message(11, port_bytes(input));
  for (const OnnxPort& output : graph.outputs) to.add_message(12, port_bytes(output));
  std::vector<Chunk> chunks(1);
  chunks.push_back({std::move(body), {}});
  for (const OnnxInitializer& initializer : graph.initializers) chunks.push_back(initializer_chunk(initializer));

  std::uint64_t graph_size = 0;
  for (const Chunk& chunk : chunks) graph_size += chunk.held.size() + chunk.elsewhere.size();
  pbf_writer model(chunks[0].held);
  model.add_int64(1, std::max<std::int64_t>(graph.ir_version, 7));
  add_text(model, 2, "sluice");
  std::set<std::string_view> domains;
  for (const OnnxNode& node : graph.nodes)
    if (!node.domain.empty()) domains.insert(node.domain);
  pbf_writer(model, 8).add_int64(2, graph.opset);
  for (const std::string_view domain : domains) {
    pbf_writer other(model, 8);
    add_text(other, 1, domain);
    other.add_int64(2, 1);
  }
  chunks[0].held += length_prefix(7, graph_size);
  return chunks;
}

}  // namespace

Status write_onnx(const OnnxGraph& graph, const std::string& path) {
  const std::vector<Chunk> chunks = chunks_of(graph);
  SLUICE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  Bytes at;
  for (const Chunk& chunk : chunks)
    for (const std::string_view part : {std::string_view(chunk.held), chunk.elsewhere}) {
      if (part.empty()) continue;
      SLUICE_RETURN_IF_ERROR(file.write_at(at, std::as_bytes(std::span(part))));
      at += Bytes(part.size());
    }
  return file.commit();
}

}  // namespace sluice::quantiser
