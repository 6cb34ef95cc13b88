// Einsum: where each letter stands once in a term, sums, transposes and products of matrices, two terms at a time; else the equation's letters
// become numbers.
#include <algorithm>
#include <cmath>
#include <map>

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

/// A value, and the letters of its axes.
struct Term {
  ValueId value;
  std::string letters;
};

/// Two terms as matrices: [shared, rows, summed] times [shared, summed, columns].
struct Product {
  std::string shared, rows, columns, summed;
};

/// Of two terms without letters of their own that `wanted` lacks.
Product product_of(const Term& a, const Term& b, const std::string& wanted) {
  Product product;
  for (const char letter : wanted)
    if (has(a.letters, letter) || has(b.letters, letter))
      (has(a.letters, letter) && has(b.letters, letter) ? product.shared
       : has(a.letters, letter)                         ? product.rows
                                                        : product.columns) += letter;
  for (const char letter : a.letters)
    if (!has(wanted, letter)) product.summed += letter;
  return product;
}

/// x, whose axes are `letters`, with its axes in the order of `wanted`.
ValueId ordered(NodeContext& c, ValueId x, const std::string& letters, const std::string& wanted) {
  if (letters == wanted) return x;
  Perm perm = kIdentityPerm;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) perm[axis] = static_cast<std::int8_t>(letters.find(wanted[axis]));
  return c.add_transpose(x, perm);
}

std::int64_t extent_of(const NodeContext& c, const Term& term, const std::string& chosen) {
  std::int64_t extent = 1;
  for (const char letter : chosen) extent *= c.shape(term.value)[static_cast<int>(term.letters.find(letter))];
  return extent;
}

/// The letters of one term or two, in their shapes.
Shape shape_of(const NodeContext& c, const Term& a, const Term& b, const std::string& letters) {
  std::vector<std::int64_t> dims;
  for (const char letter : letters) dims.push_back(extent_of(c, has(a.letters, letter) ? a : b, {letter}));
  return c.make_shape(dims);
}

/// The sums over the letters that `wanted` lacks.
Term summed(NodeContext& c, Term term, const std::string& wanted) {
  std::vector<std::int64_t> axes;
  std::string left;
  for (std::size_t axis = 0; axis < term.letters.size(); ++axis) {
    if (has(wanted, term.letters[axis]))
      left += term.letters[axis];
    else
      axes.push_back(static_cast<std::int64_t>(axis));
  }
  if (axes.empty()) return term;
  return {add_plain(c, "ReduceSum", {term.value}, {axes, {0}, {0}}), left};
}

/// Neither term has rows: values of the same places meet, and there is no matrix.
Term multiply_places(NodeContext& c, const Term& a, const Term& b, const Product& product) {
  const std::string letters = product.shared + product.summed;
  const Term places{
      c.add_binary(model::BinaryFunction::kMul, ordered(c, a.value, a.letters, letters), ordered(c, b.value, b.letters, letters)), letters};
  return summed(c, places, product.shared);
}

/// The product of two terms, with the letters of `wanted` that they have: in its order where `last`.
Term multiply(NodeContext& c, Term a, Term b, const std::string& wanted, bool last) {
  Product product = product_of(a, b, wanted);
  if (product.rows.empty() && product.columns.empty()) {
    const Term places = multiply_places(c, a, b, product);
    return last ? Term{ordered(c, places.value, places.letters, wanted), wanted} : places;
  }
  // Panels are made of a constant on the right; else a result that ends with rows is the product the other way round.
  const bool ends_with_rows = last && !product.rows.empty() && wanted.back() == product.rows.back();
  if (c.constant(a.value) != nullptr || (c.constant(b.value) == nullptr && ends_with_rows)) {
    std::swap(a, b);
    std::swap(product.rows, product.columns);
  }
  const std::int64_t shared = extent_of(c, a, product.shared), sum = extent_of(c, a, product.summed), rows = extent_of(c, a, product.rows),
                     columns = extent_of(c, b, product.columns);
  const std::string letters = product.shared + product.rows + product.columns;
  const Shape shape = shape_of(c, a, b, letters);
  const ValueId left = c.add_reshape(ordered(c, a.value, a.letters, product.shared + product.rows + product.summed),
                                     shared == 1 ? Shape{rows, sum} : Shape{shared, rows, sum});
  const ValueId right = c.add_reshape(ordered(c, b.value, b.letters, product.shared + product.summed + product.columns),
                                      shared == 1 ? Shape{sum, columns} : Shape{shared, sum, columns});
  const ValueId y = c.add_reshape(add_product(c, left, right), shape);
  return last ? Term{ordered(c, y, letters, wanted), wanted} : Term{y, letters};
}

