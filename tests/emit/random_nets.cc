#include "tests/emit/random_nets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::test {
namespace {

constexpr std::int64_t kMostElements = 6000;

std::int64_t count_of(const Ints& shape) { return QdqBuilder::count_of(shape); }

std::string text_of(const Ints& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? "," : "") + std::to_string(extent);
  return text + "]";
}

/// Extent of what a window makes; below one: it is no window.
std::int64_t windows(std::int64_t in, std::int64_t pads, std::int64_t kernel, std::int64_t dilation, std::int64_t stride) {
  const std::int64_t room = in + pads - (kernel - 1) * dilation - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace

RandomNet::RandomNet(std::uint32_t seed) : random_(seed) {
  bytes_ = chance(50);
  add_inputs();
  const std::int64_t layers = between(1, 9);
  for (std::int64_t i = 0; i < layers; ++i) grow();
  add_outputs();
}

void RandomNet::add_inputs() {
  const std::int64_t inputs = chance(75) ? 1 : between(2, 3), rank = chance(65) ? 4 : between(2, 3);
  const Ints shape = rank == 4   ? Ints{1, between(1, 12), between(1, 14), between(1, 14)}
                     : rank == 3 ? Ints{1, between(1, 16), between(1, 24)}
                                 : Ints{1, between(1, 48)};
  for (std::int64_t i = 0; i < inputs; ++i) {
    Ints dims = shape;
    if (i > 0 && chance(30)) dims[1] = between(1, 9);
    const std::string name = fresh("x");
    onnx_.input(name, dims);
    text_ += "input " + name + " " + text_of(dims) + (bytes_ ? " in bytes\n" : "\n");
    made(name, dims, 0.5f);
  }
}

void RandomNet::grow() {
  static constexpr Layer kLayers[] = {
      &RandomNet::convolution,   &RandomNet::convolution, &RandomNet::convolution,   &RandomNet::convolution,   &RandomNet::transposed,
      &RandomNet::pool,          &RandomNet::pool,        &RandomNet::whole_pool,    &RandomNet::dense,         &RandomNet::dense,
      &RandomNet::flat_dense,    &RandomNet::function,    &RandomNet::function,      &RandomNet::two_values,    &RandomNet::two_values,
      &RandomNet::with_constant, &RandomNet::gate,        &RandomNet::concatenation, &RandomNet::concatenation, &RandomNet::resize,
      &RandomNet::borders,       &RandomNet::slice,       &RandomNet::transpose,     &RandomNet::reshape,       &RandomNet::softmax,
      &RandomNet::norm,          &RandomNet::product};
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    // Mostly what was made last, so that networks are deep.
    const auto last = static_cast<std::int64_t>(values_.size()) - 1;
    const auto value = static_cast<std::size_t>(chance(65) ? last : between(0, last));
    const Layer layer = kLayers[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(std::size(kLayers)) - 1))];
    if ((this->*layer)(value)) return;
  }
}

void RandomNet::add_outputs() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_read && !(i + 1 < values_.size() && chance(5))) continue;
    const std::string name = fresh("y");
    onnx_.node("Identity", {values_[i].name}, {name}).output(name);
    text_ += "output " + name + " = " + values_[i].name + "\n";
  }
}

std::string RandomNet::node(const std::string& op, const std::vector<std::size_t>& values, const std::vector<std::string>& constants,
                            const std::vector<std::string>& attributes) {
  std::vector<std::string> inputs;
  for (const std::size_t value : values) {
    inputs.push_back(values_[value].name);
    values_[value].is_read = true;
  }
  inputs.insert(inputs.end(), constants.begin(), constants.end());
  const std::string raw = fresh("v");
  onnx_.node(op, inputs, {raw}, attributes);
  text_ += op + " " + raw + " =";
  for (const std::string& input : inputs) text_ += " " + input;
  return raw;
}

void RandomNet::made(const std::string& raw, const Ints& shape, float spread, const Linear* like) {
  spread = std::clamp(spread, 0.01f, 4.0f);
  Value value{.name = raw, .shape = shape, .spread = spread};
  if (bytes_ && (like != nullptr || chance(93))) {
    value.linear = like != nullptr ? *like : Linear{spread / 40, static_cast<int>(chance(50) ? between(90, 160) : between(0, 255))};
    value.name = onnx_.pair(raw, value.linear);
  }
  text_ += "  -> " + value.name + " " + text_of(shape) + "\n";
  values_.push_back(std::move(value));
}

