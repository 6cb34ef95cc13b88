#include "src/profiler/sample_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/profiler/typed_nodes.h"

namespace sluice::profiler {
namespace {

using model::OpKind;

/// A convolution of square maps: extent, channels in and out, kernel, stride, groups.
struct SquareConvolution {
  std::int64_t extent, in, out, kernel, stride, groups;
};

// VGG, ResNet, SqueezeNet and MobileNet, from wide and shallow to narrow and deep.
constexpr SquareConvolution kConvolutions[] = {
    {224, 3, 64, 3, 1, 1},     {224, 3, 64, 7, 2, 1},     {224, 3, 32, 3, 2, 1},     {224, 64, 64, 3, 1, 1},    {112, 64, 128, 3, 1, 1},
    {112, 128, 128, 3, 1, 1},  {56, 64, 64, 3, 1, 1},     {56, 256, 256, 3, 1, 1},   {56, 128, 128, 3, 2, 1},   {55, 16, 64, 3, 1, 1},
    {28, 128, 128, 3, 1, 1},   {28, 512, 512, 3, 1, 1},   {28, 256, 256, 3, 2, 1},   {27, 32, 128, 3, 1, 1},    {14, 256, 256, 3, 1, 1},
    {14, 512, 512, 3, 1, 1},   {14, 512, 512, 3, 2, 1},   {13, 64, 256, 3, 1, 1},    {7, 512, 512, 3, 1, 1},    {224, 3, 768, 16, 16, 1},
    {112, 32, 16, 1, 1, 1},    {112, 16, 96, 1, 1, 1},    {56, 64, 64, 1, 1, 1},     {56, 64, 256, 1, 1, 1},    {56, 256, 64, 1, 1, 1},
    {56, 24, 144, 1, 1, 1},    {56, 144, 24, 1, 1, 1},    {56, 256, 512, 1, 2, 1},   {55, 64, 16, 1, 1, 1},     {28, 512, 128, 1, 1, 1},
    {28, 128, 512, 1, 1, 1},   {28, 192, 32, 1, 1, 1},    {28, 512, 1024, 1, 2, 1},  {14, 1024, 256, 1, 1, 1},  {14, 256, 1024, 1, 1, 1},
    {14, 64, 384, 1, 1, 1},    {14, 576, 96, 1, 1, 1},    {13, 512, 1000, 1, 1, 1},  {7, 2048, 512, 1, 1, 1},   {7, 512, 2048, 1, 1, 1},
    {7, 160, 960, 1, 1, 1},    {7, 320, 1280, 1, 1, 1},   {112, 32, 32, 3, 1, 32},   {112, 96, 96, 3, 2, 96},   {56, 144, 144, 3, 1, 144},
    {56, 144, 144, 3, 2, 144}, {28, 192, 192, 3, 1, 192}, {14, 384, 384, 3, 1, 384}, {14, 576, 576, 3, 2, 576}, {7, 960, 960, 3, 1, 960},
    {56, 128, 128, 3, 1, 32},  {28, 256, 256, 3, 1, 32},  {14, 512, 512, 3, 1, 32},
};

constexpr DenseShape kDense[] = {{1, 25088, 4096}, {1, 4096, 4096}, {1, 4096, 1000},  {1, 2048, 1000},  {1, 1280, 1000},
                                 {1, 768, 3072},   {197, 768, 768}, {197, 768, 3072}, {197, 3072, 768}, {64, 768, 2304},
                                 {64, 768, 768},   {64, 768, 3072}, {64, 3072, 768},  {64, 768, 16384}, {16, 512, 512}};

/// Pools: extent, channels, kernel, stride.
constexpr std::int64_t kPools[][4] = {{224, 64, 2, 2}, {112, 64, 3, 2},   {56, 256, 2, 2}, {14, 512, 2, 2},
                                      {55, 128, 3, 2}, {13, 1000, 13, 1}, {7, 2048, 7, 1}, {7, 1280, 7, 1}};

/// Maps that elementwise kernels run over: extent, channels.
constexpr std::int64_t kMaps[][2] = {{112, 64}, {56, 256}, {28, 512}, {14, 1024}, {14, 96}, {7, 2048}};

/// Positions, heads, features of a head. `convert` makes heads in up to four groups, so a node often has one to three.
constexpr std::int64_t kAttentions[][3] = {{32, 2, 32}, {49, 6, 32},  {128, 8, 64}, {128, 4, 16}, {256, 8, 32}, {196, 3, 64}, {64, 12, 32},
                                           {1, 8, 64},  {256, 1, 64}, {128, 1, 32}, {64, 1, 64},  {384, 3, 64}, {128, 3, 64}};

/// Sequences: positions, features.
constexpr std::int64_t kSequences[][2] = {{197, 768}, {197, 3072}, {64, 768}, {64, 3072}, {1, 1000}};

bool is_there(std::span<const NetType> types, NetType type) noexcept { return std::find(types.begin(), types.end(), type) != types.end(); }

/// Those of them that weights are stored in, in the order of this list.
std::vector<kernels::PanelStorage> storages_of(std::span<const NetType> types) {
  std::vector<kernels::PanelStorage> storages;
  for (const NetType type : {NetType::kBf16, NetType::kF16, NetType::kInt8, NetType::kInt4})
    if (is_there(types, type)) storages.push_back(*storage_of(type));
  return storages;
}

class Builder {
 public:
  model::Graph build(const SampledNets& nets) {
    for (const auto& [extent, in, out, kernel, stride, groups] : kConvolutions)
      convolution({extent, extent, in, out, kernel, stride, groups});
    for (const DenseShape& shape : kDense) dense(shape);
    for (const auto& [extent, channels, kernel, stride] : kPools) pool(extent, channels, kernel, stride);
    for (const auto& [extent, channels] : kMaps) elementwise({1, extent, extent, channels});
    for (const auto& [positions, features] : kSequences) sequence({positions, features});
    for (const std::int64_t positions : {16, 64, 197, 384})
      for (const std::int64_t heads : {4, 12}) attention(positions, heads, positions != 197);
    layers(draw_corpus());
    for (const auto& [positions, heads, depth] : kAttentions)
      for (const bool causal : {true, false}) attention(positions, heads, causal, depth);
    recurrent();
    const std::size_t of_type = graph_.nodes.size();
    add_stored(storages_of(nets.few), graph_);
    if (is_there(nets.few, NetType::kIntegers)) {
      add_integers(graph_);
      for (const auto& [extent, channels] : kMaps) add_borders_of_integers({1, extent, extent, channels}, graph_);
    }
    make_of(nets.type, of_type, graph_);
    return std::move(graph_);
  }

