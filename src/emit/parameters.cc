#include "src/emit/parameters.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "sluice/kernels/packing.h"
#include "src/emit/kernels.h"
#include "src/emit/text.h"
#include "src/emit/weights.h"
#include "src/kernels/integer/parameters.h"
#include "src/kernels/reference/padding.h"
#include "src/kernels/reference/resize_taps.h"
#include "src/kernels/resolve.h"

namespace sluice::emit {
namespace {

using model::Node;
namespace integer = kernels::integer;

std::string window_of(const Window& w) {
  return braced(num(w.in_h), num(w.in_w), num(w.kernel_h), num(w.kernel_w), num(w.stride_h), num(w.stride_w), num(w.dilation_h),
                num(w.dilation_w), num(w.pad_top), num(w.pad_left), num(w.pad_bottom), num(w.pad_right));
}

std::string range_of(const operators::IntegerRange& r) { return braced(num(r.zero), num(r.low), num(r.high)); }
std::string zero_of(std::uint8_t zero) { return range_of({.zero = zero}); }
std::string addition_of(const operators::IntegerSum& sum) {
  return braced(c_float(sum.ratio_a), c_float(sum.ratio_b), c_float(sum.constant), num(sum.offset));
}

std::string function_of(const Activation& a) { return braced(num(static_cast<int>(a.function)), c_float(a.a), c_float(a.b)); }

const char* apply_of(const Activation& a) { return is_simple(a) ? "sluice_apply_simple" : "sluice_apply"; }

constexpr Window kOnePixel{};

/// The parameters of a convolution or dense layer, of either class.
struct Geometry {
  Window window = kOnePixel;
  std::int64_t groups = 1, depth = 0, outputs = 0;  // of a group
  std::int64_t all_outputs() const { return groups * outputs; }
};

Geometry geometry_of(const model::Graph& graph, const Node& node) {
  if (node.op == model::OpKind::kDense) {
    const auto& a = node.as<model::DenseAttributes>();
    return {.depth = a.in_features, .outputs = a.out_features};
  }
  const auto& a = node.as<model::ConvAttributes>();
  return {emitted_window(graph, node), a.groups, a.in_channels / a.groups, a.out_channels / a.groups};
}

const char* out_of(DType type) { return type == DType::kU8 ? "SLUICE_OUT_U8" : type == DType::kF32 ? "SLUICE_OUT_F32" : "SLUICE_OUT_I32"; }

}  // namespace

Status ParameterWriter::write(std::size_t stage) {
  const KernelCode& code = code_of(network_.stages[stage].kernel);
  SLUICE_ASSIGN_OR_RETURN(const std::string values, initialiser(stage));
  if (!values.empty()) text += std::string("static const ") + code.type + " parameters_" + std::to_string(stage) + " = " + values + ";\n";
  return {};
}

Result<std::string> ParameterWriter::initialiser(std::size_t stage) {
  const Stage& s = network_.stages[stage];
  if (*code_of(s.kernel).type == '\0') return std::string();
  return initialiser(stage, graph_.node(s.node));
}

Result<std::string> ParameterWriter::initialiser(std::size_t stage, const Node& node) {
  switch (network_.stages[stage].kernel) {
    case Kernel::kConvU8:
    case Kernel::kDepthwiseU8:
      return conv_u8(stage, node);
    case Kernel::kConvF32:
    case Kernel::kDepthwiseF32:
    case Kernel::kTransposedF32:
      return conv_f32(stage, node);
    case Kernel::kPoolU8:
    case Kernel::kFoldU8:
    case Kernel::kPoolF32:
    case Kernel::kFoldF32:
      return pool(stage, node);
    case Kernel::kTableU8:
      return table_u8(stage, node);
    case Kernel::kUnaryF32:
      return unary_f32(stage, node);
    case Kernel::kBinaryU8:
    case Kernel::kBinaryF32:
      return binary(stage, node);
    case Kernel::kQuantize:
      return border(node, true);
    case Kernel::kDequantize:
      return border(node, false);
    case Kernel::kSoftmax:
      return braced(num(network_.stages[stage].out.channels), num(kernels::softmax_parameters(graph_, node).log ? 1 : 0));
    case Kernel::kSoftmaxU8:
      return softmax_u8(stage, node);
    case Kernel::kLayerNorm:
      return layer_norm(stage, node);
    case Kernel::kConcat:
      return concat(stage, node);
    case Kernel::kJoin:
      return join(stage, node);
    case Kernel::kResize:
      return resize(stage, node);
    case Kernel::kResizeF32:
    case Kernel::kResizeU8:
      return resize_between(stage, node);
    case Kernel::kPad:
      return pad(stage, node);
    case Kernel::kCopy:
      return copy(stage, node);
    case Kernel::kMatMul:
    case Kernel::kMatMulU8:
      return matmul(stage, node);
    case Kernel::kAttention:
      return attention(node);
    case Kernel::kReadRow:
    case Kernel::kReadSignedRow:
      break;
  }
  return std::string();
}

template <class T>
std::string ParameterWriter::array(std::size_t stage, const char* what, const std::vector<T>& values) {
  const std::string name = std::string(what) + "_" + std::to_string(stage);
  text += c_array(name, values);
  constant_bytes += values.size() * sizeof(T);
  return name;
}

/// Bytes are read from floats: any will do.
template <class T>
std::string ParameterWriter::stand_in(std::int64_t count) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    stand_in_sums_ = std::max(stand_in_sums_, count);
    return "any_sums";
  } else {
    stand_in_floats_ = std::max(stand_in_floats_, (count * static_cast<std::int64_t>(sizeof(T)) + 3) / 4);
    return std::is_same_v<T, float> ? std::string("any_floats") : std::string("(const ") + c_type<T>() + " *)(const void *)any_floats";
  }
}

