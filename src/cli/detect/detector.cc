#include "src/cli/detect/detector.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "src/cli/file.h"
#include "src/cli/text.h"

namespace sluice::cli::detect {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int, 4> kRepeats = {1, 2, 4, 8};
constexpr int kLeastRounds = 6;
constexpr double kFusedShare = 0.5;  // of the cheaper operator, between fused and not
constexpr double kSure = 4.5;        // standard errors: once in 300,000, as a hundred pairs are asked in up to thirty rounds
constexpr double kAboveNoise = 4;    // of an operator's own time
constexpr double kDeviationOfMedian = 1.4826;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median and standard error over the rounds.
struct Summary {
  double middle = 0;
  double error = 0;
};
Summary summary_of(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  constexpr double kMedianIsLessSure = 1.25;  // than a mean
  const double spread = kDeviationOfMedian * median(std::move(deviations));
  // Few rounds may lie together by chance.
  const double few = 1 + 2.0 / static_cast<double>(values.size());
  return {middle, few * kMedianIsLessSure * std::max(spread, 1e-6) / std::sqrt(static_cast<double>(values.size()))};
}

double slope_of(const std::array<double, kRepeats.size()>& ms) {
  double mean_k = 0, mean_ms = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) mean_k += kRepeats[i], mean_ms += ms[i];
  mean_k /= static_cast<double>(ms.size()), mean_ms /= static_cast<double>(ms.size());
  double product = 0, square = 0;
  for (std::size_t i = 0; i < ms.size(); ++i) {
    product += (kRepeats[i] - mean_k) * (ms[i] - mean_ms);
    square += (kRepeats[i] - mean_k) * (kRepeats[i] - mean_k);
  }
  return product / square;
}

class Detector {
 public:
  Detector(Runner& runner, const Options& options) : runner_(runner), options_(options) {
    words_ = options.operators;
    if (words_.empty()) words_.assign(kOperators.begin(), kOperators.end());
  }

  Detection run() {
    std::vector<Pattern> pairs;
    for (const std::string& a : words_)
      for (const std::string& b : words_) pairs.push_back({a, b});
    decide(pairs);
    std::vector<Pattern> chains;
    for (const Pattern& pair : pairs)
      for (const std::string& c : words_)
        if (fused(pair) && fused({pair[1], c})) chains.push_back({pair[0], pair[1], c});
    decide(chains);
    Detection detection;
    for (const auto& patterns : {pairs, chains})
      for (const Pattern& pattern : patterns) detection.rules.push_back(rules_.at(pattern));
    for (const std::string& word : words_) detection.operator_ms[word] = cost_of(word).middle;
    detection.measurements = measurements_;
    detection.seconds = elapsed();
    return detection;
  }

 private:
  /// Its models, and what rounds have given of them.
  struct Arm {
    std::array<std::string, kRepeats.size()> paths;
    std::vector<double> slopes;  // by round
    double one_ms = 0;           // of one repeat, the least
  };

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool fused(const Pattern& pattern) const { return rules_.contains(pattern) && rules_.at(pattern).fused.value_or(false); }

  Arm& arm_of(const Pattern& pattern) {
    const auto [found, is_new] = arms_.try_emplace(pattern);
    Arm& arm = found->second;
    for (std::size_t i = 0; i < kRepeats.size() && is_new; ++i) {
      arm.paths[i] = fmt::format("{}/chain-{}-{}.onnx", options_.directory, arms_.size(), kRepeats[i]);
      const std::string bytes = chain_of(pattern, kRepeats[i]);
      write_atomically(arm.paths[i], std::as_bytes(std::span(bytes)));
    }
    return arm;
  }

  void measure(Arm& arm) {
    std::array<double, kRepeats.size()> ms{};
    for (std::size_t i = 0; i < kRepeats.size(); ++i) ms[i] = runner_.time(arm.paths[i]);
    measurements_ += kRepeats.size();
    arm.slopes.push_back(slope_of(ms));
    arm.one_ms = arm.one_ms == 0 ? ms[0] : std::min(arm.one_ms, ms[0]);
  }

  /// Rounds over the patterns that are not decided, and what they are compared with.
  void decide(const std::vector<Pattern>& patterns) {
    std::vector<Pattern> open = patterns;
    for (const Pattern& pattern : patterns) rules_[pattern].pattern = pattern;
    for (auto& [pattern, arm] : arms_) arm.slopes.clear();
    for (int round = 0; round < options_.most_rounds && !open.empty() && (round < kLeastRounds || elapsed() < options_.seconds); ++round) {
      std::vector<Pattern> arms = {{}};
      for (const std::string& word : words_) arms.push_back({word});
      arms.insert(arms.end(), open.begin(), open.end());
      for (std::size_t i = 0; i < arms.size(); ++i) {
        if (options_.progress != nullptr)
          options_.progress(options_.progress_context, static_cast<std::size_t>(round) * arms.size() + i, 0);
        measure(arm_of(arms[i]));
      }
      std::erase_if(open, [&](const Pattern& pattern) { return decided(pattern, round + 1); });
    }
  }

  /// The time of one operator alone, without its separator.
  Summary cost_of(const std::string& word) {
    const std::vector<double>&with = arm_of({word}).slopes, &without = arm_of({}).slopes;
    std::vector<double> costs;
    for (std::size_t r = 0; r < std::min(with.size(), without.size()); ++r) costs.push_back(with[r] - without[r]);
    return costs.empty() ? Summary{} : summary_of(costs);
  }

  bool decided(const Pattern& pattern, int rounds) {
    Rule& rule = rules_.at(pattern);
    const Arm &together = arm_of(pattern), &separator = arm_of({});
    std::vector<double> savings;
    for (std::size_t r = 0; r < together.slopes.size(); ++r) {
      double saving = -together.slopes[r] - static_cast<double>(pattern.size() - 1) * separator.slopes[r];
      for (const std::string& word : pattern) saving += arm_of({word}).slopes[r];
      savings.push_back(saving);
    }
    const Summary seen = summary_of(savings);
    Summary cheaper{1e300, 0};
    double parts_ms = 0, least_ms = 1e300;
    for (const std::string& word : pattern) {
      const Summary cost = cost_of(word);
      if (cost.middle < cheaper.middle) cheaper = cost;
      parts_ms += arm_of({word}).one_ms;
      least_ms = std::min(least_ms, arm_of({word}).one_ms);
    }
    rule.rounds = rounds;
    rule.saving_ms = seen.middle;
    rule.cheaper_ms = cheaper.middle;
    rule.simple = parts_ms - together.one_ms > least_ms / 2;
    // A chain of three saves two operators, so it must save twice what one is worth.
    const double bar = kFusedShare * cheaper.middle * static_cast<double>(pattern.size() - 1);
    const double error = std::hypot(seen.error, kFusedShare * cheaper.error);
    const double far = (seen.middle - bar) / error;
    rule.p_value = 0.5 * std::erfc(std::abs(far) / std::sqrt(2.0));
    if (rounds < kLeastRounds || cheaper.middle < kAboveNoise * cheaper.error || std::abs(far) < kSure) return false;
    rule.fused = far > 0;
    return true;
  }

  Runner& runner_;
  const Options& options_;
  std::vector<std::string> words_;
  std::map<Pattern, Arm> arms_;
  std::map<Pattern, Rule> rules_;
  std::size_t measurements_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Detection detect(Runner& runner, const Options& options) { return Detector(runner, options).run(); }

}  // namespace sluice::cli::detect