/// Of floats, whatever the net computes in, or of bytes with a scale for each output.
std::string RandomNet::weight(const Ints& dims, std::int64_t depth, bool by_output) {
  const std::string name = fresh("w");
  const float most = 1.7f / std::sqrt(static_cast<float>(depth));
  if (!bytes_ || chance(7)) {
    std::vector<float> values(static_cast<std::size_t>(count_of(dims)));
    for (float& value : values) value = most * static_cast<float>(between(-1000, 1000)) / 1000;
    onnx_.initializer(tensor(name, dims, values));
    return name;
  }
  const std::int64_t scales = by_output ? dims[0] : 1;
  std::vector<float> scale(static_cast<std::size_t>(scales));
  for (float& each : scale) each = most / 127 * static_cast<float>(between(700, 1300)) / 1000;
  std::string bytes(static_cast<std::size_t>(count_of(dims)), '\0'), zeros(static_cast<std::size_t>(scales), '\0');
  for (char& byte : bytes) byte = static_cast<char>(between(-128, 127));
  const Ints shape = by_output ? Ints{scales} : Ints{};
  onnx_.initializer(raw_tensor(name + "_bytes", dims, 3, bytes)).initializer(tensor(name + "_scale", shape, scale));
  onnx_.initializer(raw_tensor(name + "_zero", shape, 3, zeros));
  onnx_.node("DequantizeLinear", {name + "_bytes", name + "_scale", name + "_zero"}, {name}, {attribute("axis", std::int64_t{0})});
  return name;
}

std::string RandomNet::ints(const Ints& values) {
  const std::string name = fresh("n");
  onnx_.initializer(tensor(name, {static_cast<std::int64_t>(values.size())}, values));
  return name;
}

std::string RandomNet::floats(const Ints& dims, float low, float high) {
  const std::string name = fresh("c");
  std::vector<float> values(static_cast<std::size_t>(count_of(dims)));
  for (float& value : values) value = low + (high - low) * static_cast<float>(between(0, 1000)) / 1000;
  onnx_.initializer(tensor(name, dims, values));
  return name;
}

bool RandomNet::convolution(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() < 3) return false;
  const std::size_t axes = in.shape.size() - 2;
  const std::int64_t channels = in.shape[1];
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= channels; ++d)
    if (channels % d == 0) divisors.push_back(d);
  const bool depthwise = chance(35);
  const std::int64_t groups = depthwise ? channels : chance(70) ? 1 : one_of(divisors);
  const std::int64_t out =
      depthwise ? channels * (chance(70) ? 1 : between(2, 3)) : groups * between(1, std::max<std::int64_t>(1, 20 / groups));
  Ints kernel, stride, dilation, pads(2 * axes, 0), shape{1, out};
  for (std::size_t a = 0; a < axes; ++a) {
    kernel.push_back(chance(30) ? 1 : between(1, 5));
    stride.push_back(chance(60) ? 1 : between(2, 3));
    dilation.push_back(chance(80) ? 1 : between(2, 3));
    if (chance(60)) pads[a] = pads[axes + a] = kernel[a] / 2 * dilation[a];
    if (chance(25)) pads[a] = between(0, kernel[a]), pads[axes + a] = between(0, kernel[a]);
    shape.push_back(windows(in.shape[2 + a], pads[a] + pads[axes + a], kernel[a], dilation[a], stride[a]));
  }
  if (*std::min_element(shape.begin(), shape.end()) < 1 || count_of(shape) > kMostElements) return false;
  Ints dims{out, channels / groups};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  const std::int64_t depth = count_of(dims) / out;
  std::vector<std::string> constants{weight(dims, depth, chance(80))};
  if (chance(60)) constants.push_back(floats({out}, -0.2f, 0.2f));
  std::string raw = node("Conv", {value}, constants,
                         {attribute("kernel_shape", kernel), attribute("strides", stride), attribute("dilations", dilation),
                          attribute("pads", pads), attribute("group", groups)});
  text_ += " kernel " + text_of(kernel) + " strides " + text_of(stride) + " dilations " + text_of(dilation) + " pads " + text_of(pads) +
           " group " + std::to_string(groups);
  if (chance(45)) {
    const std::string active = fresh("v");
    const std::string op = one_of<std::string>({"Relu", "Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh"});
    onnx_.node(op, {raw}, {active});
    text_ += " " + op;
    raw = active;
  }
  made(raw, shape, in.spread);
  return true;
}

