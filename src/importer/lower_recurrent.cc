// RNN, GRU and LSTM: the names of their functions become numbers and their parameters get values; the rest is as in the table.
#include <algorithm>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

struct FunctionEntry {
  std::string_view name;
  double alpha, beta;  // defaults
};
// In the order of the numbers in kernels/plain/recurrent.cc.
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

}  // namespace

void lower_recurrent(NodeContext& c) {
  const std::string_view direction = c.string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.malformed("attribute direction has an unknown value");
  const std::int64_t number = direction == "forward" ? 0 : direction == "reverse" ? 1 : 2;
  const Functions functions = read_functions(c, number == 2 ? 2 : 1);
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
