#include <bit>
#include <cstring>

#include "schema/model_generated.h"
#include "src/core/build_list.h"
#include "src/model/built_features.h"
#include "src/model/header.h"
#include "src/model/limits.h"

namespace sluice::model {
namespace {

/// Decodes a buffer that the verifier has passed. The verifier sees structure only: a million offsets may lead to one long string, and any
/// number may stand in an enumeration. So each item counts against an allowance of the buffer's own size, which a buffer without shared
/// parts never exceeds, and each number is checked.
class HeaderDecoder {
 public:
  HeaderDecoder(std::size_t size, std::string_view path) : allowance_(size), path_(path) {}

  /// Tensors and nodes: the part that each graph of a file has for itself.
  Status decode_structure(const schema::Model& model, Graph& graph) {
    SLUICE_RETURN_IF_ERROR(text(model.name(), graph.name));
    SLUICE_RETURN_IF_ERROR(list(model.tensors(), graph.tensors));
    SLUICE_RETURN_IF_ERROR(list(model.nodes(), graph.nodes));
    SLUICE_RETURN_IF_ERROR(list(model.inputs(), graph.inputs));
    SLUICE_RETURN_IF_ERROR(list(model.outputs(), graph.outputs));
    SLUICE_RETURN_IF_ERROR(list(model.quantisations(), graph.quantisations));
    if constexpr (kRunsSubgraphs) {
      SLUICE_RETURN_IF_ERROR(list(model.subgraphs(), graph.subgraphs));
    }
    if (!kRunsSubgraphs && model.subgraphs() != nullptr && model.subgraphs()->size() > 0) return without_subgraphs();
    return list(model.units(), graph.units);
  }

  /// Data that all graphs of a file share.
  Status decode_shared(const schema::Model& model, Graph& graph) {
    SLUICE_RETURN_IF_ERROR(list(model.weights(), graph.weights));
    SLUICE_RETURN_IF_ERROR(stretches(model.stretches(), graph));
    SLUICE_RETURN_IF_ERROR(list(model.codes(), graph.codes));
    SLUICE_RETURN_IF_ERROR(preprocess(model.preprocess(), graph.preprocess));
    return labels(model.labels(), graph.labels);
  }

  Result<Variants> decode_variants(const schema::Model& model) {
    Variants variants;
    if (model.variants() == nullptr) return variants;
    SLUICE_RETURN_IF_ERROR(list(model.variants()->dimensions(), variants.dimensions));
    SLUICE_RETURN_IF_ERROR(list(model.variants()->forms(), variants.forms));
    SLUICE_RETURN_IF_ERROR(variants.check(path_));
    return variants;
  }

 private:
  // Less than the least that any table of the kind takes in a buffer of ours, which stores every field.
  static constexpr std::size_t kTableCost = 24;

  tl::unexpected<Error> invalid(const char* reason) const { return fail(ErrorCode::kInvalidModel, path_, reason); }
  Status without_subgraphs() const { return fail(ErrorCode::kUnsupported, path_, "this build was trimmed to models without subgraphs"); }

  Status pay(std::size_t cost) {
    if (cost > allowance_) return invalid("parts of the header are used more than once");
    allowance_ -= cost;
    return {};
  }

  Status text(const flatbuffers::String* from, std::string& to) {
    if (from == nullptr) return {};
    SLUICE_RETURN_IF_ERROR(pay(from->size()));
    to.assign(from->c_str(), from->size());
    return {};
  }

  template <class Table, class Item>
  Status list(const flatbuffers::Vector<flatbuffers::Offset<Table>>* from, std::vector<Item>& to) {
    if (from == nullptr) return {};
    // A table in the file may be smaller than what it becomes, and many entries may share one.
    if (from->size() > kMaxItems) return invalid("more tensors, weights, nodes, ports or labels than any model has");
    SLUICE_RETURN_IF_ERROR(pay(from->size() * kTableCost));
    to.resize(from->size());
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) SLUICE_RETURN_IF_ERROR(item(*from->Get(i), to[i]));
    return {};
  }

  template <class IdType>
  Status ids(const flatbuffers::Vector<std::uint32_t>* from, std::vector<IdType>& to) {
    if (from == nullptr) return {};
    SLUICE_RETURN_IF_ERROR(pay(from->size() * sizeof(std::uint32_t)));
    to.reserve(from->size());
    for (const std::uint32_t id : *from) to.push_back(IdType(id));
    return {};
  }

