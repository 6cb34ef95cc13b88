// An ONNX file as it stands: nodes with their attributes, initialisers as places in the file, inputs and outputs with declared shapes.
//
// Way to here: `read_onnx` maps the file and parses it; `lower` (lowering.h) turns the result into a Draft. Names and strings are views
// of the mapping, which `files` keeps; tensors are `Constant` views, so that a 500 MB model is a few hundred KiB here.
//
// Invariants: nodes are in an order in which inputs come before their use; a value has one maker; every tensor's bytes lie inside a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/core/error.h"
#include "src/importer/constant.h"
#include "src/importer/mapped_file.h"

namespace sluice::importer {

/// The numbers of AttributeProto.AttributeType that we read; all others are kOther.
enum class AttributeType : std::uint8_t {
  kOther = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kGraph = 5
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string_view name;
  AttributeType type = AttributeType::kOther;
  float f = 0.0f;
  std::int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
  Constant tensor;
  std::shared_ptr<OnnxGraph> graph;  // a body of If, Loop or Scan; its `files` and `opset` are those of the outermost graph
  std::string tensor_problem;        // why `tensor` cannot be used; empty when it can
};

struct OnnxNode {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::vector<std::string_view> inputs;  // "" for an optional input that is absent
  std::vector<std::string_view> outputs;
  std::vector<OnnxAttribute> attributes;
};

/// One extent of a declared shape: a number, or a name, or neither.
struct OnnxDim {
  std::int64_t value = 0;
  bool stated = false;  // `value` stands in the file, a 0 too
  std::string_view param;
};

/// What a port holds tensors in, if in anything.
enum class PortForm : std::uint8_t { kTensor, kSequence, kOptional, kOptionalSequence, kOther };

struct OnnxPort {
  std::string_view name;
  PortForm form = PortForm::kTensor;
  int elem_type = 0;  // of its tensors
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxInitializer {
  std::string_view name;
  Constant tensor;
  std::string problem;  // why it cannot be used; reported by the node that wants it
};

struct OnnxGraph {
  std::vector<std::shared_ptr<const MappedFile>> files;  // of the outermost graph: the ONNX file, then those of its external data
  std::string_view name;
  std::int64_t ir_version = 0;
  int opset = 0;  // of the default domain
  std::vector<OnnxNode> nodes;
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxPort> inputs;
  std::vector<OnnxPort> outputs;
};

/// Older files list initialisers as inputs.
bool is_initialiser(const OnnxGraph& graph, std::string_view name) noexcept;

/// What becomes of a tensor of which the file has the shape and no data. kMadeUp: make_drawn gives f32 ones values (constant.h).
enum class AbsentData : std::uint8_t { kRefused, kAllowed, kMadeUp };

/// Reads the file at `path`. Errors: kIo; kInvalidModel with the rule that is broken (the reader refuses by throwing `Refusal` inside and
/// gives its words in `message`).
Status read_onnx(const std::string& path, OnnxGraph& graph, std::string& message, AbsentData absent = AbsentData::kRefused);

/// The element type of TensorProto.DataType, if it is one we know.
std::optional<DType> dtype_of(std::int64_t onnx_type) noexcept;
/// What people call a TensorProto.DataType, known to us or not: "string", "float8e4m3fn".
std::string type_text(std::int64_t onnx_type);
/// Its number there.
std::int64_t onnx_type_of(DType dtype) noexcept;

}  // namespace sluice::importer