  model::Graph build(const ShapeCorpus& corpus) {
    layers(corpus);
    add_integers(graph_);
    for (const MapShape& m : corpus.maps) add_borders_of_integers({1, m.rows, m.columns, m.channels}, graph_);
    return std::move(graph_);
  }

 private:
  void layers(const ShapeCorpus& corpus) {
    for (const ConvShape& shape : corpus.convolutions) convolution(shape);
    for (const DenseShape& shape : corpus.dense) dense(shape);
    for (std::size_t i = 0; i < corpus.maps.size(); ++i) map(corpus.maps[i], i);
    for (std::size_t i = 0; i < corpus.sequences.size(); ++i) sequence(corpus.sequences[i], i);
  }

  TensorId tensor(const Shape& shape) {
    graph_.tensors.push_back({"t" + std::to_string(graph_.tensors.size()), DType::kF32, shape, {}});
    return TensorId(graph_.tensors.size() - 1);
  }

  WeightId weight(model::WeightLayout layout, const Shape& shape, std::int64_t panels, std::int64_t panel_floats) {
    model::Weight weight;
    weight.name = "w" + std::to_string(graph_.weights.size());
    weight.panel_layout.layout = layout;
    weight.shape = shape;
    weight.panels = panels;
    weight.panel_bytes = Bytes(align_up(static_cast<std::uint64_t>(panel_floats) * sizeof(float), 64));
    weight.bytes = weight.panel_bytes * static_cast<std::uint64_t>(panels);
    graph_.weights.push_back(weight);
    return WeightId(graph_.weights.size() - 1);
  }
  WeightId plain(std::int64_t values) { return weight(model::WeightLayout::kPlain, {values}, 1, values); }

  model::Node& add(OpKind op, std::vector<TensorId> inputs, const Shape& output, model::Attributes attributes = {}) {
    model::Node node;
    node.name = std::string(model::name_of(op)) + std::to_string(graph_.nodes.size());
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs = {tensor(output)};
    node.attributes = attributes;
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back();
  }

