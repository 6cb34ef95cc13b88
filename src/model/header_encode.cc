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

/// One overload an alternative of `Attributes`.
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
            schema::CreatePoolAttributes(builder, static_cast<std::uint8_t>(a.kind), &window, a.count_include_pad).Union()};
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
    const auto stretches = make_stretches(graph.stretches);
    const auto nodes = make_tables<schema::Node>(graph.nodes);
    const auto inputs = make_tables<schema::Port>(graph.inputs);
    const auto outputs = make_tables<schema::Port>(graph.outputs);
    const auto preprocess = graph.preprocess.present ? make(graph.preprocess) : Offset<schema::Preprocess>();
    const auto labels =
        tables<flatbuffers::String>(builder_, graph.labels, [&](const auto& label) { return builder_.CreateString(label); });
    const auto of_variants = variants == nullptr ? Offset<schema::Variants>() : make(*variants);
    schema::FinishModelBuffer(builder_, schema::CreateModel(builder_, name, tensors, weights, stretches, nodes, inputs, outputs, preprocess,
                                                            labels, of_variants));
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
    return schema::CreateTensor(builder_, name, static_cast<std::uint8_t>(tensor.dtype), shape, tensor.weight.raw(),
                                tensor.bounded);
  }

  Offset<schema::Weight> make(const Weight& w) {
    const auto name = builder_.CreateString(w.name);
    const auto shape = dims(builder_, w.shape);
    return schema::CreateWeight(builder_, name, static_cast<std::uint8_t>(w.panel_layout.layout),
                                static_cast<std::uint8_t>(w.panel_layout.dtype), w.panel_layout.lanes, w.panel_layout.k_block,
                                w.panel_layout.k_group, shape, w.panels, w.panel_bytes.count(), w.offset.count(), w.bytes.count(),
                                w.first_stretch, w.stretch_count, w.always_resident);
  }

  VectorOffset<const schema::Stretch*> make_stretches(const std::vector<Stretch>& stretches) {
    return builder_.CreateVectorOfStructs<schema::Stretch>(stretches.size(), [&](std::size_t i, schema::Stretch* out) {
      const Stretch& s = stretches[i];
      *out = schema::Stretch(s.offset.count(), s.stored_size.count(), s.raw_size.count(), s.xxh3);
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
                              static_cast<std::uint8_t>(activation.function), activation.a, activation.b, inputs, outputs, weights);
  }

  Offset<schema::Port> make(const Port& port) {
    const auto name = builder_.CreateString(port.name);
    const auto shape = dims(builder_, port.onnx_shape);
    const auto perm = array(builder_, port.perm);
    return schema::CreatePort(builder_, name, port.tensor.raw(), shape, perm);
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
    return schema::CreateForm(builder_, graph, points, words, columns, values);
  }

  FlatBufferBuilder builder_;
};

/// No less than the encoded size: the builder's own limit of 2 GiB is an assertion, and a name from an ONNX file may not reach it.
std::uint64_t size_bound(const Graph& graph, const Variants* variants) {
  constexpr std::uint64_t kItem = 512;  // the widest table (a node with its attributes) without its strings and ids
  std::uint64_t bound = kItem + graph.name.size() + graph.stretches.size() * sizeof(schema::Stretch);
  for (const Tensor& t : graph.tensors) bound += kItem + t.name.size();
  for (const Weight& w : graph.weights) bound += kItem + w.name.size();
  for (const Node& n : graph.nodes)
    if (const auto* plain = std::get_if<PlainAttributes>(&n.attributes)) bound += 8 * plain->arguments.size();
  for (const Node& n : graph.nodes) bound += kItem + n.name.size() + 4 * (n.inputs.size() + n.outputs.size() + n.weights.size());
  for (const Port& p : graph.inputs) bound += kItem + p.name.size();
  for (const Port& p : graph.outputs) bound += kItem + p.name.size();
  for (const std::string& label : graph.labels) bound += 16 + label.size();
  if (variants == nullptr) return bound;
  for (const Dimension& d : variants->dimensions) bound += kItem + d.name.size() + 8 * d.extents.size();
  for (const Form& form : variants->forms)
    bound += kItem + form.graph.size() + 4 * (form.points.size() + form.words.size() + form.columns.size()) + 8 * form.values.size();
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
