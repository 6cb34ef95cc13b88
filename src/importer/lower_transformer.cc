// Operators of language and vision transformers: LayerNormalization, and Gather as a lookup of rows of a table.
#include "src/importer/lower_plain.h"
#include "src/importer/quantised.h"

namespace sluice::importer {

using model::OpKind;

/// Scale and shift have the shape of the normalised axes, which become the last one.
void lower_layer_normalization(NodeContext& c) {
  const ValueId x = c.float_input(0);
  const Shape shape = c.shape(x);
  if (shape.rank() == 0) c.malformed("a scalar has no axis to normalise over");
  for (std::size_t i = 1; i < c.node().outputs.size(); ++i)
    if (c.wants_output(i)) c.refuse("its mean or deviation is used; only the normalised values are supported");
  const int axis = c.axis(c.integer("axis", -1), shape.rank());
  const std::int64_t count = shape.count(axis, shape.rank());
  if (count > kMaxFoldedElements) c.refuse("more than 2^20 values in a row");
  Shape normalised = shape;
  for (int a = 0; a < axis; ++a) normalised[a] = 1;
  const auto read = [&](std::size_t input, const char* what) {
    const Constant& constant = c.require_constant(input, what);
    if (!is_float(constant.dtype) || broadcast_shape(normalised, constant.shape) != normalised)
      c.malformed("scale and shift must have the shape of the normalised axes");
    return floats(broadcast(constant, normalised));
  };
  std::vector<float> scale = read(1, "the scale");
  std::vector<float> shift = c.has_input(2) ? read(2, "the shift") : std::vector<float>(scale.size(), 0.0f);
  const bool last_only = axis == shape.rank() - 1;
  const ValueId rows = last_only ? x : c.add_reshape(x, Shape{shape.count(0, axis), count});
  const ValueId y = c.add(OpKind::kLayerNorm, {rows}, c.shape(rows), model::LayerNormAttributes{c.real("epsilon", 1e-5f)});
  c.last_node().axis = c.shape(rows).rank() - 1;
  c.last_node().scale = std::move(scale);
  c.last_node().bias = std::move(shift);
  c.set_output(0, last_only ? y : c.add_reshape(y, shape));
}

/// The table is stored in panels, so that a layer that multiplies by it (tied weights) shares it, and so that it can be read in slices.
ValueId add_embedding(NodeContext& c, const Constant& table, const std::string& name, ValueId indices) {
  const DType index_type = c.draft().value(indices).dtype;
  if (index_type != DType::kI32 && index_type != DType::kI64) c.refuse("indices must be of type int32 or int64");
  if (table.elements() == 0) c.refuse("the table is empty");
  const Shape shape = table.shape;
  const std::int64_t rows = shape[0], features = shape.count(1, shape.rank());
  auto two_axes = reshaped(table, Shape{rows, features});
  if (!two_axes) c.refuse("the table's axes lie in an order that no row has");
  const Shape index_shape = c.shape(indices);
  std::vector<std::int64_t> dims(index_shape.dims().begin(), index_shape.dims().end());
  dims.push_back(features);
  if (dims.size() > Shape::kMaxRank) c.refuse("more than 8 axes");
  PanelValues panels{.name = name, .values = *std::move(two_axes)};  // `name` may be a value's own, and values move as the draft grows
  const ValueId y = c.add(OpKind::kEmbedding, {indices}, c.make_shape(dims), model::EmbeddingAttributes{rows, features});
  c.draft().value(y).dtype = DType::kF32;
  c.last_node().panels = std::move(panels);
  dims.pop_back();
  dims.insert(dims.end(), shape.dims().begin() + 1, shape.dims().end());
  if (dims.size() > Shape::kMaxRank) c.refuse("more than 8 axes");
  return c.add_reshape(y, c.make_shape(dims));
}

/// Rows of a table of reals; or of bytes, which a DequantizeLinear behind the lookup makes real: whole numbers until then.
void lower_embedding(NodeContext& c) {
  const Constant table = c.require_constant(0, "the table");
  const std::string name = c.draft().value(c.input(0)).name;
  if (table.shape.rank() == 0 || c.axis(c.integer("axis", 0), table.shape.rank()) != 0)
    c.refuse("supported are indices of the table's first axis");
  if (is_float(table.dtype)) return c.set_output(0, add_embedding(c, table, name, c.input(1)));
  const bool bytes = table.dtype == DType::kI8 || table.dtype == DType::kU8;
  if (!bytes) c.refuse("a table of type " + std::string(name_of(table.dtype)) + "; supported are tables of reals and of bytes");
  const std::int64_t wanted = c.input_shape(1).element_count() * table.shape.count(1, table.shape.rank());
  if (table.elements() < 8 * wanted) c.refuse("a table that is smaller than the rows asked for");
  const ValueId rows = add_embedding(c, dequantised(table, {1.0f}, {0.0f}, {}), name, c.input(1));
  c.set_output(0, add_plain(c, "Cast", {rows}, {{table.dtype == DType::kI8 ? 3 : 2}}));
}

}  // namespace sluice::importer