  /// The verifier looks at the alignment of a vector's length only, not of what it holds. A vector of nothing is written unaligned.
  template <class Element>
  static bool aligned(const flatbuffers::Vector<Element>* vector, std::size_t alignment) {
    return vector->size() == 0 || reinterpret_cast<std::uintptr_t>(vector->Data()) % alignment == 0;
  }

  Status shape(const flatbuffers::Vector<std::int64_t>* from, Shape& to) {
    if (from != nullptr && !aligned(from, alignof(std::int64_t))) return invalid("a shape is not aligned");
    const auto made = from == nullptr ? Shape() : Shape::make(std::span(from->data(), from->size()));
    if (!made) return invalid("a shape has too many extents, a negative one, or too many elements");
    to = *made;
    return {};
  }

  /// Entries that are absent keep their defaults.
  template <class T, std::size_t N>
  Status array(const flatbuffers::Vector<T>* from, std::array<T, N>& to) {
    if (from == nullptr) return {};
    if (!aligned(from, alignof(T))) return invalid("an attribute's entries are not aligned");
    if (from->size() > N) return invalid("an attribute has more entries than a tensor has axes");
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) to[i] = from->Get(i);
    return {};
  }

  template <class Enum>
  Status enumerator(std::uint8_t value, int count, Enum& to) {
    if (value >= count) return invalid("an enumeration has a value that this build does not know");
    to = static_cast<Enum>(value);
    return {};
  }

  Status item(const schema::Tensor& from, Tensor& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    SLUICE_RETURN_IF_ERROR(enumerator(from.dtype(), kDTypeCount, to.dtype));
    SLUICE_RETURN_IF_ERROR(shape(from.shape(), to.shape));
    to.weight = WeightId(from.weight());
    to.bounded = from.bounded();
    to.quantisation = from.quantisation();
    return {};
  }

  Status item(const schema::Quantisation& from, Quantisation& to) {
    to.axis = from.axis();
    to.scale_weight = WeightId(from.scale_weight());
    to.zero_weight = WeightId(from.zero_weight());
    SLUICE_RETURN_IF_ERROR(numbers(from.scales(), to.scales));
    return numbers(from.zero_points(), to.zero_points);
  }

  Status item(const schema::Weight& from, Weight& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    SLUICE_RETURN_IF_ERROR(enumerator(from.layout(), kWeightLayoutCount, to.panel_layout.layout));
    SLUICE_RETURN_IF_ERROR(enumerator(from.dtype(), kDTypeCount, to.panel_layout.dtype));
    to.panel_layout.lanes = from.lanes();
    to.panel_layout.k_block = from.k_block();
    to.panel_layout.k_group = from.k_group();
    to.panel_layout.k_interleave = from.k_interleave();
    SLUICE_RETURN_IF_ERROR(enumerator(from.scale(), kPanelScaleCount, to.panel_layout.scale));
    SLUICE_RETURN_IF_ERROR(enumerator(from.side(), kPanelSideCount, to.panel_layout.side));
    SLUICE_RETURN_IF_ERROR(shape(from.shape(), to.shape));
    to.panels = from.panels();
    to.panel_bytes = Bytes(from.panel_bytes());
    to.offset = Bytes(from.offset());
    to.bytes = Bytes(from.bytes());
    to.first_stretch = from.first_stretch();
    to.stretch_count = from.stretch_count();
    to.always_resident = from.always_resident();
    to.quantisation = from.quantisation();
    to.code = from.code();
    return numbers(from.panel_ends(), to.panel_ends);
  }

  Status item(const schema::Code& from, Code& to) {
    SLUICE_RETURN_IF_ERROR(enumerator(from.plane(), kCodePlaneCount, to.plane));
    to.first = from.first();
    return numbers(from.frequencies(), to.frequencies);
  }