  /// Adds a bias and an activation: in most layers one that only compares, in some one that takes longer than the sums of a narrow layer.
  void add_weighted(model::Node& node, model::WeightLayout layout, const Shape& shape, std::int64_t outputs, std::int64_t depth) {
    const std::int64_t panels = model::panel_count(outputs, model::outputs_per_group(node));
    node.weights = {weight(layout, shape, panels, depth * model::kPanelLanes), plain(panels * model::kPanelLanes)};
    node.epilogue.has_bias = true;
    constexpr Function kLayers[] = {Function::kRelu, Function::kNone, Function::kHardSwish, Function::kRelu, Function::kSilu};
    constexpr Function kRows[] = {Function::kRelu, Function::kNone, Function::kNone, Function::kGelu};
    const std::size_t turn = weighted_++;
    node.epilogue.activation.function = node.op == OpKind::kDense ? kRows[turn % std::size(kRows)] : kLayers[turn % std::size(kLayers)];
  }

  void convolution(const ConvShape& s) {
    const bool flat = s.rows == 1 && s.columns > 1;  // over a sequence
    const std::int64_t pad = s.kernel == s.stride ? 0 : s.kernel / 2, high = flat ? 1 : s.kernel, pad_high = flat ? 0 : pad;
    const std::int64_t rows = flat ? 1 : (s.rows + 2 * pad - s.kernel) / s.stride + 1;
    const std::int64_t columns = (s.columns + 2 * pad - s.kernel) / s.stride + 1;
    model::ConvAttributes a;
    a.window = {s.rows, s.columns, rows, columns, high, s.kernel, flat ? 1 : s.stride, s.stride, 1, 1, pad_high, pad, pad_high, pad};
    a.groups = s.groups;
    a.in_channels = s.in;
    a.out_channels = s.out;
    const std::int64_t depth = s.in / s.groups;
    const auto layout = a.depthwise() ? model::WeightLayout::kDepthwise : model::WeightLayout::kPanels;
    const Shape logical = a.depthwise() ? Shape{s.out, high, s.kernel} : Shape{s.out, high, s.kernel, depth};
    for (const model::NumericClass numeric : {model::NumericClass::kExact, model::NumericClass::kWinograd4}) {
      if (numeric == model::NumericClass::kWinograd4 &&
          (flat || s.kernel != 3 || s.stride != 1 || (s.groups != 1 && s.out / s.groups < kPanelLanes)))
        continue;
      model::Node& node = add(OpKind::kConv, {tensor({1, s.rows, s.columns, s.in})}, {1, rows, columns, s.out}, a);
      node.numeric = numeric;
      add_weighted(node, layout, logical, s.out, high * s.kernel * depth);
    }
  }

  void dense(const DenseShape& s) {
    model::Node& node = add(OpKind::kDense, {tensor({s.rows, s.in})}, {s.rows, s.out}, model::DenseAttributes{s.in, s.out});
    add_weighted(node, model::WeightLayout::kPanels, {s.out, s.in}, s.out, s.in);
  }

  void pool(std::int64_t extent, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    const std::int64_t out = (extent - kernel) / stride + 1;
    model::PoolAttributes a;
    a.kind = kernel == extent ? model::PoolKind::kAverage : model::PoolKind::kMax;
    a.window = {extent, extent, out, out, kernel, kernel, stride, stride};
    add(OpKind::kPool, {tensor({1, extent, extent, channels})}, {1, out, out, channels}, a);
  }

  void elementwise(const Shape& shape) {
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kRelu;
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kSigmoid;
    add(OpKind::kBinary, {tensor(shape), tensor(shape)}, shape, model::BinaryAttributes{});
    add(OpKind::kBinary, {tensor(shape), tensor({1})}, shape, model::BinaryAttributes{BinaryFunction::kPow});
    model::Node& affine = add(OpKind::kAffine, {tensor(shape)}, shape);
    affine.weights = {plain(shape.back()), plain(shape.back())};
  }

  void sequence(const Shape& shape) {
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation.function = model::Function::kGelu;
    add(OpKind::kBinary, {tensor(shape), tensor(shape)}, shape, model::BinaryAttributes{});
    add(OpKind::kSoftmax, {tensor(shape)}, shape, model::SoftmaxAttributes{});
    model::Node& norm = add(OpKind::kLayerNorm, {tensor(shape)}, shape, model::LayerNormAttributes{});
    norm.weights = {plain(shape.back()), plain(shape.back())};
  }