/// What the terms but `a` and `b` have, and the result.
std::string wanted_by_others(const std::vector<Term>& terms, const std::string& result, std::size_t a, std::size_t b) {
  std::string wanted = result;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (const char letter : terms[i].letters)
      if (i != a && i != b && !has(wanted, letter)) wanted += letter;
  return wanted;
}

/// The terms as ordinary operators, if each letter has one extent and stands once in a term. Of several terms the two whose product takes the
/// fewest multiplications are the next.
ValueId add_terms(NodeContext& c, std::vector<Term> terms, const std::string& result) {
  for (;;) {
    for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = summed(c, terms[i], wanted_by_others(terms, result, i, i));
    if (terms.size() == 1) return ordered(c, terms[0].value, terms[0].letters, result);
    std::size_t best_a = 0, best_b = 1;
    double least = HUGE_VAL;
    for (std::size_t a = 0; a < terms.size(); ++a)
      for (std::size_t b = a + 1; b < terms.size(); ++b) {
        double cost = static_cast<double>(extent_of(c, terms[a], terms[a].letters));
        for (const char letter : terms[b].letters)
          if (!has(terms[a].letters, letter)) cost *= static_cast<double>(extent_of(c, terms[b], {letter}));
        if (cost < least) least = cost, best_a = a, best_b = b;
      }
    const bool last = terms.size() == 2;
    const std::string wanted = last ? result : wanted_by_others(terms, result, best_a, best_b);
    terms[best_a] = multiply(c, terms[best_a], terms[best_b], wanted, last);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(best_b));
  }
}

/// The terms of an equation of which each letter stands once in a term, without axes of extent 1 that repeat values; nothing of others.
std::vector<Term> plain_terms(NodeContext& c, const Equation& equation) {
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < equation.terms.size(); ++i)
    for (std::size_t axis = 0; axis < equation.terms[i].size(); ++axis) {
      if (equation.terms[i].find(equation.terms[i][axis]) != axis) return {};
      std::int64_t& extent = extents[equation.terms[i][axis]];
      const std::int64_t here = c.input_shape(i)[static_cast<int>(axis)];
      if (extent > 1 && here != 1 && here != extent) return {};
      extent = std::max(extent, here);
    }
  for (const char letter : equation.result)
    if (!extents.contains(letter)) return {};
  std::vector<Term> terms;
  for (std::size_t i = 0; i < equation.terms.size(); ++i) {
    std::vector<std::int64_t> dims;
    Term term{c.float_input(i), {}};
    for (std::size_t axis = 0; axis < equation.terms[i].size(); ++axis) {
      const std::int64_t here = c.input_shape(i)[static_cast<int>(axis)];
      if (here == 0) return {};
      if (here != extents[equation.terms[i][axis]]) continue;
      term.letters += equation.terms[i][axis];
      dims.push_back(here);
    }
    term.value = c.add_reshape(term.value, c.make_shape(dims));
    terms.push_back(std::move(term));
  }
  return terms;
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
  if (fixed && run_time)
    if (std::vector<Term> terms = plain_terms(c, equation); !terms.empty())
      return c.set_output(0, add_terms(c, std::move(terms), equation.result));
  c.set_output(0, add_plain(c, "EinsumOfLetters", inputs, {axes, {static_cast<std::int64_t>(equation.result.size())}}));
}

}  // namespace sluice::importer
