// Einsum: of two run-time values, each letter once in each term, a product of matrices; else the equation's letters become numbers.
#include <algorithm>

#include "src/importer/lower_plain.h"

namespace sluice::importer {
namespace {

struct Equation {
  std::vector<std::string> terms;  // of the inputs
  std::string result;
};

/// Puts letters that the equation does not have in the place of each ellipsis, by numpy's rule: the last axes of all are the same. Returns the
/// letters of the longest.
std::string name_ellipses(const NodeContext& c, std::string_view text, Equation& equation) {
  constexpr std::string_view kEllipsis = "...";
  std::string free;
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if ((letter <= 'Z' || letter >= 'a') && text.find(letter) == std::string_view::npos) free += letter;
  const auto hidden_axes = [&](std::size_t i) {
    if (i >= c.input_count() || equation.terms[i].find(kEllipsis) == std::string::npos) return 0;
    const int hidden = c.input_shape(i).rank() - static_cast<int>(equation.terms[i].size() - kEllipsis.size());
    if (hidden < 0 || hidden > static_cast<int>(free.size())) c.malformed("a term has more letters than its input has axes");
    return hidden;
  };
  int most = 0;
  for (std::size_t i = 0; i < equation.terms.size(); ++i) most = std::max(most, hidden_axes(i));
  const std::string letters = free.substr(0, static_cast<std::size_t>(most));
  const auto name = [&](std::string& term, int count) {
    if (const std::size_t at = term.find(kEllipsis); at != std::string::npos)
      term.replace(at, kEllipsis.size(), letters.substr(static_cast<std::size_t>(most - count)));
  };
  for (std::size_t i = 0; i < equation.terms.size(); ++i) name(equation.terms[i], hidden_axes(i));
  name(equation.result, most);
  return letters;
}

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
  if (arrow != std::string::npos) equation.result = text.substr(arrow + 2);
  const std::string hidden = name_ellipses(c, text, equation);
  if (arrow != std::string::npos) return equation;
  // Without an arrow: the axes behind ellipses, then the letters that occur once, in alphabetical order.
  equation.result = hidden;
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if (std::count(left.begin(), left.end(), letter) == 1) equation.result += letter;
  return equation;
}

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

/// An equation of two terms as matrices: [shared, rows, summed] times [shared, summed, columns].
struct Product {
  std::string shared, rows, columns, summed;
};

/// Is it one? Each letter stands once in a term, and in both terms or in the result.
bool product_of(const NodeContext& c, const Equation& equation, Product& product) {
  if (equation.terms.size() != 2) return false;
  const std::string &a = equation.terms[0], &b = equation.terms[1];
  for (const std::string& term : equation.terms)
    for (const char letter : term)
      if (std::count(term.begin(), term.end(), letter) != 1) return false;
  for (const char letter : equation.result) {
    if (!has(a, letter) && !has(b, letter)) return false;
    (has(a, letter) && has(b, letter) ? product.shared : has(a, letter) ? product.rows : product.columns) += letter;
  }
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    const char letter = a[axis];
    if (!has(b, letter)) {
      if (!has(equation.result, letter)) return false;
      continue;
    }
    if (c.input_shape(0)[static_cast<int>(axis)] != c.input_shape(1)[static_cast<int>(b.find(letter))]) return false;
    if (!has(equation.result, letter)) product.summed += letter;
  }
  return std::all_of(b.begin(), b.end(), [&](char letter) { return has(a, letter) || has(equation.result, letter); });
}

/// x, whose axes are `letters`, with its axes in the order of `wanted`.
ValueId ordered(NodeContext& c, ValueId x, const std::string& letters, const std::string& wanted) {
  if (letters == wanted) return x;
  Perm perm = kIdentityPerm;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) perm[axis] = static_cast<std::int8_t>(letters.find(wanted[axis]));
  return c.add_transpose(x, perm);
}

std::int64_t extent_of(const Shape& shape, const std::string& letters, const std::string& chosen) {
  std::int64_t extent = 1;
  for (const char letter : chosen) extent *= shape[static_cast<int>(letters.find(letter))];
  return extent;
}

ValueId add_einsum_product(NodeContext& c, Equation equation, Product product) {
  ValueId a = c.float_input(0), b = c.float_input(1);
  // Panels are made of a constant on the right; else a result that ends with rows is the product the other way round.
  const bool ends_with_rows = !product.rows.empty() && equation.result.back() == product.rows.back();
  if (c.constant(a) != nullptr || (c.constant(b) == nullptr && ends_with_rows)) {
    std::swap(a, b);
    std::swap(equation.terms[0], equation.terms[1]);
    std::swap(product.rows, product.columns);
  }
  const Shape shape_a = c.shape(a), shape_b = c.shape(b);
  const std::int64_t shared = extent_of(shape_a, equation.terms[0], product.shared),
                     summed = extent_of(shape_a, equation.terms[0], product.summed),
                     rows = extent_of(shape_a, equation.terms[0], product.rows),
                     columns = extent_of(shape_b, equation.terms[1], product.columns);
  const ValueId left = c.add_reshape(ordered(c, a, equation.terms[0], product.shared + product.rows + product.summed),
                                     shared == 1 ? Shape{rows, summed} : Shape{shared, rows, summed});
  const ValueId right = c.add_reshape(ordered(c, b, equation.terms[1], product.shared + product.summed + product.columns),
                                      shared == 1 ? Shape{summed, columns} : Shape{shared, summed, columns});
  const std::string letters = product.shared + product.rows + product.columns;
  std::vector<std::int64_t> dims;
  for (const char letter : letters)
    dims.push_back(has(equation.terms[0], letter) ? extent_of(shape_a, equation.terms[0], {letter})
                                                  : extent_of(shape_b, equation.terms[1], {letter}));
  return ordered(c, c.add_reshape(add_product(c, left, right), c.make_shape(dims)), letters, equation.result);
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
  const bool fixed =
      std::none_of(inputs.begin(), inputs.end(), [&](ValueId x) { return c.bounded(x) || !is_float(c.draft().value(x).dtype); });
  const bool run_time = std::any_of(inputs.begin(), inputs.end(), [&](ValueId x) { return c.constant(x) == nullptr; });
  if (Product product; fixed && run_time && product_of(c, equation, product))
    return c.set_output(0, add_einsum_product(c, equation, product));
  c.set_output(0, add_plain(c, "EinsumOfLetters", inputs, {axes, {static_cast<std::int64_t>(equation.result.size())}}));
}

}  // namespace sluice::importer