  Status stretches(const flatbuffers::Vector<const schema::Stretch*>* from, Graph& graph) {
    if (from == nullptr) return {};
    if (!aligned(from, alignof(schema::Stretch))) return invalid("the stretches are not aligned");
    SLUICE_RETURN_IF_ERROR(pay(from->size() * sizeof(schema::Stretch)));
    graph.stretches.reserve(from->size());
    for (const schema::Stretch* s : *from) {
      if ((s->form() & ~kKnownStretchForms) != 0) return invalid("a stretch is stored in a form that this build does not know");
      if (s->reserved_0() != 0 || s->reserved_1() != 0 || s->reserved_2() != 0) return invalid("reserved bytes of a stretch are not zero");
      const auto form = static_cast<StretchForm>(s->form());
      const std::array<std::uint64_t, 2> integrity = {s->integrity_0(), s->integrity_1()};
      const bool tagged = has_form(form, StretchForm::kEncrypted);
      if (!tagged && integrity[1] != 0) return invalid("a hash is longer than hashes are");
      if (tagged) graph.tags.resize(from->size());
      if (tagged) graph.tags[graph.stretches.size()] = std::bit_cast<StretchTag>(integrity);
      graph.stretches.push_back({Bytes(s->offset()), Bytes(s->stored_size()), Bytes(s->raw_size()), tagged ? 0 : integrity[0], form});
    }
    return {};
  }

  Status item(const schema::Node& from, Node& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    SLUICE_RETURN_IF_ERROR(enumerator(from.op(), kOpKindCount, to.op));
    SLUICE_RETURN_IF_ERROR(enumerator(from.numeric(), kNumericClassCount, to.numeric));
    const Activation activation{.a = from.function_a(), .b = from.function_b()};
    to.epilogue = {from.has_bias(), from.has_residual(), from.residual_first(), from.of_i8(), activation};
    SLUICE_RETURN_IF_ERROR(enumerator(from.function(), kFunctionCount, to.epilogue.activation.function));
    SLUICE_RETURN_IF_ERROR(ids(from.inputs(), to.inputs));
    SLUICE_RETURN_IF_ERROR(ids(from.outputs(), to.outputs));
    SLUICE_RETURN_IF_ERROR(ids(from.weights(), to.weights));
    to.first_subgraph = from.first_subgraph();
    to.subgraph_count = from.subgraph_count();
    to.quantisation = from.quantisation();
    return attributes(from, to);
  }

  Status attributes(const schema::Node& from, Node& to) {
    switch (from.attributes_type()) {
      case schema::Attributes::NONE:
        return {};
      case schema::Attributes::ConvAttributes:
        return alternative<ConvAttributes, OpKind::kConv, OpKind::kConvTranspose>(from.attributes_as_ConvAttributes(), to);
      case schema::Attributes::DenseAttributes:
        return alternative<DenseAttributes, OpKind::kDense>(from.attributes_as_DenseAttributes(), to);
      case schema::Attributes::PoolAttributes:
        return alternative<PoolAttributes, OpKind::kPool>(from.attributes_as_PoolAttributes(), to);
      case schema::Attributes::BinaryAttributes:
        return alternative<BinaryAttributes, OpKind::kBinary>(from.attributes_as_BinaryAttributes(), to);
      case schema::Attributes::SoftmaxAttributes:
        return alternative<SoftmaxAttributes, OpKind::kSoftmax>(from.attributes_as_SoftmaxAttributes(), to);
      case schema::Attributes::LrnAttributes:
        return alternative<LrnAttributes, OpKind::kLrn>(from.attributes_as_LrnAttributes(), to);
      case schema::Attributes::AxisAttributes:
        return alternative<AxisAttributes, OpKind::kConcat>(from.attributes_as_AxisAttributes(), to);
      case schema::Attributes::SliceAttributes:
        return alternative<SliceAttributes, OpKind::kSlice>(from.attributes_as_SliceAttributes(), to);
      case schema::Attributes::PadAttributes:
        return alternative<PadAttributes, OpKind::kPad>(from.attributes_as_PadAttributes(), to);
      case schema::Attributes::ResizeAttributes:
        return alternative<ResizeAttributes, OpKind::kResize>(from.attributes_as_ResizeAttributes(), to);
      case schema::Attributes::TransposeAttributes:
        return alternative<TransposeAttributes, OpKind::kTranspose>(from.attributes_as_TransposeAttributes(), to);
      case schema::Attributes::LayerNormAttributes:
        return alternative<LayerNormAttributes, OpKind::kLayerNorm>(from.attributes_as_LayerNormAttributes(), to);
      case schema::Attributes::AttentionAttributes:
        return alternative<AttentionAttributes, OpKind::kAttention>(from.attributes_as_AttentionAttributes(), to);
      case schema::Attributes::EmbeddingAttributes:
        return alternative<EmbeddingAttributes, OpKind::kEmbedding>(from.attributes_as_EmbeddingAttributes(), to);
      case schema::Attributes::PlainAttributes:
        return alternative<PlainAttributes, OpKind::kPlain>(from.attributes_as_PlainAttributes(), to);
      case schema::Attributes::RecurrentAttributes:
        return alternative<RecurrentAttributes, OpKind::kRecurrent>(from.attributes_as_RecurrentAttributes(), to);
    }
    return invalid("a node has attributes of a kind that this build does not know");
  }