  /// One layer of each kind that works map by map: which kinds takes turns with the maps.
  void map(const MapShape& m, std::size_t turn) {
    const Shape shape{1, m.rows, m.columns, m.channels};
    constexpr Function kFunctions[] = {Function::kRelu, Function::kClip, Function::kHardSwish, Function::kHardSigmoid, Function::kSilu};
    if (turn % 4 == 0) {
      unary(shape, kFunctions[turn / 4 % std::size(kFunctions)]);
      binary(shape, shape, BinaryFunction::kAdd);
      binary(shape, {1, 1, 1, m.channels}, BinaryFunction::kMul);
    } else if (turn % 4 == 1 && m.rows > 3) {
      const std::int64_t window = turn % 3 == 0 ? 2 : 3;
      pool(m.rows, m.channels, window, 2);
      pool(m.rows, m.channels, m.rows, 1);
      same_pool(m, turn % 8 == 1);
    } else if (turn % 4 == 2) {
      move(m, turn);
    } else {
      resize(m, turn % 8 == 3 ? ResizeMode::kNearest : ResizeMode::kLinear);
      model::Node& affine = add(OpKind::kAffine, {tensor(shape)}, shape);
      affine.weights = {plain(m.channels), plain(m.channels)};
      if (m.rows <= 128) transposed(m, turn / 4);
    }
  }

