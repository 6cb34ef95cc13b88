#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <string>

#include "src/importer/onnx_graph.h"
#include "src/importer/order_nodes.h"
#include "src/importer/refusal.h"
#include "src/importer/tensor_reader.h"

namespace sluice::importer {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// A two-byte message on the wire is an object of some hundred bytes here; these bounds keep a small file from becoming a large process.
// The largest public models have some 20,000 nodes.
constexpr std::size_t kMaxNodes = 1u << 16;
constexpr std::size_t kMaxInitializers = 1u << 17;
constexpr std::size_t kMaxPorts = 1u << 12;
constexpr std::size_t kMaxEdges = 1u << 20;
constexpr std::size_t kMaxAttributes = 1u << 17;
constexpr std::size_t kMaxAttributeValues = 1u << 20;
constexpr int kMaxDepth = 8;  // of graphs in graphs
constexpr std::size_t kMaxNameBytes = 1u << 12;

constexpr std::uint32_t varint(unsigned tag) { return protozero::tag_and_type(tag, pbf_wire_type::varint); }
constexpr std::uint32_t text(unsigned tag) { return protozero::tag_and_type(tag, pbf_wire_type::length_delimited); }
constexpr std::uint32_t fixed32(unsigned tag) { return protozero::tag_and_type(tag, pbf_wire_type::fixed32); }

void limit(std::size_t count, std::size_t most, const char* what) {
  if (count >= most) refuse_unsupported(std::string("the file has more than ") + std::to_string(most) + " " + what);
}

std::string_view read_text(pbf_reader& message) {
  const protozero::data_view data = message.get_view();
  return {data.data(), data.size()};
}

std::string_view read_name(pbf_reader& message) {
  const std::string_view name = read_text(message);
  if (name.size() > kMaxNameBytes) refuse_malformed("a name is longer than " + std::to_string(kMaxNameBytes) + " bytes");
  return name;
}

class Reader {
 public:
  Reader(OnnxGraph& graph, std::string directory, const std::shared_ptr<const MappedFile>& file, AbsentData absent)
      : graph_(graph), tensors_(std::move(directory), file, absent) {}