std::string ParameterWriter::stand_ins() const {
  std::vector<float> floats(static_cast<std::size_t>(stand_in_floats_));
  std::uint32_t random = 1;
  for (float& value : floats) {
    random = random * 1664525u + 1013904223u;
    value = static_cast<float>(random >> 8) * 0x1p-23f - 1.0f;
  }
  const std::vector<std::int32_t> sums(static_cast<std::size_t>(stand_in_sums_), 100);
  return (floats.empty() ? std::string() : c_array("any_floats", floats)) + (sums.empty() ? std::string() : c_array("any_sums", sums));
}

/// The first `count` values of a weight without panels.
template <class T>
Result<std::string> ParameterWriter::plain_weight(std::size_t stage, const Node& node, std::size_t weight, const char* what,
                                                  std::int64_t count) {
  if (model_ == nullptr) return stand_in<T>(count);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> raw, read_weight(*model_, node.weights[weight]));
  std::vector<T> values(static_cast<std::size_t>(count));
  if (raw.size() < values.size() * sizeof(T)) return fail(refusal(node, "a weight of it is shorter than its channels"));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return array(stage, what, values);
}

namespace {

/// From [output][tap in the order of the panels][input] to [output][tap as the window has it][input].
template <class T>
std::vector<T> in_window_order(const std::vector<T>& values, const std::vector<std::int32_t>& order, std::int64_t depth) {
  const std::size_t taps = order.size(), count = static_cast<std::size_t>(depth);
  std::vector<T> sorted(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = i % count, tap = i / count % taps, output = i / count / taps;
    sorted[(output * taps + static_cast<std::size_t>(order[tap])) * count + k] = values[i];
  }
  return sorted;
}

}  // namespace

