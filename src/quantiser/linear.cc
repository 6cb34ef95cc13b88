#include "src/quantiser/linear.h"

#include <utility>

namespace sluice::quantiser {

OnnxNode linear_node(Editor& editor, const std::string& base, std::string_view op, std::vector<std::string_view> inputs,
                     std::int64_t axis) {
  OnnxNode node;
  node.name = editor.fresh(base + "_" + std::string(op));
  node.op_type = op;
  node.inputs = std::move(inputs);
  node.outputs = {editor.fresh(base + (op == "QuantizeLinear" ? "_quantized" : "_dequantized"))};
  if (axis < 0) return node;
  importer::OnnxAttribute attribute;
  attribute.name = "axis";
  attribute.type = importer::AttributeType::kInt;
  attribute.i = axis;
  node.attributes.push_back(std::move(attribute));
  return node;
}

}  // namespace sluice::quantiser
