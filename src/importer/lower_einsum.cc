// Einsum: the equation's letters become numbers.
#include <algorithm>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

struct Equation {
  std::vector<std::string> terms;  // of the inputs
  std::string result;
};

Equation parse(const NodeContext& c) {
  std::string text(c.string("equation", ""));
  std::erase(text, ' ');
  Equation equation;
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (std::size_t at = 0; at <= left.size();) {
    const std::size_t comma = std::min(left.find(',', at), left.size());
    equation.terms.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  if (text.find("...") != std::string::npos) c.refuse("an ellipsis in the equation; name its axes");
  if (arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    return equation;
  }
  // Without an arrow: the letters that occur once, in alphabetical order.
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if (std::count(left.begin(), left.end(), letter) == 1) equation.result += letter;
  return equation;
}

}  // namespace

void lower_einsum(NodeContext& c) {
  const Equation equation = parse(c);
  if (equation.terms.size() != c.input_count()) c.malformed("the equation has not one term for each input");
  std::string letters = equation.result;
  for (const std::string& term : equation.terms)
    for (const char letter : term)
      if (letters.find(letter) == std::string::npos) letters += letter;
  if (letters.size() > Shape::kMaxRank) c.refuse("more than 8 letters");
  std::vector<std::int64_t> axes;
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    inputs.push_back(c.input(i));
    if (static_cast<int>(equation.terms[i].size()) != c.input_shape(i).rank()) c.malformed("a term has not one letter for each axis");
    for (const char letter : equation.terms[i]) axes.push_back(static_cast<std::int64_t>(letters.find(letter)));
  }
  for (const char letter : equation.result)
    if (std::count(equation.result.begin(), equation.result.end(), letter) != 1) c.malformed("a letter stands twice in the result");
  c.set_output(0, add_plain(c, "EinsumOfLetters", inputs, {axes, {static_cast<std::int64_t>(equation.result.size())}}));
}

}  // namespace sluice::importer