template <class T>
Result<std::string> ParameterWriter::panels(std::size_t stage, const Node& node, std::int64_t outputs, std::int64_t taps,
                                            std::int64_t depth) {
  if (model_ == nullptr) return stand_in<T>(outputs * taps * depth);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> raw, read_weight(*model_, node.weights[0]));
  const model::Weight& weight = graph_.weight(node.weights[0]);
  const bool transposed = node.op == model::OpKind::kConvTranspose;
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  std::vector<T> values =
      unpack<T>(raw, weight, outputs, model::outputs_per_group(node), taps, depth, !transposed && conv != nullptr && conv->depthwise());
  if (transposed) values = in_window_order(values, kernels::transposed_tap_order(node.as<model::ConvAttributes>().window), depth);
  const std::string name = array(stage, "weights", values);
  constant_bytes -= values.size() * sizeof(T);
  weight_bytes += values.size() * sizeof(T);
  return name;
}

Result<std::string> ParameterWriter::conv_u8(std::size_t stage, const Node& node) {
  const Geometry g = geometry_of(graph_, node);
  const operators::IntegerEpilogue e = node.op == model::OpKind::kDense ? integer::dense_parameters(graph_, node).weighted.epilogue
                                                                        : integer::convolution_parameters(graph_, node).weighted.epilogue;
  const DType out = graph_.tensor(node.outputs[0]).dtype;
  SLUICE_ASSIGN_OR_RETURN(const std::string weights, panels<std::int8_t>(stage, node, g.all_outputs(), g.window.taps(), g.depth));
  SLUICE_ASSIGN_OR_RETURN(const std::string bias, plain_weight<std::int32_t>(stage, node, 1, "bias", g.all_outputs()));
  std::string multipliers = "NULL";
  if (out != DType::kI32) {
    SLUICE_ASSIGN_OR_RETURN(multipliers, plain_weight<float>(stage, node, 2, "multipliers", g.all_outputs()));
  }
  const std::string finish = braced(bias, multipliers, range_of(e.range), num(e.has_residual ? 1 : 0), zero_of(e.sum_zero),
                                    num(e.residual_first ? 1 : 0), addition_of(e.addition));
  return braced(window_of(g.window), weights, finish, unsigned_num(plan_.scratch[stage]), num(g.groups), num(g.depth), num(g.outputs),
                num(e.zero_in), num(network_.stages[stage].scratch_bytes == 0 ? 1 : 0), out_of(out),
                out == DType::kF32 ? apply_of(e.activation) : "NULL", function_of(e.activation));
}

Result<std::string> ParameterWriter::conv_f32(std::size_t stage, const Node& node) {
  const Geometry g = geometry_of(graph_, node);
  SLUICE_ASSIGN_OR_RETURN(const std::string weights, panels<float>(stage, node, g.all_outputs(), g.window.taps(), g.depth));
  std::string bias = "NULL";
  if (node.epilogue.has_bias) {
    SLUICE_ASSIGN_OR_RETURN(bias, plain_weight<float>(stage, node, 1, "bias", g.all_outputs()));
  }
  const bool chains = node.op == model::OpKind::kConvTranspose && !sums_by_taps(g.window, g.groups, g.depth, g.outputs);
  return braced(window_of(g.window), weights, bias, apply_of(node.epilogue.activation), function_of(node.epilogue.activation),
                unsigned_num(plan_.scratch[stage]), num(g.groups), num(g.depth), num(g.outputs),
                num(network_.stages[stage].scratch_bytes == 0 && !chains ? 1 : 0), num(node.epilogue.has_residual ? 1 : 0));
}

std::string ParameterWriter::pool(std::size_t stage, const Node& node) {
  const std::string scratch = unsigned_num(plan_.kept[stage]), channels = num(network_.stages[stage].out.channels);
  if (node.numeric == model::NumericClass::kInt8) {
    const operators::IntegerPoolParameters p = integer::pool_parameters(graph_, node);
    return braced(window_of(emitted_window(graph_, node)), range_of(p.range), num(p.zero_in), num(p.pool.kind == PoolingKind::kMax ? 1 : 0),
                  num(p.pool.count_include_pad ? 1 : 0), channels, num(p.whole() ? 1 : 0), num(p.offset), c_float(p.scale_in),
                  c_float(p.scale), scratch);
  }
  const operators::PoolParameters p = kernels::pool_parameters(graph_, node);
  return braced(window_of(emitted_window(graph_, node)), apply_of(p.activation), function_of(p.activation),
                num(p.kind == PoolingKind::kMax ? 1 : 0), num(p.count_include_pad ? 1 : 0), channels, scratch);
}

