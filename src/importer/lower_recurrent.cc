// RNN, GRU and LSTM. With constant matrices each direction becomes two nodes: a dense layer that multiplies all time steps by the input
// matrix at once, and a kRecurrent node for what follows from the time step before; the outputs are parts of what that leaves.
//
//     X [T, B, I] --dense (W, both biases)--> [T, B, gates * H] --recurrent (R)--> [T, B, gates * H] --slice--> Y, Y_h, Y_c
//
// What has no such form (lengths, clip, rare functions) is the plain operator of the name.
#include <algorithm>
#include <bit>
#include <optional>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

struct FunctionEntry {
  std::string_view name;
  double alpha, beta;  // defaults
};
// In the order of the numbers in src/kernels/plain/recurrent.cc.
constexpr FunctionEntry kFunctions[] = {{"Sigmoid", 0, 0},      {"Tanh", 0, 0},
                                        {"Relu", 0, 0},         {"Affine", 1, 0},
                                        {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
                                        {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
                                        {"Elu", 1, 0},          {"Softsign", 0, 0},
                                        {"Softplus", 0, 0}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return (x | 32) == (y | 32); });
}

struct Functions {
  std::vector<std::int64_t> numbers, alphas, betas;
};

Functions read_functions(const NodeContext& c, std::size_t directions) {
  const std::string_view op = c.node().op_type;
  std::vector<std::string_view> names = c.strings("activations");
  if (names.empty())
    for (std::size_t d = 0; d < directions; ++d) {
      if (op != "RNN") names.push_back("Sigmoid");
      names.push_back("Tanh");
      if (op == "LSTM") names.push_back("Tanh");
    }
  const OnnxAttribute *alpha = c.attribute("activation_alpha"), *beta = c.attribute("activation_beta");
  std::size_t alphas = 0, betas = 0;
  Functions functions;
  for (const std::string_view name : names) {
    std::int64_t number = -1;
    for (std::size_t i = 0; i < std::size(kFunctions); ++i)
      if (equal_ignoring_case(name, kFunctions[i].name)) number = static_cast<std::int64_t>(i);
    if (number < 0) c.refuse("activation function " + std::string(name));
    // The lists hold values for those functions that take any, in order.
    const FunctionEntry& entry = kFunctions[number];
    const bool takes_beta = number == 3 || number == 6 || number == 7,
               takes_alpha = takes_beta || number == 4 || number == 5 || number == 8;
    double a = entry.alpha, b = entry.beta;
    if (takes_alpha && alpha != nullptr && alphas < alpha->floats.size()) a = alpha->floats[alphas++];
    if (takes_beta && beta != nullptr && betas < beta->floats.size()) b = beta->floats[betas++];
    functions.numbers.push_back(number);
    functions.alphas.push_back(real_bits(a));
    functions.betas.push_back(real_bits(b));
  }
  return functions;
}

// ---- the sliced form

using model::Cell;
using model::Function;
using model::OpKind;

std::optional<model::Activation> function_of(const Functions& functions, std::size_t i) {
  const auto alpha = static_cast<float>(std::bit_cast<double>(functions.alphas[i]));
  const auto beta = static_cast<float>(std::bit_cast<double>(functions.betas[i]));
  switch (functions.numbers[i]) {
    case 0:
      return model::Activation{Function::kSigmoid, 0, 0};
    case 1:
      return model::Activation{Function::kTanh, 0, 0};
    case 2:
      return model::Activation{Function::kRelu, 0, 0};
    case 4:
      return model::Activation{Function::kLeakyRelu, alpha, 0};
    case 7:
      return model::Activation{Function::kHardSigmoid, alpha, beta};
    case 8:
      return model::Activation{Function::kElu, alpha, 0};
    case 10:
      return model::Activation{Function::kSoftplus, 0, 0};
    default:
      return std::nullopt;
  }
}

