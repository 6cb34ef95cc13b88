// Continues a text with the language model that this repository trained on Debian's documents (examples/training), a character at a time:
//
//     sluice convert examples/models/language.onnx -o language.sluice --dim S=1,128 --dim P=0,127 --dim T=S+P
//     14_continue_a_text language.sluice "The package" [--characters 200] [--temperature 0.7] [--seed 1] [--budget 1MiB]
//
// Temperature 0 takes the most likely character; larger ones draw from the likely ones, the same for the same seed.
#include <random>

#include "language.h"

namespace {

constexpr const char* kUsage =
    "usage: 14_continue_a_text LANGUAGE.sluice TEXT [--characters N] [--temperature T] [--seed N] [--budget SIZE]";

/// A share in [0, 1), the same on every machine.
double share(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

char choose(const std::vector<float>& logits, double temperature, std::mt19937& random) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<char>(best - logits.begin());
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits) sum += weights.emplace_back(std::exp((static_cast<double>(logit) - *best) / temperature));
  double left = share(random) * sum;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if ((left -= weights[i]) < 0) return static_cast<char>(i);
  return static_cast<char>(best - logits.begin());
}

}  // namespace

int main(int argc, char** argv) {
  const example::Words words(argc, argv, 2, {"characters", "temperature", "seed", "budget"}, kUsage);
  const std::string text = words[1];
  const auto is_ascii = [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_ascii))
    example::complain("TEXT: at least one character, all of them ASCII");
  const auto characters = static_cast<int>(words.number("characters", 200, 1, 1e6));
  const double temperature = words.number("temperature", 0.7, 0, 100);
  std::mt19937 random(static_cast<std::uint32_t>(words.number("seed", 1, 0, 4294967295.0)));

  const auto model = example::open_language(words[0], {{"S", 1}, {"P", example::kWindow}});
  example::Continuation continuation(example::Runner(model, sluice::SessionOptions{.budget = words.bytes("budget"), .repeat = true}));
  std::vector<float> logits;
  for (const char c : text) logits = continuation.next(c);
  std::fputs(text.c_str(), stdout);
  for (int i = 0; i < characters; ++i) {
    const char next = choose(logits, temperature, random);
    std::fputc(next, stdout);
    logits = continuation.next(next);
  }
  std::fputc('\n', stdout);
}