Result<std::string> ParameterWriter::table_u8(std::size_t stage, const Node& node) {
  constexpr std::int64_t kEntries = 256;
  SLUICE_ASSIGN_OR_RETURN(const std::string table, plain_weight<std::uint8_t>(stage, node, 0, "table", kEntries));
  return braced(table, num(network_.stages[stage].out.channels));
}

Result<std::string> ParameterWriter::softmax_u8(std::size_t stage, const Node& node) {
  constexpr std::int64_t kEntries = 256;
  const operators::IntegerSoftmaxParameters p = integer::softmax_parameters(graph_, node);
  SLUICE_ASSIGN_OR_RETURN(const std::string table, plain_weight<float>(stage, node, 0, "exponentials", kEntries));
  return braced(table, num(network_.stages[stage].out.channels), range_of(p.range), c_float(p.steps));
}

Result<std::string> ParameterWriter::unary_f32(std::size_t stage, const Node& node) {
  const std::int64_t channels = network_.stages[stage].out.channels;
  if (node.op == model::OpKind::kUnary)
    return braced(function_of(kernels::unary_parameters(graph_, node).function), num(channels), "NULL", "NULL");
  SLUICE_ASSIGN_OR_RETURN(const std::string scale, plain_weight<float>(stage, node, 0, "scale", channels));
  SLUICE_ASSIGN_OR_RETURN(const std::string shift, plain_weight<float>(stage, node, 1, "shift", channels));
  return braced(function_of(kernels::affine_parameters(graph_, node).activation), num(channels), scale, shift);
}

Result<std::string> ParameterWriter::layer_norm(std::size_t stage, const Node& node) {
  const std::int64_t channels = network_.stages[stage].out.channels;
  SLUICE_ASSIGN_OR_RETURN(const std::string scale, plain_weight<float>(stage, node, 0, "scale", channels));
  SLUICE_ASSIGN_OR_RETURN(const std::string shift, plain_weight<float>(stage, node, 1, "shift", channels));
  return braced(num(channels), scale, shift, c_float(kernels::layer_norm_parameters(graph_, node).epsilon));
}