bool RandomNet::transposed(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() != 4 || chance(50)) return false;
  const std::int64_t channels = in.shape[1], groups = chance(70) ? 1 : chance(50) ? channels : channels % 2 == 0 ? 2 : 1;
  const std::int64_t of_group = between(1, groups == 1 ? 10 : 2);
  Ints kernel, stride, pads(4, 0), shape{1, of_group * groups};
  for (std::size_t a = 0; a < 2; ++a) {
    kernel.push_back(between(1, 4));
    stride.push_back(between(1, 3));
    pads[a] = between(0, kernel[a] - 1), pads[2 + a] = between(0, kernel[a] - 1);
    shape.push_back((in.shape[2 + a] - 1) * stride[a] + kernel[a] - pads[a] - pads[2 + a]);
  }
  if (*std::min_element(shape.begin(), shape.end()) < 1 || count_of(shape) > kMostElements) return false;
  const std::string raw =
      node("ConvTranspose", {value}, {weight({channels, of_group, kernel[0], kernel[1]}, channels * kernel[0] * kernel[1] / groups, false)},
           {attribute("kernel_shape", kernel), attribute("strides", stride), attribute("pads", pads), attribute("group", groups)});
  text_ += " kernel " + text_of(kernel) + " strides " + text_of(stride) + " pads " + text_of(pads) + " group " + std::to_string(groups);
  made(raw, shape, in.spread);
  return true;
}

bool RandomNet::pool(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() < 3) return false;
  const bool most = chance(50);
  const std::size_t axes = in.shape.size() - 2;
  Ints kernel, stride, dilation, pads(2 * axes, 0), shape{1, in.shape[1]};
  for (std::size_t a = 0; a < axes; ++a) {
    kernel.push_back(between(1, 4));
    stride.push_back(between(1, 3));
    dilation.push_back(most && chance(15) ? 2 : 1);
    if (chance(40)) pads[a] = between(0, kernel[a] - 1), pads[axes + a] = between(0, kernel[a] - 1);
    shape.push_back(windows(in.shape[2 + a], pads[a] + pads[axes + a], kernel[a], dilation[a], stride[a]));
  }
  if (*std::min_element(shape.begin(), shape.end()) < 1) return false;
  std::vector<std::string> attributes{attribute("kernel_shape", kernel), attribute("strides", stride), attribute("pads", pads)};
  if (most) attributes.push_back(attribute("dilations", dilation));
  if (!most && chance(50)) attributes.push_back(attribute("count_include_pad", std::int64_t{1}));
  const std::string raw = node(most ? "MaxPool" : "AveragePool", {value}, {}, attributes);
  text_ += " kernel " + text_of(kernel) + " strides " + text_of(stride) + " pads " + text_of(pads);
  made(raw, shape, in.spread, bytes_ && chance(80) ? &in.linear : nullptr);
  return true;
}

bool RandomNet::whole_pool(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() < 3) return false;
  Ints shape = in.shape;
  if (chance(60)) {
    const std::string raw = node(chance(70) ? "GlobalAveragePool" : "GlobalMaxPool", {value}, {}, {});
    std::fill(shape.begin() + 2, shape.end(), 1);
    made(raw, shape, in.spread);
    return true;
  }
  const std::size_t axis = static_cast<std::size_t>(between(1, static_cast<std::int64_t>(shape.size()) - 1));
  const bool keep = chance(60);
  const std::string raw = node("ReduceMean", {value}, {},
                               {attribute("axes", Ints{static_cast<std::int64_t>(axis)}), attribute("keepdims", std::int64_t{keep})});
  if (keep)
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  made(raw, shape, in.spread / 2);
  return true;
}

bool RandomNet::dense(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() > 3) return false;
  Ints shape = in.shape;
  const std::int64_t depth = shape.back(), out = shape.back() = between(1, 24);
  std::string raw = node("MatMul", {value}, {weight({depth, out}, depth, false)}, {});
  if (chance(60)) {
    const std::string sum = fresh("v");
    onnx_.node("Add", {raw, floats({out}, -0.3f, 0.3f)}, {sum});
    raw = sum;
  }
  made(raw, shape, in.spread);
  return true;
}

bool RandomNet::flat_dense(std::size_t value) {
  const Value in = values_[value];
  if (count_of(in.shape) > 1500 || chance(50)) return false;
  const std::string flat = fresh("v");
  onnx_.node("Flatten", {in.name}, {flat});
  values_[value].is_read = true;
  const std::int64_t depth = count_of(in.shape), out = between(1, 30);
  const std::string raw = fresh("v"), w = weight({out, depth}, depth, true);
  std::vector<std::string> inputs{flat, w};
  if (chance(70)) inputs.push_back(floats({out}, -0.3f, 0.3f));
  onnx_.node("Gemm", inputs, {raw}, {attribute("transB", std::int64_t{1})});
  text_ += "Flatten, Gemm " + raw + " = " + in.name;
  made(raw, {1, out}, in.spread);
  return true;
}