/// Element i of a constant's first axis.
Constant part(const Constant& c, std::int64_t i) {
  Constant one = c;
  one.data += i * c.strides[0] * static_cast<std::int64_t>(size_of(c.dtype));
  one.shape[0] = 1;
  return *reshaped(one, Shape{c.shape[1], c.shape[2]});
}

/// An RNN, GRU or LSTM whose matrices are constants.
class SlicedForm {
 public:
  SlicedForm(NodeContext& c, bool batch_first) : c_(c), batch_first_(batch_first) {}

  /// False: there is no such form; nothing is changed.
  bool read(const Functions& functions, std::int64_t direction) {
    const std::string_view op = c_.node().op_type;
    attributes_.cell = op == "RNN" ? Cell::kRnn : op == "GRU" ? Cell::kGru : Cell::kLstm;
    direction_ = direction;
    w_ = matrix(1);
    r_ = matrix(2);
    if (c_.bounded(c_.input(0))) return false;  // extents of the run
    if (!w_ || !r_ || c_.constant(c_.input(0)) != nullptr || c_.has_input(4) || c_.real("clip", 0.0f) != 0.0f) return false;
    const Shape x = c_.input_shape(0);
    const std::int64_t directions = direction == 2 ? 2 : 1;
    attributes_.hidden = r_->shape[2];
    const std::int64_t stated = c_.integer("hidden_size", 0);
    if (stated != 0 && stated != attributes_.hidden)
      c_.malformed("attribute hidden_size is " + std::to_string(stated) + ", R is made for " + std::to_string(attributes_.hidden));
    const std::int64_t rows = attributes_.gates() * attributes_.hidden;
    if (x.rank() != 3 || !is_float(c_.draft().value(c_.input(0)).dtype) || attributes_.hidden < 1 ||
        !(w_->shape == Shape{directions, rows, x[2]}) || !(r_->shape == Shape{directions, rows, attributes_.hidden}))
      return false;
    times_ = x[batch_first_ ? 1 : 0];
    batches_ = x[batch_first_ ? 0 : 1];
    if (times_ < 1 || batches_ < 1 || !read_vector(3, directions * 2 * rows, biases_) ||
        !read_vector(7, directions * 3 * attributes_.hidden, peepholes_))
      return false;
    for (const std::size_t i : {5u, 6u})
      if (c_.has_input(i) && c_.input_shape(i).element_count() != directions * batches_ * attributes_.hidden) return false;
    return read_functions_of(functions, directions);
  }

  void lower() {
    const ValueId x = batch_first_ ? c_.add_transpose(c_.float_input(0), Perm{1, 0, 2, 3, 4, 5, 6, 7}) : c_.float_input(0);
    const std::int64_t directions = direction_ == 2 ? 2 : 1;
    std::vector<ValueId> all, last_hidden, last_cell;
    for (std::int64_t d = 0; d < directions; ++d) {
      const bool reverse = direction_ == 1 || d == 1;
      const ValueId states = add_direction(x, d, reverse);
      const std::int64_t last = reverse ? 0 : times_ - 1, gates = attributes_.gates();
      if (c_.wants_output(0))
        all.push_back(c_.add_reshape(states_of(states, 0, times_, gates - 1), Shape{times_, 1, batches_, attributes_.hidden}));
      if (c_.wants_output(1)) last_hidden.push_back(states_of(states, last, 1, gates - 1));
      if (c_.wants_output(2)) last_cell.push_back(states_of(states, last, 1, gates - 2));
    }
    if (c_.wants_output(0)) c_.set_output(0, ordered(joined(all, 1), Perm{2, 0, 1, 3, 4, 5, 6, 7}));
    if (c_.wants_output(1)) c_.set_output(1, ordered(joined(last_hidden, 0), Perm{1, 0, 2, 3, 4, 5, 6, 7}));
    if (c_.wants_output(2)) c_.set_output(2, ordered(joined(last_cell, 0), Perm{1, 0, 2, 3, 4, 5, 6, 7}));
  }