/// Operands are tensors of the same pixels or of one, or constants, whose values are repeated as numpy does where one pixel is not enough.
Result<std::string> ParameterWriter::operand(std::size_t stage, const Node& node, std::size_t input) {
  const model::Tensor &tensor = graph_.tensor(node.inputs[input]), &out = graph_.tensor(node.outputs[0]);
  const std::int64_t channels = tensor.shape.rank() == 0 ? 1 : tensor.shape.back();
  const int step = channels == 1 ? 0 : 1;
  if (!tensor.weight.valid()) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < input; ++i) at += graph_.tensor(node.inputs[i]).weight.valid() ? 0 : 1;
    const RowExtents view = row_extents(tensor.shape), made = row_extents(out.shape);
    const bool repeats = view.rows * view.pixels == 1 && made.rows * made.pixels != 1;
    return braced("NULL", "0", "0", num(static_cast<std::int64_t>(at)), num(repeats ? 1 : 0), num(step));
  }
  const std::size_t pixel_bytes = static_cast<std::size_t>(channels) * size_of(tensor.dtype);
  const bool one_pixel = tensor.shape.element_count() == channels;
  const RowExtents made = row_extents(out.shape);
  if (model_ == nullptr)  // one pixel of it for all
    return braced(tensor.dtype == DType::kF32 ? stand_in<float>(channels) : stand_in<std::uint8_t>(channels), "0", "0", "0", "0",
                  num(step));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> raw, read_weight(*model_, tensor.weight));
  const std::int64_t pixels = one_pixel ? 1 : made.rows * made.pixels;
  std::vector<std::byte> repeated;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    std::int64_t rest = pixel, from = 0, stride = 1;
    for (int axis = out.shape.rank() - 2; axis >= 0; --axis) {
      const int of_tensor = axis - (out.shape.rank() - tensor.shape.rank());
      const std::int64_t index = rest % out.shape[axis];
      rest /= out.shape[axis];
      if (of_tensor < 0) continue;
      if (tensor.shape[of_tensor] > 1) from += index * stride;
      stride *= tensor.shape[of_tensor];
    }
    const auto begin = raw.begin() + from * static_cast<std::int64_t>(pixel_bytes);
    repeated.insert(repeated.end(), begin, begin + static_cast<std::ptrdiff_t>(pixel_bytes));
  }
  const std::string what = "operand" + std::to_string(input);
  std::string name;
  if (tensor.dtype == DType::kF32) {
    std::vector<float> values(repeated.size() / sizeof(float));
    std::memcpy(values.data(), repeated.data(), repeated.size());
    name = array(stage, what.c_str(), values);
  } else {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(repeated.data());
    name = array(stage, what.c_str(), std::vector<std::uint8_t>(bytes, bytes + repeated.size()));
  }
  const std::size_t pixel_step = one_pixel ? 0 : pixel_bytes;
  return braced(name, unsigned_num(pixel_step * static_cast<std::size_t>(made.pixels)), unsigned_num(pixel_step), "0", "0", num(step));
}

Result<std::string> ParameterWriter::binary(std::size_t stage, const Node& node) {
  SLUICE_ASSIGN_OR_RETURN(const std::string a, operand(stage, node, 0));
  SLUICE_ASSIGN_OR_RETURN(const std::string b, operand(stage, node, 1));
  const std::string channels = num(network_.stages[stage].out.channels);
  if (node.numeric == model::NumericClass::kInt8) {
    const operators::IntegerBinaryParameters p = integer::binary_parameters(graph_, node);
    const float first = p.function == BinaryFunction::kMul ? p.scale_a * p.scale_b / p.scale : p.scale_a;
    return braced(a, b, channels, range_of(p.range), num(static_cast<int>(p.function)), num(p.zero_a), num(p.zero_b), c_float(first),
                  c_float(p.scale_b), c_float(p.scale), addition_of(p.addition));
  }
  const operators::BinaryParameters p = kernels::binary_parameters(graph_, node);
  return braced(a, b, channels, num(static_cast<int>(p.function)), function_of(p.activation));
}

std::string ParameterWriter::border(const Node& node, bool begins) {
  const operators::IntegerBorderParameters p =
      begins ? integer::quantize_parameters(graph_, node) : integer::dequantize_parameters(graph_, node);
  return braced(num(row_extents(graph_.tensor(node.outputs[0]).shape).channels), zero_of(p.zero), c_float(p.scale));
}

std::string ParameterWriter::concat(std::size_t stage, const Node& node) {
  std::vector<std::uint32_t> bytes;
  for (const TensorId id : node.inputs)
    bytes.push_back(static_cast<std::uint32_t>(graph_.tensor(id).shape.back()) *
                    static_cast<std::uint32_t>(size_of(graph_.tensor(id).dtype)));
  return braced(array(stage, "bytes", bytes));
}

std::string ParameterWriter::join(std::size_t stage, const Node& node) {
  const int axis = node.as<model::AxisAttributes>().axis;
  std::vector<std::uint32_t> lengths;
  for (const TensorId id : node.inputs) {
    const Shape& shape = graph_.tensor(id).shape;
    lengths.push_back(static_cast<std::uint32_t>(shape.count(axis, shape.rank() - 1)));
  }
  const std::uint64_t turn = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  return braced(array(stage, "lengths", lengths), unsigned_num(turn));
}

