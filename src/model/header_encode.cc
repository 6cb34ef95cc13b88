#include <bit>

#include "schema/model_generated.h"
#include "src/model/header.h"

namespace sluice::model {
namespace {

using flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;
template <class T>
using VectorOffset = Offset<flatbuffers::Vector<T>>;

VectorOffset<std::int64_t> dims(FlatBufferBuilder& builder, const Shape& shape) {
  return builder.CreateVector(shape.dims().data(), shape.dims().size());
}

template <class Array>
auto array(FlatBufferBuilder& builder, const Array& values) {
  return builder.CreateVector(values.data(), values.size());
}

template <class Id>
VectorOffset<std::uint32_t> ids(FlatBufferBuilder& builder, const std::vector<Id>& values) {
  return builder.CreateVector<std::uint32_t>(values.size(), [&](std::size_t i) { return values[i].raw(); });
}

/// A vector of tables or strings, made by `make` from each of `items`.
template <class Table, class Items, class Make>
VectorOffset<Offset<Table>> tables(FlatBufferBuilder& builder, const Items& items, Make make) {
  std::vector<Offset<Table>> offsets;
  offsets.reserve(items.size());
  for (const auto& item : items) offsets.push_back(make(item));
  return builder.CreateVector(offsets);
}

schema::Window window_of(const Window& w) {
  return {w.in_h,     w.in_w,       w.out_h,      w.out_w,   w.kernel_h, w.kernel_w,   w.stride_h,
          w.stride_w, w.dilation_h, w.dilation_w, w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
}

struct EncodedAttributes {
  schema::Attributes type = schema::Attributes::NONE;
  Offset<void> value;
};

/// There is one overload for each alternative of `Attributes`.
struct AttributesEncoder {
  FlatBufferBuilder& builder;

  EncodedAttributes operator()(std::monostate) const { return {}; }
  EncodedAttributes operator()(const ConvAttributes& a) const {
    const schema::Window window = window_of(a.window);
    return {schema::Attributes::ConvAttributes,
            schema::CreateConvAttributes(builder, &window, a.groups, a.in_channels, a.out_channels).Union()};
  }
  EncodedAttributes operator()(const DenseAttributes& a) const {
    return {schema::Attributes::DenseAttributes, schema::CreateDenseAttributes(builder, a.in_features, a.out_features).Union()};
  }
  EncodedAttributes operator()(const PoolAttributes& a) const {
    const schema::Window window = window_of(a.window);
    return {schema::Attributes::PoolAttributes,
            schema::CreatePoolAttributes(builder, static_cast<std::uint8_t>(a.kind), &window, a.count_include_pad, a.of_i8).Union()};
  }
  EncodedAttributes operator()(const BinaryAttributes& a) const {
    return {schema::Attributes::BinaryAttributes, schema::CreateBinaryAttributes(builder, static_cast<std::uint8_t>(a.function)).Union()};
  }
  EncodedAttributes operator()(const SoftmaxAttributes& a) const {
    return {schema::Attributes::SoftmaxAttributes, schema::CreateSoftmaxAttributes(builder, a.log).Union()};
  }
  EncodedAttributes operator()(const LrnAttributes& a) const {
    return {schema::Attributes::LrnAttributes, schema::CreateLrnAttributes(builder, a.size, a.alpha, a.beta, a.bias).Union()};
  }
  EncodedAttributes operator()(const AxisAttributes& a) const {
    return {schema::Attributes::AxisAttributes, schema::CreateAxisAttributes(builder, a.axis).Union()};
  }
  EncodedAttributes operator()(const SliceAttributes& a) const {
    const auto start = array(builder, a.start);
    const auto step = array(builder, a.step);
    return {schema::Attributes::SliceAttributes, schema::CreateSliceAttributes(builder, start, step).Union()};
  }
  EncodedAttributes operator()(const PadAttributes& a) const {
    const auto before = array(builder, a.before);
    const auto after = array(builder, a.after);
    return {schema::Attributes::PadAttributes,
            schema::CreatePadAttributes(builder, static_cast<std::uint8_t>(a.mode), a.value, before, after).Union()};
  }
  EncodedAttributes operator()(const ResizeAttributes& a) const {
    const auto scale = array(builder, a.scale);
    return {schema::Attributes::ResizeAttributes,
            schema::CreateResizeAttributes(builder, static_cast<std::uint8_t>(a.mode), static_cast<std::uint8_t>(a.coordinates),
                                           static_cast<std::uint8_t>(a.rounding), a.cubic_a, scale)
                .Union()};
  }
  EncodedAttributes operator()(const TransposeAttributes& a) const {
    return {schema::Attributes::TransposeAttributes, schema::CreateTransposeAttributes(builder, array(builder, a.perm)).Union()};
  }
  EncodedAttributes operator()(const LayerNormAttributes& a) const {
    return {schema::Attributes::LayerNormAttributes, schema::CreateLayerNormAttributes(builder, a.epsilon).Union()};
  }
  EncodedAttributes operator()(const AttentionAttributes& a) const {
    return {schema::Attributes::AttentionAttributes, schema::CreateAttentionAttributes(builder, a.heads, a.scale, a.causal).Union()};
  }
  EncodedAttributes operator()(const EmbeddingAttributes& a) const {
    return {schema::Attributes::EmbeddingAttributes, schema::CreateEmbeddingAttributes(builder, a.table_rows, a.features).Union()};
  }
  EncodedAttributes operator()(const PlainAttributes& a) const {
    const auto arguments = array(builder, a.arguments);
    return {schema::Attributes::PlainAttributes, schema::CreatePlainAttributes(builder, a.op, a.result, a.present, arguments).Union()};
  }
  EncodedAttributes operator()(const RecurrentAttributes& a) const {
    std::array<std::uint8_t, 3> functions{};
    std::array<float, 3> as{}, bs{};
    for (std::size_t i = 0; i < functions.size(); ++i) {
      functions[i] = static_cast<std::uint8_t>(a.functions[i].function);
      as[i] = a.functions[i].a;
      bs[i] = a.functions[i].b;
    }
    const auto function_numbers = array(builder, functions);
    const auto function_a = array(builder, as);
    const auto function_b = array(builder, bs);
    return {schema::Attributes::RecurrentAttributes,
            schema::CreateRecurrentAttributes(builder, static_cast<std::uint8_t>(a.cell), a.hidden, a.reverse, a.linear_before_reset,
                                              a.input_forget, a.first_hidden, a.first_cell, a.peepholes, function_numbers, function_a,
                                              function_b)
                .Union()};
  }
};

class HeaderEncoder {
 public:
  // Defaults are stored: a field that is absent when it happens to be zero would make the size depend on offsets and hashes.
  HeaderEncoder() { builder_.ForceDefaults(true); }

  std::vector<std::byte> encode(const Graph& graph, const Variants* variants) {
    const auto name = builder_.CreateString(graph.name);
    const auto tensors = make_tables<schema::Tensor>(graph.tensors);
    const auto weights = make_tables<schema::Weight>(graph.weights);
    const auto stretches = make_stretches(graph);
    const auto nodes = make_tables<schema::Node>(graph.nodes);
    const auto inputs = make_tables<schema::Port>(graph.inputs);
    const auto outputs = make_tables<schema::Port>(graph.outputs);
    const auto preprocess = graph.preprocess.present ? make(graph.preprocess) : Offset<schema::Preprocess>();
    const auto labels =
        tables<flatbuffers::String>(builder_, graph.labels, [&](const auto& label) { return builder_.CreateString(label); });
    const auto quantisations = make_tables<schema::Quantisation>(graph.quantisations);
    const auto subgraphs = make_tables<schema::Subgraph>(graph.subgraphs);
    const auto units = make_tables<schema::Unit>(graph.units);
    const auto codes = make_tables<schema::Code>(graph.codes);
    const Features needed = features_of(graph) | (variants == nullptr ? 0 : variants->needed);
    const auto of_variants = variants == nullptr ? Offset<schema::Variants>() : make(*variants);
    schema::FinishModelBuffer(builder_, schema::CreateModel(builder_, name, tensors, weights, stretches, nodes, inputs, outputs, preprocess,
                                                            labels, of_variants, quantisations, subgraphs, units, needed, codes));
    const auto* data = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    return {data, data + builder_.GetSize()};
  }

 private:
  template <class Table, class Item>
  VectorOffset<Offset<Table>> make_tables(const std::vector<Item>& items) {
    return tables<Table>(builder_, items, [this](const Item& item) { return make(item); });
  }

  Offset<schema::Tensor> make(const Tensor& tensor) {
    const auto name = builder_.CreateString(tensor.name);
    const auto shape = dims(builder_, tensor.shape);
    return schema::CreateTensor(builder_, name, static_cast<std::uint8_t>(tensor.dtype), shape, tensor.weight.raw(), tensor.bounded,
                                tensor.quantisation);
  }

  Offset<schema::Weight> make(const Weight& w) {
    const auto name = builder_.CreateString(w.name);
    const auto shape = dims(builder_, w.shape);
    const auto panel_ends = array(builder_, w.panel_ends);
    const PanelLayout& layout = w.panel_layout;
    return schema::CreateWeight(builder_, name, static_cast<std::uint8_t>(layout.layout), static_cast<std::uint8_t>(layout.dtype),
                                layout.lanes, layout.k_block, layout.k_group, layout.k_interleave, static_cast<std::uint8_t>(layout.scale),
                                static_cast<std::uint8_t>(layout.side), shape, w.panels, w.panel_bytes.count(), w.offset.count(),
                                w.bytes.count(), w.first_stretch, w.stretch_count, w.always_resident, w.quantisation, panel_ends, w.code);
  }

  Offset<schema::Code> make(const Code& code) {
    const auto frequencies = array(builder_, code.frequencies);
    return schema::CreateCode(builder_, static_cast<std::uint8_t>(code.plane), code.first, frequencies);
  }

  Offset<schema::Quantisation> make(const Quantisation& q) {
    const auto scales = array(builder_, q.scales);
    const auto zero_points = array(builder_, q.zero_points);
    return schema::CreateQuantisation(builder_, q.axis, scales, zero_points, q.scale_weight.raw(), q.zero_weight.raw());
  }

  VectorOffset<const schema::Stretch*> make_stretches(const Graph& graph) {
    return builder_.CreateVectorOfStructs<schema::Stretch>(graph.stretches.size(), [&](std::size_t i, schema::Stretch* out) {
      const Stretch& s = graph.stretches[i];
      std::array<std::uint64_t, 2> integrity = {s.xxh3, 0};
      if (has_form(s.form, StretchForm::kEncrypted) && i < graph.tags.size())
        integrity = std::bit_cast<std::array<std::uint64_t, 2>>(graph.tags[i]);
      *out = schema::Stretch(s.offset.count(), integrity[0], integrity[1], static_cast<std::uint32_t>(s.stored_size.count()),
                             static_cast<std::uint32_t>(s.raw_size.count()), static_cast<std::uint8_t>(s.form), 0, 0, 0);
    });
  }

  Offset<schema::Node> make(const Node& node) {
    const auto name = builder_.CreateString(node.name);
    const EncodedAttributes attributes = std::visit(AttributesEncoder{builder_}, node.attributes);
    const auto inputs = ids(builder_, node.inputs);
    const auto outputs = ids(builder_, node.outputs);
    const auto weights = ids(builder_, node.weights);
    const Activation& activation = node.epilogue.activation;
    return schema::CreateNode(builder_, name, static_cast<std::uint8_t>(node.op), static_cast<std::uint8_t>(node.numeric), attributes.type,
                              attributes.value, node.epilogue.has_bias, node.epilogue.has_residual,
                              static_cast<std::uint8_t>(activation.function), activation.a, activation.b, inputs, outputs, weights,
                              node.first_subgraph, node.subgraph_count, node.quantisation, node.epilogue.residual_first,
                              node.epilogue.of_i8);
  }

  Offset<schema::Subgraph> make(const Subgraph& subgraph) {
    const auto name = builder_.CreateString(subgraph.name);
    const auto tensors = make_tables<schema::Tensor>(subgraph.tensors);
    const auto nodes = make_tables<schema::Node>(subgraph.nodes);
    const auto captures =
        builder_.CreateVectorOfStructs<schema::Capture>(subgraph.captures.size(), [&](std::size_t i, schema::Capture* out) {
          *out = schema::Capture(subgraph.captures[i].outer.raw(), subgraph.captures[i].inner.raw());
        });
    const auto inputs = ids(builder_, subgraph.inputs);
    const auto outputs = ids(builder_, subgraph.outputs);
    return schema::CreateSubgraph(builder_, name, tensors, nodes, captures, inputs, outputs);
  }

  Offset<schema::Unit> make(const Unit& unit) {
    const auto name = builder_.CreateString(unit.name);
    const auto inputs = ids(builder_, unit.inputs);
    const auto outputs = ids(builder_, unit.outputs);
    return schema::CreateUnit(builder_, name, unit.first_node, unit.node_count, inputs, outputs);
  }

  Offset<schema::Port> make(const Port& port) {
    const auto name = builder_.CreateString(port.name);
    const auto shape = dims(builder_, port.onnx_shape);
    const auto perm = array(builder_, port.perm);
    const auto dtype = port.dtype ? static_cast<std::uint8_t>(*port.dtype) : kOwnType;
    return schema::CreatePort(builder_, name, port.tensor.raw(), shape, perm, dtype);
  }

  Offset<schema::Preprocess> make(const Preprocess& p) {
    const auto mean = array(builder_, p.mean);
    const auto stddev = array(builder_, p.stddev);
    return schema::CreatePreprocess(builder_, p.resize_short_side, p.crop, p.bgr, p.scale, mean, stddev);
  }

  Offset<schema::Variants> make(const Variants& variants) {
    const auto dimensions = make_tables<schema::Dimension>(variants.dimensions);
    const auto forms = make_tables<schema::Form>(variants.forms);
    return schema::CreateVariants(builder_, dimensions, forms);
  }

  Offset<schema::Dimension> make(const Dimension& dimension) {
    const auto name = builder_.CreateString(dimension.name);
    const auto extents = array(builder_, dimension.extents);
    return schema::CreateDimension(builder_, name, extents);
  }

  Offset<schema::Form> make(const Form& form) {
    const auto graph = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(form.graph.data()), form.graph.size());
    const auto points = array(builder_, form.points);
    const auto words = array(builder_, form.words);
    const auto columns = array(builder_, form.columns);
    const auto values = array(builder_, form.values);
    if (form.axes.empty()) return schema::CreateForm(builder_, graph, points, words, columns, values);
    const auto axes = make_tables<schema::FormAxis>(form.axes);
    const auto offsets = array(builder_, form.offsets);
    return schema::CreateForm(builder_, graph, points, words, columns, values, axes, offsets);
  }

  Offset<schema::FormAxis> make(const FormAxis& axis) {
    const auto positions = array(builder_, axis.positions);
    const auto values = array(builder_, axis.values);
    return schema::CreateFormAxis(builder_, positions, values);
  }

  FlatBufferBuilder builder_;
};

/// No less than the encoded size: the builder's own limit of 2 GiB is an assertion, and a name from an ONNX file may not reach it.
std::uint64_t size_bound(const Graph& graph, const Variants* variants) {
  constexpr std::uint64_t kItem = 512;  // the widest table (a node with its attributes) without its strings and ids
  std::uint64_t bound = kItem + graph.name.size() + graph.stretches.size() * sizeof(schema::Stretch);
  const auto add_body = [&](const std::vector<Tensor>& tensors, const std::vector<Node>& nodes) {
    for (const Tensor& t : tensors) bound += kItem + t.name.size();
    for (const Node& n : nodes) {
      bound += kItem + n.name.size() + 4 * (n.inputs.size() + n.outputs.size() + n.weights.size());
      if (const auto* plain = std::get_if<PlainAttributes>(&n.attributes)) bound += 8 * plain->arguments.size();
    }
  };
  add_body(graph.tensors, graph.nodes);
  for (const Subgraph& s : graph.subgraphs) {
    bound += kItem + s.name.size() + 8 * s.captures.size() + 4 * (s.inputs.size() + s.outputs.size());
    add_body(s.tensors, s.nodes);
  }
  for (const Weight& w : graph.weights) bound += kItem + w.name.size() + 4 * w.panel_ends.size();
  for (const Quantisation& q : graph.quantisations) bound += kItem + 4 * (q.scales.size() + q.zero_points.size());
  for (const Code& c : graph.codes) bound += kItem + 2 * c.frequencies.size();
  for (const Unit& u : graph.units) bound += kItem + u.name.size() + 4 * (u.inputs.size() + u.outputs.size());
  for (const Port& p : graph.inputs) bound += kItem + p.name.size();
  for (const Port& p : graph.outputs) bound += kItem + p.name.size();
  for (const std::string& label : graph.labels) bound += 16 + label.size();
  if (variants == nullptr) return bound;
  for (const Dimension& d : variants->dimensions) bound += kItem + d.name.size() + 8 * d.extents.size();
  for (const Form& form : variants->forms) {
    bound += kItem + form.graph.size() + 4 * (form.points.size() + form.words.size() + form.columns.size()) +
             8 * (form.values.size() + form.offsets.size());
    for (const FormAxis& axis : form.axes) bound += kItem + 4 * axis.positions.size() + 8 * axis.values.size();
  }
  return bound;
}

}  // namespace

Result<std::vector<std::byte>> encode_header(const Graph& graph, const Variants* variants) {
  const std::uint64_t bound = size_bound(graph, variants);
  if (bound > kMaxHeaderBytes.count()) {
    return fail(make_error(ErrorCode::kUnsupported, graph.name, "the graph is too large for a model file's header", kMaxHeaderBytes.count(),
                           bound));
  }
  return HeaderEncoder().encode(graph, variants);
}

}  // namespace sluice::model
