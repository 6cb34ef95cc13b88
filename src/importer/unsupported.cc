#include "src/importer/unsupported.h"

#include <algorithm>
#include <vector>

#include "sluice/kernels/plain.h"
#include "src/importer/lowering.h"

namespace sluice::importer {
namespace {

struct Hint {
  std::string_view begins;  // of the operator's name
  std::string_view advice;
};

constexpr Hint kHints[] = {
    {"String", "strings are not supported; handle text before the model"},
    {"RegexFullMatch", "strings are not supported; handle text before the model"},
    {"ImageDecoder", "pictures are decoded before the model (sluice run --input PICTURE)"},
    {"Random", "a model gives the same result each time; pass random values as an input"},
    {"Bernoulli", "a model gives the same result each time; pass random values as an input"},
    {"Multinomial", "a model gives the same result each time; draw in the program, from the probabilities"},
    {"Gradient", "training is not supported; export the model for inference"},
    {"ai.onnx.ml::", "classical machine learning is not supported; export the network that follows it"},
    {"ai.onnx.preview.training::", "training is not supported; export the model for inference"},
};

/// Letters changed, added or left out, for names that differ by little.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, above + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

/// The supported operator whose name is nearest, if it is near: the same operator of another domain, or a variant.
std::string_view nearest(std::string_view op) {
  const std::size_t domain = op.rfind(':');
  const std::string_view name = domain == std::string_view::npos ? op : op.substr(domain + 1);
  if (name.size() > 64) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  const auto consider = [&](std::string_view candidate) {
    const std::size_t d = distance(name, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  };
  for (const auto table : {operator_table(), contrib_table()})
    for (const OperatorEntry& entry : table) consider(entry.op_type);
  for (const kernels::PlainOperator* line : kernels::plain_operators()) consider(line->name);
  return best;
}

}  // namespace

std::string_view advice_for(std::string_view op) noexcept {
  for (const Hint& hint : kHints)
    if (op.starts_with(hint.begins)) return hint.advice;
  return {};
}

std::string unsupported_message(std::string_view op) {
  std::string message = "the operator is not supported";
  if (const std::string_view advice = advice_for(op); !advice.empty()) return message + ": " + std::string(advice);
  if (const std::string_view near = nearest(op); !near.empty()) message += "; the nearest that is: " + std::string(near);
  return message + "; docs/operators.md lists those that are";
}

}  // namespace sluice::importer