std::string ParameterWriter::resize_between(std::size_t stage, const Node& node) {
  const operators::IntegerResizeParameters p = integer::resize_parameters(graph_, node);
  const bool integers = node.numeric == model::NumericClass::kInt8;
  const Shape &in = graph_.tensor(node.inputs[0]).shape, &out = graph_.tensor(node.outputs[0]).shape;
  const auto taps = [&](int axis, const char* places_name, const char* weights_name) {
    std::vector<std::uint16_t> places;
    std::vector<float> weights;
    int count = 1;
    for (std::int64_t i = 0; i < out[axis]; ++i) {
      kernels::ResizeTaps of_position = kernels::resize_taps(p.resize, in, out, axis, i);
      if (integers) {
        const kernels::LinearTaps two = kernels::linear_taps(p.resize, in, out, axis, i);
        of_position = {2, {two.source[0], two.source[1]}, {two.weight[0], two.weight[1]}};
      }
      count = of_position.count;
      for (std::size_t tap = 0; tap < static_cast<std::size_t>(count); ++tap) {
        places.push_back(static_cast<std::uint16_t>(of_position.source[tap]));
        weights.push_back(of_position.weight[tap]);
      }
    }
    return braced(array(stage, places_name, places), array(stage, weights_name, weights), num(count));
  };
  const std::string rows = taps(1, "rows", "row_weights"), pixels = taps(2, "pixels", "pixel_weights");
  if (!integers) return braced(rows, pixels, num(out.back()));
  return braced(rows, pixels, num(out.back()), range_of(p.range), num(p.zero_in), c_float(p.scale_in), c_float(p.scale));
}

std::string ParameterWriter::resize(std::size_t stage, const Node& node) {
  const operators::ResizeParameters p = kernels::resize_parameters(graph_, node);
  const model::Tensor &in = graph_.tensor(node.inputs[0]), &out = graph_.tensor(node.outputs[0]);
  const auto sources = [&](int axis) {
    std::vector<std::uint16_t> places;
    for (std::int64_t i = 0; i < out.shape[axis]; ++i)
      places.push_back(static_cast<std::uint16_t>(kernels::resize_taps(p, in.shape, out.shape, axis, i).source[0]));
    return places;
  };
  const std::string rows = array(stage, "rows", sources(1)), pixels = array(stage, "pixels", sources(2));
  return braced(rows, pixels, unsigned_num(static_cast<std::uint64_t>(out.shape.back()) * size_of(out.dtype)),
                num(out.dtype == DType::kF32 ? 1 : 0));
}

std::string ParameterWriter::pad(std::size_t stage, const Node& node) {
  const operators::PadParameters p = kernels::pad_parameters(graph_, node);
  const model::Tensor &in = graph_.tensor(node.inputs[0]), &out = graph_.tensor(node.outputs[0]);
  const auto sources = [&](int axis) {
    std::vector<std::int16_t> places;
    for (std::int64_t i = 0; i < out.shape[axis]; ++i)
      places.push_back(
          static_cast<std::int16_t>(kernels::reference::pad_source(p.mode, i - p.before[static_cast<std::size_t>(axis)], in.shape[axis])));
    return places;
  };
  const std::array<std::byte, 8> element = kernels::reference::element_of(out.dtype, p.value);
  std::vector<std::uint8_t> border;
  for (std::int64_t c = 0; c < out.shape.back(); ++c)
    for (std::size_t i = 0; i < size_of(out.dtype); ++i) border.push_back(static_cast<std::uint8_t>(element[i]));
  const std::string rows = array(stage, "rows", sources(1)), pixels = array(stage, "pixels", sources(2));
  const bool channels_keep = p.before[3] == 0 && in.shape[3] == out.shape[3];
  const std::string channels = channels_keep ? "NULL" : array(stage, "channels", sources(3));
  return braced(rows, pixels, channels, array(stage, "border", border), num(out.shape[3]),
                num(static_cast<std::int64_t>(size_of(out.dtype))));
}