 private:
  std::optional<Constant> matrix(std::size_t input) const {
    const Constant* constant = c_.has_input(input) ? c_.constant(c_.input(input)) : nullptr;
    if (constant == nullptr || !is_float(constant->dtype) || constant->shape.rank() != 3) return std::nullopt;
    return *constant;
  }

  /// An input that is not there stays empty. False: it is no constant of `count` floats.
  bool read_vector(std::size_t input, std::int64_t count, std::vector<float>& values) const {
    if (!c_.has_input(input)) return true;
    const Constant* constant = c_.constant(c_.input(input));
    if (constant == nullptr || !is_float(constant->dtype) || constant->elements() != count || count > kMaxFoldedElements) return false;
    values = floats(*constant);
    return true;
  }

  bool read_functions_of(const Functions& functions, std::int64_t directions) {
    const std::size_t each = attributes_.cell == Cell::kRnn ? 1 : attributes_.cell == Cell::kGru ? 2 : 3;
    if (functions.numbers.size() != each * static_cast<std::size_t>(directions)) return false;
    functions_.resize(static_cast<std::size_t>(directions));
    for (std::size_t i = 0; i < functions.numbers.size(); ++i) {
      const auto function = function_of(functions, i);
      if (!function) return false;
      functions_[i / each][i % each] = *function;
    }
    return true;
  }

  /// Gates as kRecurrent has them.
  std::vector<std::int32_t> order() const {
    if (attributes_.cell == Cell::kLstm) return {0, 2, 3, 1};  // ONNX: i, o, f, c
    if (attributes_.cell == Cell::kGru) return {0, 1, 2};
    return {0};
  }

  PanelValues panels(std::size_t input, const Constant& values, std::int64_t d) const {
    PanelValues made;
    made.name = c_.draft().value(c_.input(input)).name;
    made.values = part(values, d);
    if (attributes_.cell == Cell::kLstm) made.run_order = order();
    made.run = attributes_.hidden;
    return made;
  }

  /// Biases of direction d, gate after gate: those of the input matrix, which take in those of the recurrent one, but for the last gate of
  /// a GRU that multiplies its sum by r.
  void split_biases(std::int64_t d, std::vector<float>& input, std::vector<float>& recurrent) const {
    if (biases_.empty()) return;
    const std::int64_t hidden = attributes_.hidden, rows = attributes_.gates() * hidden;
    for (const std::int32_t gate : order())
      for (std::int64_t i = 0; i < hidden; ++i) {
        const auto at = static_cast<std::size_t>(d * 2 * rows + gate * hidden + i);
        const float of_input = biases_[at], of_state = biases_[at + static_cast<std::size_t>(rows)];
        const bool apart = attributes_.linear_before_reset && gate == 2;
        input.push_back(apart ? of_input : of_input + of_state);
        if (attributes_.linear_before_reset) recurrent.push_back(apart ? of_state : 0.0f);
      }
  }

  ValueId add_direction(ValueId x, std::int64_t d, bool reverse) {
    std::vector<float> input_bias, bias;
    attributes_.linear_before_reset = attributes_.cell == Cell::kGru && c_.integer("linear_before_reset", 0) != 0;
    attributes_.input_forget = attributes_.cell == Cell::kLstm && c_.integer("input_forget", 0) != 0;
    attributes_.reverse = reverse;
    attributes_.functions = functions_[static_cast<std::size_t>(d)];
    attributes_.first_hidden = c_.has_input(5);
    attributes_.first_cell = attributes_.cell == Cell::kLstm && c_.has_input(6);
    attributes_.peepholes = attributes_.cell == Cell::kLstm && !peepholes_.empty();
    split_biases(d, input_bias, bias);
    const std::int64_t inputs = c_.input_shape(0)[2], outputs = attributes_.gates() * attributes_.hidden;
    const Shape shape{times_, batches_, outputs};
    const ValueId gates = c_.add(OpKind::kDense, {x}, shape, model::DenseAttributes{inputs, outputs});
    attach(panels(1, *w_, d), std::move(input_bias));
    std::vector<ValueId> operands{gates};
    if (attributes_.first_hidden) operands.push_back(first_state(5, d));
    if (attributes_.first_cell) operands.push_back(first_state(6, d));
    const ValueId states = c_.add(OpKind::kRecurrent, operands, shape, attributes_);
    attach(panels(2, *r_, d), std::move(bias));
    const auto own = static_cast<std::ptrdiff_t>(3 * attributes_.hidden);
    if (attributes_.peepholes) c_.last_node().scale.assign(peepholes_.begin() + d * own, peepholes_.begin() + (d + 1) * own);
    return states;
  }