  /// `kOps` are those that have such attributes: where this build has none of them, it has no code for these either.
  template <class Item, OpKind... kOps, class Table>
  Status alternative(const Table* from, Node& to) {
    if (from == nullptr) return invalid("a node names the kind of its attributes but has none");
    if constexpr ((has_operator(static_cast<int>(kOps)) || ...)) {
      return item(*from, to.attributes.emplace<Item>());
    } else {
      return fail(ErrorCode::kUnsupported, to.name + " (" + std::string(name_of(to.op)) + ")",
                  "this build was trimmed to models that do without this operator: trim it to this model too");
    }
  }

  Status window(const schema::Window* from, Window& to) {
    if (from == nullptr) return invalid("a node with a window has none");
    to = {from->in_h(),     from->in_w(),     from->out_h(),      from->out_w(),      from->kernel_h(),
          from->kernel_w(), from->stride_h(), from->stride_w(),   from->dilation_h(), from->dilation_w(),
          from->pad_top(),  from->pad_left(), from->pad_bottom(), from->pad_right()};
    return {};
  }

  Status item(const schema::ConvAttributes& from, ConvAttributes& to) {
    to.groups = from.groups();
    to.in_channels = from.in_channels();
    to.out_channels = from.out_channels();
    return window(from.window(), to.window);
  }
  Status item(const schema::DenseAttributes& from, DenseAttributes& to) {
    to = {from.in_features(), from.out_features()};
    return {};
  }
  Status item(const schema::PoolAttributes& from, PoolAttributes& to) {
    SLUICE_RETURN_IF_ERROR(enumerator(from.kind(), kPoolKindCount, to.kind));
    to.count_include_pad = from.count_include_pad();
    to.of_i8 = from.of_i8();
    return window(from.window(), to.window);
  }
  Status item(const schema::BinaryAttributes& from, BinaryAttributes& to) {
    return enumerator(from.function(), kBinaryFunctionCount, to.function);
  }
  Status item(const schema::SoftmaxAttributes& from, SoftmaxAttributes& to) {
    to.log = from.log();
    return {};
  }
  Status item(const schema::LrnAttributes& from, LrnAttributes& to) {
    to = {from.size(), from.alpha(), from.beta(), from.bias()};
    return {};
  }
  Status item(const schema::AxisAttributes& from, AxisAttributes& to) {
    to.axis = from.axis();
    return {};
  }
  Status item(const schema::SliceAttributes& from, SliceAttributes& to) {
    SLUICE_RETURN_IF_ERROR(array(from.start(), to.start));
    return array(from.step(), to.step);
  }
  Status item(const schema::PadAttributes& from, PadAttributes& to) {
    SLUICE_RETURN_IF_ERROR(enumerator(from.mode(), kPadModeCount, to.mode));
    to.value = from.value();
    SLUICE_RETURN_IF_ERROR(array(from.before(), to.before));
    return array(from.after(), to.after);
  }
  Status item(const schema::ResizeAttributes& from, ResizeAttributes& to) {
    SLUICE_RETURN_IF_ERROR(enumerator(from.mode(), kResizeModeCount, to.mode));
    SLUICE_RETURN_IF_ERROR(enumerator(from.coordinates(), kResizeCoordinatesCount, to.coordinates));
    SLUICE_RETURN_IF_ERROR(enumerator(from.rounding(), kResizeRoundingCount, to.rounding));
    to.cubic_a = from.cubic_a();
    return array(from.scale(), to.scale);
  }
  Status item(const schema::TransposeAttributes& from, TransposeAttributes& to) { return array(from.perm(), to.perm); }
  Status item(const schema::LayerNormAttributes& from, LayerNormAttributes& to) {
    to = {from.epsilon()};
    return {};
  }
  Status item(const schema::AttentionAttributes& from, AttentionAttributes& to) {
    to = {from.heads(), from.scale(), from.causal()};
    return {};
  }
  Status item(const schema::EmbeddingAttributes& from, EmbeddingAttributes& to) {
    to = {from.table_rows(), from.features()};
    return {};
  }