  void read_model(pbf_reader message) {
    bool has_graph = false, has_opset = false;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(1):
          graph_.ir_version = message.get_int64();
          break;
        case text(7):
          if (has_graph) refuse_malformed("the file holds more than one graph");
          has_graph = true;
          read_graph(message.get_message(), graph_);
          break;
        case text(8):
          has_opset = read_opset(message.get_message()) || has_opset;
          break;
        default:
          message.skip();
      }
    }
    for (const auto& [location, file] : tensors_.external_files()) graph_.files.push_back(file);
    if (!has_graph) refuse_malformed("the file holds no ONNX graph");
    if (!has_opset) {
      if (!other_domain_.empty() && has_own_nodes_) {
        refuse_unsupported("the file names an operator set of the domain '" + other_domain_ +
                           "' and none of ONNX's own: which version of ONNX's operators it means is not known");
      }
      if (other_domain_.empty() && graph_.ir_version >= 3) refuse_malformed("the file names no operator set");
      graph_.opset = 1;  // of nodes that are all of other domains none is asked
    }
  }

 private:
  bool read_opset(pbf_reader message) {
    std::string_view domain;
    std::int64_t version = 0;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          domain = read_name(message);
          break;
        case varint(2):
          version = message.get_int64();
          break;
        default:
          message.skip();
      }
    }
    if (!domain.empty() && domain != "ai.onnx") {
      other_domain_ = domain;
      return false;
    }
    if (version < 1 || version > 1000) refuse_malformed("the operator set's version makes no sense");
    graph_.opset = static_cast<int>(version);
    return true;
  }

  void read_graph(pbf_reader message, OnnxGraph& graph) {
    if (++depth_ > kMaxDepth) refuse_unsupported("graphs lie in graphs more than " + std::to_string(kMaxDepth) + " deep");
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          limit(nodes_++, kMaxNodes, "nodes");
          read_node(message.get_message(), graph.nodes.emplace_back());
          break;
        case text(2):
          graph.name = read_name(message);
          break;
        case text(5): {
          limit(initializers_++, kMaxInitializers, "initialisers");
          OnnxInitializer& made = graph.initializers.emplace_back();
          tensors_.read(message.get_message(), made.name, made.tensor, made.problem);
          break;
        }
        case text(11):
          limit(inputs_++, kMaxPorts + kMaxInitializers, "inputs");
          read_port(message.get_message(), graph.inputs.emplace_back());
          break;
        case text(12):
          limit(outputs_++, kMaxPorts, "outputs");
          read_port(message.get_message(), graph.outputs.emplace_back());
          break;
        case text(15): {
          limit(initializers_++, kMaxInitializers, "initialisers");
          OnnxInitializer& made = graph.initializers.emplace_back();
          tensors_.read_sparse(message.get_message(), made.name, made.tensor, made.problem);
          break;
        }
        default:
          message.skip();
      }
    }
    --depth_;
  }

  void read_node(pbf_reader message, OnnxNode& node) {
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          limit(edges_++, kMaxEdges, "inputs and outputs of nodes");
          node.inputs.push_back(read_name(message));
          break;
        case text(2):
          limit(edges_++, kMaxEdges, "inputs and outputs of nodes");
          node.outputs.push_back(read_name(message));
          break;
        case text(3):
          node.name = read_name(message);
          break;
        case text(4):
          node.op_type = read_name(message);
          break;
        case text(5):
          limit(attributes_++, kMaxAttributes, "attributes");
          read_attribute(message.get_message(), node.attributes.emplace_back());
          break;
        case text(7):
          node.domain = read_name(message);
          break;
        default:
          message.skip();
      }
    }
    if (node.domain == "ai.onnx") node.domain = {};
    has_own_nodes_ = has_own_nodes_ || node.domain.empty();
  }

  void read_attribute(pbf_reader message, OnnxAttribute& attribute) {
    std::int64_t type = 0;
    AttributeType seen = AttributeType::kOther;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          attribute.name = read_name(message);
          break;
        case varint(20):
          type = message.get_int64();
          break;
        case fixed32(2):
          attribute.f = message.get_float();
          seen = AttributeType::kFloat;
          break;
        case varint(3):
          attribute.i = message.get_int64();
          seen = AttributeType::kInt;
          break;
        case text(4):
          attribute.s = read_text(message);
          seen = AttributeType::kString;
          break;
        case text(5):
        case text(22):
          message.tag() == 5 ? read_tensor(message.get_message(), attribute) : read_sparse_tensor(message.get_message(), attribute);
          seen = AttributeType::kTensor;
          break;
        case fixed32(7):
          add(attribute.floats, message.get_float());
          seen = AttributeType::kFloats;
          break;
        case text(7):
          add_all(attribute.floats, message.get_packed_float());
          seen = AttributeType::kFloats;
          break;
        case text(6):
          read_body(message.get_message(), attribute);
          seen = AttributeType::kGraph;
          break;
        case text(9):
          add(attribute.strings, read_text(message));
          seen = AttributeType::kStrings;
          break;
        case varint(8):
          add(attribute.ints, message.get_int64());
          seen = AttributeType::kInts;
          break;
        case text(8):
          add_all(attribute.ints, message.get_packed_int64());
          seen = AttributeType::kInts;
          break;
        default:
          message.skip();
      }
    }
    // Files older than IR version 2 have no type; an empty list has a type and no values.
    attribute.type = seen == AttributeType::kOther ? type_without_value(type) : seen;
  }

  void read_body(pbf_reader message, OnnxAttribute& attribute) {
    limit(graphs_++, kMaxNodes, "graphs");
    attribute.graph = std::make_shared<OnnxGraph>();
    read_graph(message, *attribute.graph);
  }

  void read_tensor(pbf_reader message, OnnxAttribute& attribute) {
    std::string_view name;
    tensors_.read(message, name, attribute.tensor, attribute.tensor_problem);
  }

  void read_sparse_tensor(pbf_reader message, OnnxAttribute& attribute) {
    std::string_view name;
    tensors_.read_sparse(message, name, attribute.tensor, attribute.tensor_problem);
  }

  static AttributeType type_without_value(std::int64_t type) noexcept {
    switch (type) {
      case 1:
        return AttributeType::kFloat;
      case 2:
        return AttributeType::kInt;
      case 3:
        return AttributeType::kString;
      case 6:
        return AttributeType::kFloats;
      case 7:
        return AttributeType::kInts;
      default:
        return AttributeType::kOther;
    }
  }

  template <class T, class Packed>
  void add_all(std::vector<T>& values, const Packed& packed) {
    for (const T value : packed) add(values, value);
  }
  template <class T>
  void add(std::vector<T>& values, T value) {
    // One allowance for the whole file: 65,536 nodes with a long list each would be a bomb, too.
    if (attribute_values_++ >= kMaxAttributeValues) refuse_unsupported("the file's attributes hold too many values");
    values.push_back(value);
  }

  void read_port(pbf_reader message, OnnxPort& port) {
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          port.name = read_name(message);
          break;
        case text(2):
          read_type(message.get_message(), port);
          break;
        default:
          message.skip();
      }
    }
  }

  /// TypeProto: a tensor, a sequence of tensors, an optional of either; others are told apart, and refused where they are used.
  void read_type(pbf_reader message, OnnxPort& port) {
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text(1):
          read_tensor_type(message.get_message(), port);
          break;
        case text(4):
          port.form = port.form == PortForm::kOptional ? PortForm::kOptionalSequence
                      : port.form == PortForm::kTensor ? PortForm::kSequence
                                                       : PortForm::kOther;
          port.form == PortForm::kOther ? message.skip() : read_element_type(message.get_message(), port);
          break;
        case text(9):
          port.form = port.form == PortForm::kTensor ? PortForm::kOptional : PortForm::kOther;
          port.form == PortForm::kOther ? message.skip() : read_element_type(message.get_message(), port);
          break;
        case text(5):
        case text(8):
          port.form = PortForm::kOther;
          message.skip();
          break;
        default:
          message.skip();
      }
    }
  }

  /// What a sequence or an optional holds.
  void read_element_type(pbf_reader message, OnnxPort& port) {
    while (message.next(1, pbf_wire_type::length_delimited)) read_type(message.get_message(), port);
  }

  void read_tensor_type(pbf_reader tensor, OnnxPort& port) {
    while (tensor.next()) {
      switch (tensor.tag_and_type()) {
        case varint(1):
          port.elem_type = static_cast<int>(std::clamp<std::int64_t>(tensor.get_int64(), 0, 1000));
          break;
        case text(2):
          read_shape(tensor.get_message(), port);
          break;
        default:
          tensor.skip();
      }
    }
  }

  void read_shape(pbf_reader message, OnnxPort& port) {
    port.has_shape = true;
    while (message.next()) {
      if (message.tag_and_type() != text(1)) {
        message.skip();
        continue;
      }
      if (port.dims.size() == Shape::kMaxRank) refuse_unsupported("input or output `" + std::string(port.name) + "` has more than 8 axes");
      OnnxDim& dim = port.dims.emplace_back();
      pbf_reader field = message.get_message();
      while (field.next()) {
        switch (field.tag_and_type()) {
          case varint(1):
            dim.value = field.get_int64();
            dim.stated = true;
            break;
          case text(2):
            dim.param = read_name(field);
            break;
          default:
            field.skip();
        }
      }
    }
  }

  OnnxGraph& graph_;
  TensorReader tensors_;
  int depth_ = 0;
  std::size_t nodes_ = 0, initializers_ = 0, inputs_ = 0, outputs_ = 0, graphs_ = 0;  // of the whole file
  bool has_own_nodes_ = false;                                                        // of ONNX's own domain
  std::string other_domain_;                                                          // of an operator set that is not ONNX's own
  std::size_t edges_ = 0;
  std::size_t attributes_ = 0;
  std::size_t attribute_values_ = 0;
};

}  // namespace

bool is_initialiser(const OnnxGraph& graph, std::string_view name) noexcept {
  return std::any_of(graph.initializers.begin(), graph.initializers.end(),
                     [&](const OnnxInitializer& other) { return other.name == name; });
}

Status read_onnx(const std::string& path, OnnxGraph& graph, std::string& message, AbsentData absent) {
  const std::size_t slash = path.find_last_of('/');
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  graph.files.push_back(*file);
  const std::span<const std::byte> bytes = (*file)->bytes();
  try {
    Reader reader(graph, slash == std::string::npos ? "." : path.substr(0, slash + 1), *file, absent);
    reader.read_model(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    order_nodes(graph, false);
    return {};
  } catch (const protozero::exception&) {
    message = "this is no ONNX file, or it is cut short";
    return fail(ErrorCode::kInvalidModel, path, "the file cannot be parsed as protobuf");
  } catch (const Refusal& refusal) {
    message = refusal.what();
    return fail(refusal.code(), path, "the file cannot be read as an ONNX model");
  }
}

}  // namespace sluice::importer