  void attach(PanelValues panels, std::vector<float> bias) {
    DraftNode& node = c_.last_node();
    node.panels = std::move(panels);
    node.epilogue.has_bias = !bias.empty();
    node.bias = std::move(bias);
  }

  /// [B, H] of a direction.
  ValueId first_state(std::size_t input, std::int64_t d) {
    const ValueId all = ordered(c_.float_input(input), Perm{1, 0, 2, 3, 4, 5, 6, 7});
    return c_.add_reshape(c_.add_range(all, 0, d, 1), Shape{batches_, attributes_.hidden});
  }

  /// Channels of one gate, of `count` time steps.
  ValueId states_of(ValueId states, std::int64_t time, std::int64_t count, std::int64_t gate) {
    return c_.add_range(c_.add_range(states, 0, time, count), 2, gate * attributes_.hidden, attributes_.hidden);
  }

  ValueId joined(const std::vector<ValueId>& parts, int axis) {
    if (parts.size() == 1) return parts[0];
    Shape shape = c_.shape(parts[0]);
    shape[axis] = 2;
    const ValueId whole = c_.add(OpKind::kConcat, parts, shape, model::AxisAttributes{axis});
    c_.last_node().axis = axis;
    return whole;
  }

  /// The other layout's order of axes.
  ValueId ordered(ValueId x, const Perm& perm) { return batch_first_ ? c_.add_transpose(x, perm) : x; }

  NodeContext& c_;
  const bool batch_first_;
  std::int64_t direction_ = 0;
  std::int64_t times_ = 0, batches_ = 0;
  std::optional<Constant> w_, r_;  // copies of the views: the draft's values move as it grows
  std::vector<float> biases_, peepholes_;
  std::vector<std::array<model::Activation, 3>> functions_;
  model::RecurrentAttributes attributes_;
};

}  // namespace

void lower_recurrent(NodeContext& c) {
  const std::string_view direction = c.string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.malformed("attribute direction has an unknown value");
  const std::int64_t number = direction == "forward" ? 0 : direction == "reverse" ? 1 : 2;
  const Functions functions = read_functions(c, number == 2 ? 2 : 1);
  SlicedForm sliced(c, c.integer("layout", 0) != 0);
  if (sliced.read(functions, number)) return sliced.lower();
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.has_input(i) ? c.input(i) : ValueId());
  const std::vector<std::vector<std::int64_t>> arguments = {{c.integer("hidden_size", 0)},
                                                            {number},
                                                            {c.integer("layout", 0)},
                                                            {real_bits(c.real("clip", 0.0f))},
                                                            {c.integer("linear_before_reset", 0)},
                                                            {c.integer("input_forget", 0)},
                                                            functions.numbers,
                                                            functions.alphas,
                                                            functions.betas};
  for (std::size_t o = 0; o < c.output_count(); ++o)
    if (c.wants_output(o)) c.set_output(o, add_plain(c, c.node().op_type, inputs, arguments, static_cast<int>(o)));
}

}  // namespace sluice::importer