  Status item(const schema::PlainAttributes& from, PlainAttributes& to) {
    to.op = from.op();
    to.result = from.result();
    to.present = from.present();
    if (from.arguments() == nullptr) return {};
    if (!aligned(from.arguments(), alignof(std::int64_t))) return invalid("an attribute's entries are not aligned");
    SLUICE_RETURN_IF_ERROR(pay(from.arguments()->size() * sizeof(std::int64_t)));
    to.arguments.assign(from.arguments()->begin(), from.arguments()->end());
    return {};
  }

  Status item(const schema::RecurrentAttributes& from, RecurrentAttributes& to) {
    SLUICE_RETURN_IF_ERROR(enumerator(from.cell(), kCellCount, to.cell));
    to.hidden = from.hidden();
    to.reverse = from.reverse();
    to.linear_before_reset = from.linear_before_reset();
    to.input_forget = from.input_forget();
    to.first_hidden = from.first_hidden();
    to.first_cell = from.first_cell();
    to.peepholes = from.peepholes();
    std::array<std::uint8_t, 3> functions{};
    std::array<float, 3> as{}, bs{};
    SLUICE_RETURN_IF_ERROR(array(from.functions(), functions));
    SLUICE_RETURN_IF_ERROR(array(from.function_a(), as));
    SLUICE_RETURN_IF_ERROR(array(from.function_b(), bs));
    for (std::size_t i = 0; i < functions.size(); ++i) {
      SLUICE_RETURN_IF_ERROR(enumerator(functions[i], kFunctionCount, to.functions[i].function));
      to.functions[i].a = as[i];
      to.functions[i].b = bs[i];
    }
    return {};
  }

  template <class Element, class Item>
  Status numbers(const flatbuffers::Vector<Element>* from, std::vector<Item>& to) {
    static_assert(sizeof(Element) == sizeof(Item));
    if (from == nullptr || from->size() == 0) return {};
    if (!aligned(from, alignof(Element))) return invalid("a list of numbers is not aligned");
    SLUICE_RETURN_IF_ERROR(pay(from->size() * sizeof(Element)));
    to.resize(from->size());
    std::memcpy(to.data(), from->Data(), to.size() * sizeof(Element));
    return {};
  }

  Status item(const schema::Dimension& from, Dimension& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    return numbers(from.extents(), to.extents);
  }
  Status item(const schema::Form& from, Form& to) {
    SLUICE_RETURN_IF_ERROR(numbers(from.graph(), to.graph));
    SLUICE_RETURN_IF_ERROR(numbers(from.points(), to.points));
    SLUICE_RETURN_IF_ERROR(numbers(from.words(), to.words));
    SLUICE_RETURN_IF_ERROR(numbers(from.columns(), to.columns));
    SLUICE_RETURN_IF_ERROR(numbers(from.values(), to.values));
    SLUICE_RETURN_IF_ERROR(list(from.axes(), to.axes));
    return numbers(from.offsets(), to.offsets);
  }
  Status item(const schema::FormAxis& from, FormAxis& to) {
    SLUICE_RETURN_IF_ERROR(numbers(from.positions(), to.positions));
    return numbers(from.values(), to.values);
  }

  Status item(const schema::Subgraph& from, Subgraph& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    SLUICE_RETURN_IF_ERROR(list(from.tensors(), to.tensors));
    SLUICE_RETURN_IF_ERROR(list(from.nodes(), to.nodes));
    SLUICE_RETURN_IF_ERROR(ids(from.inputs(), to.inputs));
    SLUICE_RETURN_IF_ERROR(ids(from.outputs(), to.outputs));
    if (from.captures() == nullptr) return {};
    if (!aligned(from.captures(), alignof(schema::Capture))) return invalid("the captures of a subgraph are not aligned");
    SLUICE_RETURN_IF_ERROR(pay(from.captures()->size() * sizeof(schema::Capture)));
    to.captures.reserve(from.captures()->size());
    for (const schema::Capture* capture : *from.captures()) to.captures.push_back({TensorId(capture->outer()), TensorId(capture->inner())});
    return {};
  }
  Status item(const schema::Unit& from, Unit& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    to.first_node = from.first_node();
    to.node_count = from.node_count();
    SLUICE_RETURN_IF_ERROR(ids(from.inputs(), to.inputs));
    return ids(from.outputs(), to.outputs);
  }