bool RandomNet::function(std::size_t value) {
  const Value in = values_[value];
  const std::string op = one_of<std::string>({"Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Elu", "Exp", "Abs",
                                              "Floor", "Ceil", "Neg", "Clip", "Softplus", "Erf", "Sin", "Round", "Selu", "Sign"});
  std::vector<std::string> constants;
  if (op == "Clip") {
    const std::string low = fresh("c"), high = fresh("c");
    onnx_.initializer(tensor(low, {}, Floats{-0.2f})).initializer(tensor(high, {}, Floats{0.7f}));
    constants = {low, high};
  }
  made(node(op, {value}, constants, {}), in.shape, in.spread);
  return true;
}

bool RandomNet::two_values(std::size_t value) {
  const Value in = values_[value];
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i].shape == in.shape && (i != value || chance(10))) alike.push_back(i);
  if (alike.empty()) return false;
  const std::size_t other = one_of(alike);
  const std::string op = one_of<std::string>({"Add", "Add", "Add", "Mul", "Sub", "Max", "Min"});
  made(node(op, {value, other}, {}, {}), in.shape, std::max(in.spread, values_[other].spread));
  return true;
}

bool RandomNet::with_constant(std::size_t value) {
  const Value in = values_[value];
  Ints dims(in.shape.size(), 1);
  for (std::size_t a = 0; a < dims.size(); ++a)
    if (chance(40)) dims[a] = in.shape[a];
  const std::string op = one_of<std::string>({"Add", "Mul", "Sub", "Div", "PRelu"}), constant = floats(dims, 0.3f, 1.5f);
  made(node(op, {value}, {bytes_ ? onnx_.pair(constant, {1.5f / 255, 0}) : constant}, {}), in.shape, in.spread);
  return true;
}

/// What squeeze and excitation do: a pixel for the whole image.
bool RandomNet::gate(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() != 4) return false;
  const std::string mean = node("GlobalAveragePool", {value}, {}, {});
  const std::size_t at = values_.size();
  made(mean, {1, in.shape[1], 1, 1}, in.spread / 2);
  const std::string active = node("Sigmoid", {at}, {}, {});
  const Linear share{1.0f / 256, 0};
  made(active, {1, in.shape[1], 1, 1}, 0.2f, bytes_ ? &share : nullptr);
  made(node("Mul", {value, at + 1}, {}, {}), in.shape, in.spread / 2);
  return true;
}

bool RandomNet::concatenation(std::size_t value) {
  const Value in = values_[value];
  const auto axis = static_cast<std::size_t>(chance(60) ? 1 : between(1, static_cast<std::int64_t>(in.shape.size()) - 1));
  std::vector<std::size_t> joined{value};
  Ints shape = in.shape;
  for (std::size_t i = 0; i < values_.size() && joined.size() < 4; ++i) {
    Ints other = values_[i].shape;
    if (other.size() != shape.size() || (i == value && !chance(10))) continue;
    const std::int64_t extent = other[axis];
    other[axis] = shape[axis];
    if (other != shape) continue;
    joined.push_back(i);
    shape[axis] += extent;
  }
  if (joined.size() < 2 || count_of(shape) > kMostElements) return false;
  std::shuffle(joined.begin(), joined.end(), random_);
  made(node("Concat", joined, {}, {attribute("axis", static_cast<std::int64_t>(axis))}), shape, in.spread);
  return true;
}

bool RandomNet::resize(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() != 4) return false;
  Ints shape = in.shape;
  for (std::size_t a = 2; a < 4; ++a) shape[a] = chance(60) ? shape[a] * 2 : between(1, 20);
  if (count_of(shape) > kMostElements) return false;
  const std::string mode = chance(50) ? "nearest" : bytes_ || chance(70) ? "linear" : "cubic";
  const std::string transform = one_of<std::string>({"half_pixel", "asymmetric", "align_corners"});
  made(node("Resize", {value}, {"", "", ints(shape)},
            {attribute("mode", mode.c_str()), attribute("coordinate_transformation_mode", transform.c_str())}),
       shape, in.spread, bytes_ && mode == "nearest" ? &in.linear : nullptr);
  return true;
}