  void unary(const Shape& shape, Function function) {
    add(OpKind::kUnary, {tensor(shape)}, shape).epilogue.activation = {function, function == Function::kHardSigmoid ? 0.2f : 0.0f, 6.0f};
  }
  void binary(const Shape& a, const Shape& b, BinaryFunction function) {
    add(OpKind::kBinary, {tensor(a), tensor(b)}, a, model::BinaryAttributes{function});
  }
  void same_pool(const MapShape& m, bool largest) {
    model::PoolAttributes a;
    a.kind = largest ? model::PoolKind::kMax : model::PoolKind::kAverage;
    a.window = {m.rows, m.columns, m.rows, m.columns, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    const Shape shape{1, m.rows, m.columns, m.channels};
    add(OpKind::kPool, {tensor(shape)}, shape, a);
  }

  void move(const MapShape& m, std::size_t turn) {
    const Shape shape{1, m.rows, m.columns, m.channels};
    switch (turn / 4 % 4) {
      case 0: {
        const TensorId half = tensor(shape);
        add(OpKind::kConcat, {half, tensor(shape)}, {1, m.rows, m.columns, 2 * m.channels}, model::AxisAttributes{3});
        return;
      }
      case 1:
        if (m.channels >= 2) add(OpKind::kSlice, {tensor(shape)}, {1, m.rows, m.columns, m.channels / 2}, model::SliceAttributes{});
        return;
      case 2: {
        model::PadAttributes pad;
        pad.before = pad.after = {0, 1, 1, 0};
        add(OpKind::kPad, {tensor(shape)}, {1, m.rows + 2, m.columns + 2, m.channels}, pad);
        return;
      }
      default: {
        model::TransposeAttributes turned;
        turned.perm = {0, 3, 1, 2, 4, 5, 6, 7};
        add(OpKind::kTranspose, {tensor(shape)}, {1, m.channels, m.rows, m.columns}, turned);
        turned.perm = {0, 2, 1, 3, 4, 5, 6, 7};
        add(OpKind::kTranspose, {tensor(shape)}, {1, m.columns, m.rows, m.channels}, turned);
        // Channels of two groups that take turns, as ShuffleNets mix them.
        const std::int64_t half = (m.channels + 1) / 2;
        turned.perm = {0, 1, 2, 4, 3, 5, 6, 7};
        add(OpKind::kTranspose, {tensor({1, m.rows, m.columns, 2, half})}, {1, m.rows, m.columns, half, 2}, turned);
      }
    }
  }

  void resize(const MapShape& m, ResizeMode mode) {
    model::ResizeAttributes a;
    a.mode = mode;
    a.scale[1] = a.scale[2] = 2;
    add(OpKind::kResize, {tensor({1, m.rows, m.columns, m.channels})}, {1, 2 * m.rows, 2 * m.columns, m.channels}, a);
  }

  /// Twice as many rows and columns, by windows of decoders: as large as the stride, or with sums of two or four products a pixel. Each second
  /// has few outputs, which may sum by taps.
  void transposed(const MapShape& m, std::size_t turn) {
    constexpr std::int64_t kWindows[] = {2, 2, 4, 3};
    const std::int64_t taps = kWindows[turn % std::size(kWindows)], before = taps > 2 ? 1 : 0, after = taps - 2 - before;
    model::ConvAttributes a;
    a.window = {m.rows, m.columns, 2 * m.rows, 2 * m.columns, taps, taps, 2, 2, 1, 1, before, before, after, after};
    a.in_channels = m.channels;
    a.out_channels = turn % 8 < 4 ? (m.channels + 1) / 2 : std::clamp<std::int64_t>(m.channels / 16, 1, 8);
    model::Node& node =
        add(OpKind::kConvTranspose, {tensor({1, m.rows, m.columns, m.channels})}, {1, 2 * m.rows, 2 * m.columns, a.out_channels}, a);
    add_weighted(node, model::WeightLayout::kPanels, {a.out_channels, taps, taps, m.channels}, a.out_channels, taps * taps * m.channels);
  }

  void sequence(const MapShape& m, std::size_t turn) {
    const Shape shape{m.columns, m.channels};
    constexpr Function kFunctions[] = {Function::kGelu, Function::kGeluTanh, Function::kTanh, Function::kSigmoid};
    unary(shape, kFunctions[turn % std::size(kFunctions)]);
    binary(shape, shape, BinaryFunction::kAdd);
    add(OpKind::kSoftmax, {tensor({m.columns, std::min<std::int64_t>(m.channels, 512)})},
        {m.columns, std::min<std::int64_t>(m.channels, 512)}, model::SoftmaxAttributes{});
    model::Node& norm = add(OpKind::kLayerNorm, {tensor(shape)}, shape, model::LayerNormAttributes{});
    norm.weights = {plain(m.channels), plain(m.channels)};
    constexpr std::int64_t kHeads = 4;
    if (m.columns > 1 && m.channels % kHeads == 0)
      add(OpKind::kMatMul, {tensor({kHeads, m.columns, m.channels / kHeads}), tensor({kHeads, m.channels / kHeads, m.columns})},
          {kHeads, m.columns, m.columns});
  }

  void recurrent() {
    for (const auto cell : {Cell::kLstm, Cell::kGru})
      for (const std::int64_t hidden : {32, 64, 128, 256, 512})
        for (const std::int64_t steps : {1, 16, 100}) {
          model::RecurrentAttributes a;
          a.cell = cell;
          a.hidden = hidden;
          a.functions = {Activation{Function::kSigmoid}, Activation{Function::kTanh}, Activation{Function::kTanh}};
          const Shape shape{steps, 1, a.gates() * hidden};
          model::Node& node = add(OpKind::kRecurrent, {tensor(shape)}, shape, a);
          const std::int64_t outputs = a.gates() * hidden, panels = ceil_div(outputs, model::kPanelLanes);
          node.weights = {weight(model::WeightLayout::kPanels, {outputs, hidden}, panels, hidden * model::kPanelLanes), plain(outputs)};
          node.epilogue.has_bias = true;
        }
  }

  void attention(std::int64_t positions, std::int64_t heads, bool causal, std::int64_t features_of_head = 64) {
    const Shape shape{positions, heads * features_of_head};
    add(OpKind::kAttention, {tensor(shape), tensor(shape), tensor(shape)}, shape,
        model::AttentionAttributes{.heads = heads, .scale = 0.125f, .causal = causal});
  }

  model::Graph graph_;
  std::size_t weighted_ = 0;  // layers
};

}  // namespace

model::Graph sample_graph(const SampledNets& nets) { return Builder().build(nets); }

model::Graph graph_of(const ShapeCorpus& corpus) { return Builder().build(corpus); }

std::vector<const kernels::KernelDescriptor*> sampled_kernels(const model::Graph& graph, const model::Node& node) {
  std::vector<const kernels::KernelDescriptor*> sampled;
  if (node.subgraph_count > 0) return sampled;  // what its bodies take is theirs
  // A plan takes the first kernel that supports the node (planner/order/select_kernels.h).
  const auto kernels = kernels::kernels_for(graph, node);
  if (!kernels.empty() && kernels.front()->resolve != nullptr && kernels.front()->cost != nullptr) sampled.push_back(kernels.front());
  return sampled;
}

}  // namespace sluice::profiler
