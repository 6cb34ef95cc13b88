#include "src/cli/detect/detector.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <span>
#include <utility>

#include "src/cli/detect/evidence.h"
#include "src/cli/file.h"
#include "src/cli/text.h"

namespace sluice::cli::detect {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 16;  // part of the noise of a call does not grow with the model, and part of its time neither
constexpr int kVisits = 2;
constexpr std::size_t kLeastBlocks = 8;
constexpr std::size_t kBlocksForSeparators = 4;
constexpr double kExactCost = 0.05;      // standard errors of an operator's time, after which it is not measured further
constexpr double kChangesLayout = 1.25;  // what operators take between one separator, in what they take between the other
constexpr double kSimpleShare = 0.5;     // nn-Meter's

/// The paths of the models of a question, and what blocks have said.
struct Question {
  std::vector<std::string> paths;            // together, then cut
  std::vector<std::vector<double>> savings;  // of each cut, by block
};

class Detector {
 public:
  Detector(Runner& runner, const Options& options) : runner_(runner), options_(options), words_(options.operators) {
    if (words_.empty()) words_.assign(kUsualOperators.begin(), kUsualOperators.end());
  }

  Detection run() {
    choose_separator();
    for (const std::string& a : words_)
      for (const std::string& b : words_) pairs_.push_back({Form::kChain, {a, b}});
    std::vector<Pattern> all = pairs_, open = all;
    for (const Pattern& pattern : all) rules_[pattern].pattern = pattern;
    while (!open.empty() && in_time()) {
      measure_costs(open);
      for (const Pattern& pattern : open)
        if (in_time()) ask(pattern);
      std::erase_if(open, [&](const Pattern& pattern) {
        const Rule& rule = rules_.at(pattern);
        return rule.fused || rule.rounds >= options_.most_rounds;
      });
      all = pairs_;
      for (const Pattern& pattern : patterns_of_fused()) {
        all.push_back(pattern);
        if (const auto [rule, is_new] = rules_.try_emplace(pattern, Rule{.pattern = pattern}); is_new) open.push_back(pattern);
      }
    }
    Detection detection{.separator = separator_, .repeats = kRepeats, .measurements = measurements_, .seconds = elapsed()};
    for (const Pattern& pattern : all) detection.rules.push_back(rules_.at(pattern));
    for (const std::string& word : words_) detection.operator_ms[word] = estimate_of(costs_[word]).middle;
    return detection;
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool in_time() const { return elapsed() < options_.seconds; }
  bool fused(const std::string& a, const std::string& b) const { return rules_.at({Form::kChain, {a, b}}).fused.value_or(false); }

  /// Chains of three, forks and joins with pairs that are fused.
  std::vector<Pattern> patterns_of_fused() const {
    std::vector<Pattern> chains, forks, joins_of_two;
    for (const Pattern& pair : pairs_) {
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

  std::string path_of(const Arrangement& arrangement) {
    std::string path = options_.directory + "/" + file_name_of(arrangement);
    if (const auto [known, is_new] = written_.insert(path); is_new) {
      const std::string bytes = model_of(arrangement);
      write_atomically(path, std::as_bytes(std::span(bytes)));
    }
    return path;
  }

  double time(const std::string& path) {
    if (options_.progress != nullptr) options_.progress(options_.progress_context, measurements_, 0);
    ++measurements_;
    return runner_.time(path);
  }

  /// The least time of each model, visited forwards and backwards in turn.
  std::vector<double> block(const std::vector<std::string>& paths) {
    std::vector<double> least(paths.size(), 1e300);
    for (int visit = 0; visit < kVisits; ++visit, backwards_ = !backwards_)
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::size_t at = backwards_ ? paths.size() - 1 - i : i;
        least[at] = std::min(least[at], time(paths[at]));
      }
    return least;
  }

  /// Gives each word's time of one repeat, without its separator, in this block; returns that of the separator.
  double measure_words(Separator separator, const std::vector<std::string>& words, std::map<std::string, std::vector<double>>& costs) {
    std::vector<std::string> paths = {path_of({separator, {Form::kChain, {}}, 0, kRepeats})};
    for (const std::string& word : words) paths.push_back(path_of({separator, {Form::kChain, {word}}, 0, kRepeats}));
    const std::vector<double> ms = block(paths);
    for (std::size_t i = 0; i < words.size(); ++i) costs[words[i]].push_back((ms[i + 1] - ms[0]) / kRepeats);
    return ms[0];
  }

  /// Moves between layouts around a separator count in the times of operators, and would be taken for something saved. If there are none
  /// around either, the cheaper one is taken.
  void choose_separator() {
    struct Tried {
      std::map<std::string, std::vector<double>> costs;
      double least_ms = 1e300;
      double all = 0;
    };
    std::array<Tried, 2> tried;
    for (std::size_t done = 0; done < kBlocksForSeparators && (done == 0 || in_time()); ++done)
      for (std::size_t i = 0; i < tried.size(); ++i)
        tried[i].least_ms = std::min(tried[i].least_ms, measure_words(static_cast<Separator>(i), words_, tried[i].costs));
    for (Tried& one : tried)
      for (const auto& [word, costs] : one.costs) one.all += estimate_of(costs).middle;
    const auto& [image, channels] = tried;
    const bool of_channels =
        image.all > kChangesLayout * channels.all || (channels.all <= kChangesLayout * image.all && channels.least_ms < image.least_ms);
    separator_ = of_channels ? Separator::kChannels : Separator::kImage;
    costs_ = (of_channels ? channels : image).costs;
  }

  /// One more block of the operators that open patterns have and whose times are not exact yet.
  void measure_costs(const std::vector<Pattern>& open) {
    std::vector<std::string> words;
    for (const std::string& word : words_) {
      const Estimate cost = estimate_of(costs_[word]);
      const bool exact = costs_[word].size() >= kLeastBlocks && cost.error < kExactCost * cost.middle;
      const bool is_needed = std::any_of(open.begin(), open.end(), [&](const Pattern& pattern) {
        return std::find(pattern.words.begin(), pattern.words.end(), word) != pattern.words.end();
      });
      if (is_needed && !exact) words.push_back(word);
    }
    if (!words.empty()) measure_words(separator_, words, costs_);
  }

  /// The time that a saving is held against: a join saves what its last operator takes.
  Estimate cost_of(const Pattern& pattern) {
    if (pattern.form == Form::kJoin) return estimate_of(costs_[pattern.words.back()]);
    Estimate cheapest{1e300, 0};
    for (const std::string& word : pattern.words)
      if (const Estimate cost = estimate_of(costs_[word]); cost.middle < cheapest.middle) cheapest = cost;
    return cheapest;
  }

  /// Measures one block of a pattern, and answers if that is enough.
  void ask(const Pattern& pattern) {
    Question& question = questions_[pattern];
    const int cuts = cuts_of(pattern);
    Rule& rule = rules_.at(pattern);
    if (question.paths.empty()) {
      for (int cut = 0; cut <= cuts; ++cut) question.paths.push_back(path_of({separator_, pattern, cut, kRepeats}));
      rule.simple = simple_rule(pattern);
      question.savings.resize(static_cast<std::size_t>(cuts));
    }
    const std::vector<double> ms = block(question.paths);
    const Estimate cost = cost_of(pattern);
    ++rule.rounds;
    rule.cheaper_ms = cost.middle;
    rule.saving_ms = 1e300;
    rule.p_value = 0;
    bool all_fused = true, one_apart = false;
    for (std::size_t cut = 0; cut < question.savings.size(); ++cut) {
      std::vector<double>& savings = question.savings[cut];
      savings.push_back((ms[cut + 1] - ms[0]) / kRepeats);
      const Estimate saving = estimate_of(savings);
      const Verdict verdict = verdict_of(saving, cost);
      rule.saving_ms = std::min(rule.saving_ms, saving.middle);
      rule.p_value = std::max(rule.p_value, verdict.p_value);
      all_fused = all_fused && verdict.fused.value_or(false);
      one_apart = one_apart || !verdict.fused.value_or(true);
    }
    if (question.savings[0].size() >= kLeastBlocks && (all_fused || one_apart)) rule.fused = all_fused;
  }

  /// The least time of a model of one repeat.
  double bare_ms(const Pattern& pattern) {
    const auto [known, is_new] = bare_ms_.try_emplace(pattern, 0);
    if (is_new) known->second = block({path_of({separator_, pattern, kBare, 1})})[0];
    return known->second;
  }

  /// nn-Meter's rule on models of one repeat, each with the cost of its call: T_a + T_b - T_ab above half of the lesser.
  bool simple_rule(const Pattern& pattern) {
    std::vector<std::string> words = pattern.words;
    double apart_ms = 0, least_ms = 1e300;
    if (pattern.form == Form::kFork) apart_ms = bare_ms({Form::kFork, {}});
    if (pattern.form == Form::kJoin) {
      apart_ms = bare_ms({Form::kJoin, {words.back()}});
      words.pop_back();
    }
    for (const std::string& word : words) {
      const double ms = bare_ms({Form::kChain, {word}});
      apart_ms += ms;
      least_ms = std::min(least_ms, ms);
    }
    return apart_ms - bare_ms(pattern) > kSimpleShare * least_ms;
  }

  Runner& runner_;
  const Options& options_;
  std::vector<std::string> words_;
  std::vector<Pattern> pairs_;
  Separator separator_ = Separator::kImage;
  std::map<std::string, std::vector<double>> costs_;  // by word, of each block
  std::map<Pattern, Question> questions_;
  std::map<Pattern, Rule> rules_;
  std::map<Pattern, double> bare_ms_;
  std::set<std::string> written_;
  bool backwards_ = false;
  std::size_t measurements_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Detection detect(Runner& runner, const Options& options) { return Detector(runner, options).run(); }

}  // namespace sluice::cli::detect