bool RandomNet::borders(std::size_t value) {
  const Value in = values_[value];
  const std::size_t rank = in.shape.size();
  Ints pads(2 * rank, 0), shape = in.shape;
  const std::string mode = one_of<std::string>({"constant", "reflect", "edge"});
  for (std::size_t a = rank == 4 ? 2 : 1; a < rank; ++a)
    for (const std::size_t side : {a, rank + a})
      shape[a] += pads[side] = std::min(between(0, 2), mode == "reflect" ? in.shape[a] - 1 : std::int64_t{2});
  made(node("Pad", {value}, {ints(pads)}, {attribute("mode", mode.c_str())}), shape, in.spread, bytes_ ? &in.linear : nullptr);
  return true;
}

bool RandomNet::slice(std::size_t value) {
  const Value in = values_[value];
  Ints shape = in.shape, from, to, axes, steps;
  for (std::size_t a = 1; a < shape.size(); ++a) {
    if (chance(40)) continue;
    const std::int64_t first = between(0, shape[a] - 1), last = between(first, shape[a] - 1), step = chance(70) ? 1 : between(2, 3);
    from.push_back(first), to.push_back(last + 1), axes.push_back(static_cast<std::int64_t>(a)), steps.push_back(step);
    shape[a] = (last - first) / step + 1;
  }
  if (axes.empty()) return false;
  made(node("Slice", {value}, {ints(from), ints(to), ints(axes), ints(steps)}, {}), shape, in.spread, bytes_ ? &in.linear : nullptr);
  return true;
}

bool RandomNet::transpose(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() < 3) return false;
  Ints order(in.shape.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::shuffle(order.begin() + 1, order.end(), random_);
  Ints shape;
  for (const std::int64_t axis : order) shape.push_back(in.shape[static_cast<std::size_t>(axis)]);
  made(node("Transpose", {value}, {}, {attribute("perm", order)}), shape, in.spread, bytes_ ? &in.linear : nullptr);
  return true;
}

bool RandomNet::reshape(std::size_t value) {
  const Value in = values_[value];
  const std::int64_t count = count_of(in.shape);
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= count; ++d)
    if (count % d == 0) divisors.push_back(d);
  const std::int64_t first = one_of(divisors);
  Ints shape{1, first, count / first};
  if (chance(50)) {
    std::vector<std::int64_t> of_rest;
    for (std::int64_t d = 1; d <= count / first; ++d)
      if (count / first % d == 0) of_rest.push_back(d);
    const std::int64_t second = one_of(of_rest);
    shape = {1, first, second, count / first / second};
  }
  made(node("Reshape", {value}, {ints(shape)}, {}), shape, in.spread, bytes_ ? &in.linear : nullptr);
  return true;
}

bool RandomNet::softmax(std::size_t value) {
  const Value in = values_[value];
  if (chance(40)) return false;
  const std::int64_t axis = chance(75) ? -1 : between(1, static_cast<std::int64_t>(in.shape.size()) - 1);
  const Linear share{1.0f / 256, 0};
  made(node(chance(85) ? "Softmax" : "LogSoftmax", {value}, {}, {attribute("axis", axis)}), in.shape, 0.3f, bytes_ ? &share : nullptr);
  return true;
}

bool RandomNet::norm(std::size_t value) {
  const Value in = values_[value];
  if (bytes_ && chance(70)) return false;
  if (in.shape.size() == 4) {
    const Ints channels{in.shape[1]};
    made(node("BatchNormalization", {value},
              {floats(channels, 0.5f, 1.5f), floats(channels, -0.5f, 0.5f), floats(channels, -0.5f, 0.5f), floats(channels, 0.3f, 1.0f)},
              {}),
         in.shape, in.spread);
    return true;
  }
  const Ints last{in.shape.back()};
  made(node("LayerNormalization", {value}, {floats(last, 0.5f, 1.5f), floats(last, -0.5f, 0.5f)}, {attribute("axis", std::int64_t{-1})}),
       in.shape, 1.0f);
  return true;
}

/// A value by itself, turned.
bool RandomNet::product(std::size_t value) {
  const Value in = values_[value];
  if (in.shape.size() < 3) return false;
  Ints order(in.shape.size()), turned = in.shape, shape = in.shape;
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  shape.back() = shape[shape.size() - 2];
  if (count_of(shape) > kMostElements) return false;
  const std::size_t at = values_.size();
  made(node("Transpose", {value}, {}, {attribute("perm", order)}), turned, in.spread, bytes_ ? &in.linear : nullptr);
  made(node("MatMul", {value, at}, {}, {}), shape, in.spread);
  return true;
}

}  // namespace sluice::test
