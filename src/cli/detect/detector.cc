#include "src/cli/detect/detector.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "src/cli/file.h"
#include "src/cli/text.h"

namespace sluice::cli::detect {
namespace {

using Clock = std::chrono::steady_clock;

/// The ends of a line tell its slope best.
constexpr std::array<int, 2> kRepeats = {1, 8};
constexpr int kLeastRounds = 6;
constexpr double kFusedShare = 0.5;     // of the cheaper operator, between fused and not
constexpr double kSure = 4.5;           // standard errors: once in 300,000, as a hundred pairs are asked in up to a hundred rounds
constexpr double kShareOfPairs = 0.75;  // of the time
constexpr double kAboveNoise = 4;       // of an operator's own time
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

class Detector {
 public:
  Detector(Runner& runner, const Options& options) : runner_(runner), options_(options) {
    words_ = options.operators;
    if (words_.empty()) words_.assign(kUsualOperators.begin(), kUsualOperators.end());
  }

  Detection run() {
    std::vector<Pattern> pairs;
    for (const std::string& a : words_)
      for (const std::string& b : words_) pairs.push_back({Form::kChain, {a, b}});
    decide(pairs, kShareOfPairs * options_.seconds);
    const std::vector<Pattern> larger = patterns_of_fused(pairs);
    decide(larger, options_.seconds);
    Detection detection;
    for (const auto& patterns : {pairs, larger})
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
  bool fused(const std::string& a, const std::string& b) const { return rules_.at({Form::kChain, {a, b}}).fused.value_or(false); }

  /// Chains of three, forks and joins with pairs that are fused.
  std::vector<Pattern> patterns_of_fused(const std::vector<Pattern>& pairs) const {
    std::vector<Pattern> chains, forks, joins_of_two;
    for (const Pattern& pair : pairs) {
      const std::string &a = pair.words[0], &b = pair.words[1];
      if (!fused(a, b)) continue;
      for (const std::string& c : words_)
        if (fused(b, c)) chains.push_back({Form::kChain, {a, b, c}});
      forks.push_back({Form::kFork, {a, b}});
    }
    for (const std::string& b : words_)
      for (std::size_t i = 0; i < words_.size() && joins(b); ++i)
        for (std::size_t j = i; j < words_.size(); ++j)
          if (fused(words_[i], b) || fused(words_[j], b)) joins_of_two.push_back({Form::kJoin, {words_[i], words_[j], b}});
    for (const auto& more : {forks, joins_of_two}) chains.insert(chains.end(), more.begin(), more.end());
    return chains;
  }

  Arm& arm_of(const Pattern& pattern) {
    const auto [found, is_new] = arms_.try_emplace(pattern);
    Arm& arm = found->second;
    for (std::size_t i = 0; i < kRepeats.size() && is_new; ++i) {
      arm.paths[i] = fmt::format("{}/{}{}{}-{}.onnx", options_.directory, name_of(pattern.form), pattern.words.empty() ? "" : "-",
                                 fmt::join(pattern.words, "-"), kRepeats[i]);
      const std::string bytes = model_of(pattern, kRepeats[i]);
      write_atomically(arm.paths[i], std::as_bytes(std::span(bytes)));
    }
    return arm;
  }

  void measure(Arm& arm) {
    std::array<double, kRepeats.size()> ms{};
    for (std::size_t i = 0; i < kRepeats.size(); ++i) ms[i] = runner_.time(arm.paths[i]);
    measurements_ += kRepeats.size();
    arm.slopes.push_back((ms[1] - ms[0]) / (kRepeats[1] - kRepeats[0]));
    arm.one_ms = arm.one_ms == 0 ? ms[0] : std::min(arm.one_ms, ms[0]);
  }

  Arm& chain(std::vector<std::string> words) { return arm_of({Form::kChain, std::move(words)}); }

  /// What a pattern would take if nothing in it ran as one.
  struct Parts {
    Arm* rest;                           // separators, of a join also b
    std::span<const std::string> words;  // each (word |) - S
  };
  Parts parts_of(const Pattern& pattern) {
    const std::span words(pattern.words);
    if (pattern.form == Form::kChain) return {&chain({}), words};
    if (pattern.form == Form::kFork) return {&arm_of({Form::kFork, {}}), words};
    return {&arm_of({Form::kJoin, {words.back()}}), words.first(words.size() - 1)};
  }

  /// The arms of patterns that are not decided, and of what they are compared with.
  std::vector<Arm*> arms_for(const std::vector<Pattern>& open) {
    std::vector<Arm*> arms = {&chain({})};
    for (const std::string& word : words_) arms.push_back(&chain({word}));
    for (const Pattern& pattern : open) arms.push_back(parts_of(pattern).rest), arms.push_back(&arm_of(pattern));
    std::set<Arm*> seen;
    std::erase_if(arms, [&](Arm* arm) { return !seen.insert(arm).second; });
    return arms;
  }

  /// Rounds over the patterns that are not decided. The first ones take place however long they take.
  void decide(const std::vector<Pattern>& patterns, double seconds) {
    std::vector<Pattern> open = patterns;
    for (const Pattern& pattern : patterns) rules_[pattern].pattern = pattern;
    if (patterns.empty()) return;
    for (auto& [pattern, arm] : arms_) arm.slopes.clear();
    for (int round = 0; round < options_.most_rounds && !open.empty() && (round < kLeastRounds || elapsed() < seconds); ++round) {
      for (Arm* arm : arms_for(open)) {
        if (options_.progress != nullptr) options_.progress(options_.progress_context, measurements_, 0);
        measure(*arm);
      }
      std::erase_if(open, [&](const Pattern& pattern) { return decided(pattern, round + 1); });
    }
  }

  /// The time of one operator alone, without its separator.
  Summary cost_of(const std::string& word) {
    const std::vector<double>&with = chain({word}).slopes, &without = chain({}).slopes;
    std::vector<double> costs;
    for (std::size_t r = 0; r < std::min(with.size(), without.size()); ++r) costs.push_back(with[r] - without[r]);
    return costs.empty() ? Summary{} : summary_of(costs);
  }

  std::vector<double> savings_of(const Pattern& pattern) {
    const Arm &together = arm_of(pattern), &separator = chain({});
    const Parts parts = parts_of(pattern);
    std::vector<double> savings;
    for (std::size_t r = 0; r < together.slopes.size(); ++r) {
      double apart = parts.rest->slopes[r];
      for (const std::string& word : parts.words) apart += chain({word}).slopes[r] - separator.slopes[r];
      savings.push_back(apart - together.slopes[r]);
    }
    return savings;
  }

  /// nn-Meter's rule on models of one repeat, each with the cost of its call: T_a + T_b - T_ab above half of the lesser.
  bool simple_rule(const Pattern& pattern) {
    const Parts parts = parts_of(pattern);
    double apart_ms = pattern.form == Form::kChain ? 0 : parts.rest->one_ms, least_ms = 1e300;
    for (const std::string& word : parts.words) {
      apart_ms += chain({word}).one_ms;
      least_ms = std::min(least_ms, chain({word}).one_ms);
    }
    return apart_ms - arm_of(pattern).one_ms > least_ms / 2;
  }

  bool decided(const Pattern& pattern, int rounds) {
    Rule& rule = rules_.at(pattern);
    const Summary seen = summary_of(savings_of(pattern));
    Summary cheapest{1e300, 0};
    for (const std::string& word : pattern.words)
      if (const Summary cost = cost_of(word); cost.middle < cheapest.middle) cheapest = cost;
    rule.rounds = rounds;
    rule.saving_ms = seen.middle;
    rule.cheaper_ms = cheapest.middle;
    rule.simple = simple_rule(pattern);
    // A chain of three saves two operators, so it must save twice what one is worth.
    const double saved = pattern.form == Form::kChain ? static_cast<double>(pattern.words.size() - 1) : 1;
    const double bar = kFusedShare * saved * cheapest.middle;
    const double error = std::hypot(seen.error, kFusedShare * cheapest.error);
    const double far = (seen.middle - bar) / error;
    rule.p_value = 0.5 * std::erfc(std::abs(far) / std::sqrt(2.0));
    if (rounds < kLeastRounds || cheapest.middle < kAboveNoise * cheapest.error || std::abs(far) < kSure) return false;
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
