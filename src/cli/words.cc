#include "src/cli/words.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "sluice/core/units.h"

namespace sluice::cli {
namespace {

/// Letters to insert, drop, replace or swap with their neighbour until `a` is `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  if (word.size() < 2) return best;
  // Prefers words that begin with what was typed to words that resemble it; among several, the shortest.
  constexpr std::size_t kBegun = 4;
  for (const std::string& candidate : candidates)
    if (word.size() >= kBegun && candidate.starts_with(word) && (best.empty() || candidate.size() < best.size())) best = candidate;
  if (!best.empty()) return best;
  // The end of a longer name: --budget, where there is --for-budget.
  const std::string end = "-" + std::string(word.substr(std::min(word.size(), word.find_first_not_of('-'))));
  for (const std::string& candidate : candidates)
    if (end.size() > kBegun && candidate.size() > word.size() && candidate.ends_with(end)) return candidate;
  const std::size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
  std::size_t least = std::max<std::size_t>(letters / 3, 1);  // a word of two letters may have one wrong
  for (const std::string& candidate : candidates) {
    const std::size_t differences = distance(word, candidate);
    if (differences > least || (differences == least && !best.empty())) continue;
    best = candidate;
    least = differences;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest_word(word, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

std::string hint_for_stray(const std::string& word, bool takes_input) {
  const bool is_unit = !word.empty() && std::isalpha(static_cast<unsigned char>(word.front())) != 0 && parse_bytes("1" + word);
  if (is_unit) return "; a size is one word: 64MiB";
  constexpr std::string_view kInputs[] = {".png", ".jpg", ".jpeg", ".npy", ".npz", ".pb"};
  const bool is_input = std::any_of(std::begin(kInputs), std::end(kInputs), [&](std::string_view end) { return word.ends_with(end); });
  return takes_input && is_input ? "; did you mean '--input " + word + "'?" : "";
}

std::string command_for_file(const std::string& word) {
  if (word.ends_with(".sluice")) return "; did you mean 'sluice run " + word + "'?";
  if (word.ends_with(".onnx")) return "; did you mean 'sluice convert " + word + " -o " + name_of_converted(word) + "'?";
  return "";
}

std::string name_of_converted(const std::string& onnx) {
  constexpr std::string_view kEnd = ".onnx";
  return (onnx.ends_with(kEnd) ? onnx.substr(0, onnx.size() - kEnd.size()) : onnx) + ".sluice";
}

std::vector<std::string> spread_values(std::span<const char* const> arguments, std::span<const std::string_view> options) {
  std::vector<std::string> spread;
  std::string_view open;  // the option whose values may go on
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    const bool is_option = std::find(options.begin(), options.end(), word) != options.end();
    if (is_option && i + 1 < arguments.size()) {
      open = word;
      spread.emplace_back(word);
      spread.emplace_back(arguments[++i]);
      continue;
    }
    const std::size_t equals = word.find('=');
    const bool is_value = equals != std::string_view::npos && equals > 0 && word.front() != '-';
    if (!is_value || ::access(arguments[i], F_OK) == 0) open = {};
    if (!open.empty()) spread.emplace_back(open);
    spread.emplace_back(word);
  }
  return spread;
}

}  // namespace sluice::cli