namespace {

/// Bytes from one index of an axis to the next.
std::vector<std::int64_t> steps_of(const model::Tensor& tensor) {
  std::vector<std::int64_t> steps(static_cast<std::size_t>(tensor.shape.rank()));
  auto step = static_cast<std::int64_t>(size_of(tensor.dtype));
  for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    steps[static_cast<std::size_t>(axis)] = step;
    step *= tensor.shape[axis];
  }
  return steps;
}

std::vector<std::uint32_t> leading_extents(const Shape& shape) {
  std::vector<std::uint32_t> extents;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) extents.push_back(static_cast<std::uint32_t>(shape[axis]));
  if (extents.empty()) extents.push_back(1);
  return extents;
}

}  // namespace

std::string ParameterWriter::copy(std::size_t stage, const Node& node) {
  const model::Tensor &in = graph_.tensor(node.inputs[0]), &out = graph_.tensor(node.outputs[0]);
  const std::vector<std::int64_t> in_steps = steps_of(in);
  std::vector<std::int32_t> steps;
  std::int64_t start = 0;
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (node.op == model::OpKind::kTranspose) {
      steps.push_back(static_cast<std::int32_t>(in_steps[static_cast<std::size_t>(node.as<model::TransposeAttributes>().perm[a])]));
    } else {
      const auto& slice = node.as<model::SliceAttributes>();
      start += slice.start[a] * in_steps[a];
      steps.push_back(static_cast<std::int32_t>(slice.step[a] * in_steps[a]));
    }
  }
  const std::int32_t last = steps.back();
  steps.pop_back();
  if (steps.empty()) steps.push_back(0);
  const std::string extents = array(stage, "extents", leading_extents(out.shape)), strides = array(stage, "steps", steps);
  return braced(extents, strides, num(start), num(last), num(out.shape.back()), num(static_cast<std::int64_t>(steps.size())),
                num(static_cast<std::int64_t>(size_of(out.dtype))));
}

std::string ParameterWriter::attention(const Node& node) {
  const operators::AttentionParameters p = kernels::attention_parameters(graph_, node);
  return braced(num(p.heads), num(p.depth), num(p.width), num(p.queries), num(p.keys), num(p.causal ? 1 : 0), c_float(p.scale));
}

std::string ParameterWriter::matmul(std::size_t stage, const Node& node) {
  const Shape& out = graph_.tensor(node.outputs[0]).shape;
  const auto steps = [&](std::size_t input) {
    const model::Tensor& tensor = graph_.tensor(node.inputs[input]);
    const std::vector<std::int64_t> own = steps_of(tensor);
    std::vector<std::int32_t> result;
    for (int axis = 0; axis + 1 < out.rank(); ++axis) {
      const int of_tensor = axis - (out.rank() - tensor.shape.rank());
      const bool row = axis + 2 == out.rank();  // rows of the second input are what is summed
      const bool repeated = of_tensor < 0 || tensor.shape[of_tensor] == 1 || (row && input == 1);
      result.push_back(repeated ? 0 : static_cast<std::int32_t>(own[static_cast<std::size_t>(of_tensor)]));
    }
    return result;
  };
  const std::string extents = array(stage, "extents", leading_extents(out));
  const std::string a = array(stage, "a_steps", steps(0)), b = array(stage, "b_steps", steps(1));
  const std::string depth = num(graph_.tensor(node.inputs[0]).shape.back()), columns = num(out.back()), axes = num(out.rank() - 1);
  if (network_.stages[stage].kernel == Kernel::kMatMul) return braced(extents, a, b, depth, columns, axes);
  const operators::IntegerMatMulParameters p = integer::matmul_parameters(graph_, node);
  return braced(extents, a, b, depth, columns, c_float(p.multiplier), range_of(p.range), axes, num(p.zero_a), num(p.zero_b),
                num(static_cast<std::int64_t>(size_of(graph_.tensor(node.outputs[0]).dtype))));
}

}  // namespace sluice::emit