  Status item(const schema::Port& from, Port& to) {
    SLUICE_RETURN_IF_ERROR(text(from.name(), to.name));
    to.tensor = TensorId(from.tensor());
    SLUICE_RETURN_IF_ERROR(shape(from.onnx_shape(), to.onnx_shape));
    if (from.dtype() != kOwnType) SLUICE_RETURN_IF_ERROR(enumerator(from.dtype(), kDTypeCount, to.dtype.emplace()));
    return array(from.perm(), to.perm);
  }

  Status preprocess(const schema::Preprocess* from, Preprocess& to) {
    if (from == nullptr) return {};
    to.present = true;
    to.resize_short_side = from->resize_short_side();
    to.crop = from->crop();
    to.bgr = from->bgr();
    to.scale = from->scale();
    SLUICE_RETURN_IF_ERROR(array(from->mean(), to.mean));
    return array(from->stddev(), to.stddev);
  }

  Status labels(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* from, std::vector<std::string>& to) {
    if (from == nullptr) return {};
    constexpr std::size_t kLabelCost = 8;  // its place in the vector and its length
    SLUICE_RETURN_IF_ERROR(pay(from->size() * kLabelCost));
    to.resize(from->size());
    for (flatbuffers::uoffset_t i = 0; i < from->size(); ++i) SLUICE_RETURN_IF_ERROR(text(from->Get(i), to[i]));
    return {};
  }

  static constexpr int kPoolKindCount = 2;
  static constexpr int kBinaryFunctionCount = 8;
  static constexpr int kCellCount = 3;
  static constexpr int kPadModeCount = 3;
  static constexpr int kResizeModeCount = 3;
  static constexpr int kResizeCoordinatesCount = 4;
  static constexpr int kResizeRoundingCount = 4;

  std::size_t allowance_;
  std::string_view path_;
};

/// The root table of a buffer that is sound in structure.
Result<const schema::Model*> verified_model(std::span<const std::byte> bytes, std::string_view path) {
  // A model is a table of subgraphs of nodes of attributes: nothing lies deeper than four. No table takes less than eight bytes with its
  // place in a vector, so more than this many are shared ones.
  constexpr flatbuffers::uoffset_t kMaxDepth = 8;
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, max_tables);
  if (!schema::VerifyModelBuffer(verifier)) {
    return fail(ErrorCode::kInvalidModel, path, "the header is not a well-formed FlatBuffer of a model");
  }
  return schema::GetModel(data);
}

/// The graph of a point is a buffer of its own, as untrusted as the header that it comes from.
[[maybe_unused]] Status decode_variant(const Variants& variants, std::size_t point, std::string_view path, Graph& graph) {
  const std::vector<std::uint64_t> words = variants.graph_at(point);
  const auto bytes = std::as_bytes(std::span(words));
  SLUICE_ASSIGN_OR_RETURN(const schema::Model* const model, verified_model(bytes, path));
  return HeaderDecoder(bytes.size(), path).decode_structure(*model, graph);
}

}  // namespace

Result<OpenHeader> decode_header(std::span<const std::byte> bytes, std::string_view path, const Extents& extents) {
  SLUICE_ASSIGN_OR_RETURN(const schema::Model* const model, verified_model(bytes, path));
  HeaderDecoder decoder(bytes.size(), path);
  OpenHeader header;
  if constexpr (kHasOpenExtents) {
    SLUICE_ASSIGN_OR_RETURN(Variants variants, decoder.decode_variants(*model));
    SLUICE_ASSIGN_OR_RETURN(const std::size_t point, bind(variants.dimensions, extents));
    header.at_bound = point + 1 == count_points(variants.dimensions);
    if (!header.at_bound) SLUICE_RETURN_IF_ERROR(decode_variant(variants, point, path, header.graph));
    header.dimensions = std::move(variants.dimensions);
  } else {
    if (model->variants() != nullptr || !extents.empty())
      return fail(ErrorCode::kUnsupported, path, "extents are to be chosen, and this build was trimmed to models of fixed ones");
    header.at_bound = true;
  }
  if (header.at_bound) SLUICE_RETURN_IF_ERROR(decoder.decode_structure(*model, header.graph));
  SLUICE_RETURN_IF_ERROR(decoder.decode_shared(*model, header.graph));
  header.needed = model->needed_features();
  if ((features_of(header.graph) & ~header.needed) != 0)
    return fail(ErrorCode::kInvalidModel, path, "the graph needs a feature that its header does not name");
  return header;
}

}  // namespace sluice::model
