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
constexpr std::size_t kVisits = 2;
constexpr std::size_t kLeastAnswers = 8 * kVisits;
constexpr std::size_t kBlocksForSeparators = 4;
constexpr double kExactCost = 0.05;      // standard errors of an operator's time, after which it is not measured further
constexpr double kChangesLayout = 1.25;  // what operators take between one separator, in what they take between the other
constexpr double kSimpleShare = 0.5;     // nn-Meter's

/// The answers for a model, in milliseconds.
using Answers = std::vector<double>;

/// The models of a question: together, then cut.
struct Question {
  std::vector<std::string> paths;
  std::vector<Answers> answers;  // for each of them
};

/// What one of two models takes beyond the other, a repeat.
Estimate beyond(const Answers& less, const Answers& more) {
  const Estimate all = difference_of(less, more, kVisits);
  return {all.middle / kRepeats, all.error / kRepeats};
}

/// Of one operator between separators, and of the separators alone.
struct OperatorAnswers {
  Answers with, without;
  Estimate cost() const { return beyond(without, with); }
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
    for (const std::string& word : words_) detection.operator_ms[word] = costs_[word].cost().middle;
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

  /// Answers for each model, visited forwards and backwards in turn.
  std::vector<Answers> block(const std::vector<std::string>& paths) {
    std::vector<Answers> answers(paths.size());
    for (std::size_t visit = 0; visit < kVisits; ++visit, backwards_ = !backwards_)
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::size_t at = backwards_ ? paths.size() - 1 - i : i;
        answers[at].push_back(time(paths[at]));
      }
    return answers;
  }
  static void append(const Answers& more, Answers& to) { to.insert(to.end(), more.begin(), more.end()); }
  static double least_of(const Answers& answers) { return *std::min_element(answers.begin(), answers.end()); }

  /// Adds a block of each word between its separators; returns the least time of the separators alone.
  double measure_words(Separator separator, const std::vector<std::string>& words, std::map<std::string, OperatorAnswers>& costs) {
    std::vector<std::string> paths = {path_of({separator, {Form::kChain, {}}, 0, kRepeats})};
    for (const std::string& word : words) paths.push_back(path_of({separator, {Form::kChain, {word}}, 0, kRepeats}));
    const std::vector<Answers> answers = block(paths);
    for (std::size_t i = 0; i < words.size(); ++i) {
      append(answers[i + 1], costs[words[i]].with);
      append(answers[0], costs[words[i]].without);
    }
    return least_of(answers[0]);
  }

  /// Moves between layouts around a separator count in the times of operators, and would be taken for something saved. If there are none
  /// around either, the cheaper one is taken.
  void choose_separator() {
    struct Tried {
      std::map<std::string, OperatorAnswers> costs;
      double least_ms = 1e300;
      double all = 0;
    };
    std::array<Tried, 2> tried;
    for (std::size_t done = 0; done < kBlocksForSeparators && (done == 0 || in_time()); ++done)
      for (std::size_t i = 0; i < tried.size(); ++i)
        tried[i].least_ms = std::min(tried[i].least_ms, measure_words(static_cast<Separator>(i), words_, tried[i].costs));
    for (Tried& one : tried)
      for (const auto& [word, answers] : one.costs) one.all += answers.cost().middle;
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
      const Estimate cost = costs_[word].cost();
      const bool exact = costs_[word].with.size() >= kLeastAnswers && cost.error < kExactCost * cost.middle;
      const bool is_needed = std::any_of(open.begin(), open.end(), [&](const Pattern& pattern) {
        return std::find(pattern.words.begin(), pattern.words.end(), word) != pattern.words.end();
      });
      if (is_needed && !exact) words.push_back(word);
    }
    if (!words.empty()) measure_words(separator_, words, costs_);
  }

  /// The time that a saving is held against: a join saves what its last operator takes.
  Estimate cost_of(const Pattern& pattern) {
    if (pattern.form == Form::kJoin) return costs_[pattern.words.back()].cost();
    Estimate cheapest{1e300, 0};
    for (const std::string& word : pattern.words)
      if (const Estimate cost = costs_[word].cost(); cost.middle < cheapest.middle) cheapest = cost;
    return cheapest;
  }

  /// What the dearer one takes of the operators that the cut is between: in a join the last one and those before it.
  double dearer_of(const Pattern& pattern, std::size_t cut) {
    double dearer = 0;
    const bool join = pattern.form == Form::kJoin;
    for (std::size_t i = join ? 0 : cut - 1; i < pattern.words.size() && (join || i <= cut); ++i)
      dearer = std::max(dearer, costs_[pattern.words[i]].cost().middle);
    return dearer;
  }

  /// Measures one block of a pattern, and answers if that is enough.
  void ask(const Pattern& pattern) {
    Question& question = questions_[pattern];
    const int cuts = cuts_of(pattern);
    Rule& rule = rules_.at(pattern);
    if (question.paths.empty()) {
      for (int cut = 0; cut <= cuts; ++cut) question.paths.push_back(path_of({separator_, pattern, cut, kRepeats}));
      rule.simple = simple_rule(pattern);
      question.answers.resize(question.paths.size());
    }
    const std::vector<Answers> answers = block(question.paths);
    for (std::size_t i = 0; i < answers.size(); ++i) append(answers[i], question.answers[i]);
    const Estimate cost = cost_of(pattern);
    ++rule.rounds;
    rule.cheaper_ms = cost.middle;
    rule.saving_ms = 1e300;
    rule.p_value = 0;
    bool all_fused = true, one_apart = false;
    for (std::size_t cut = 1; cut < question.answers.size(); ++cut) {
      const Estimate saving = beyond(question.answers[0], question.answers[cut]);
      const Verdict verdict = verdict_of(saving, cost, dearer_of(pattern, cut));
      rule.saving_ms = std::min(rule.saving_ms, saving.middle);
      rule.p_value = std::max(rule.p_value, verdict.p_value);
      all_fused = all_fused && verdict.fused.value_or(false);
      one_apart = one_apart || !verdict.fused.value_or(true);
    }
    if (question.answers[0].size() >= kLeastAnswers && (all_fused || one_apart)) rule.fused = all_fused;
  }

  /// The least time of a model of one repeat.
  double bare_ms(const Pattern& pattern) {
    const auto [known, is_new] = bare_ms_.try_emplace(pattern, 0);
    if (is_new) known->second = least_of(block({path_of({separator_, pattern, kBare, 1})})[0]);
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
  std::map<std::string, OperatorAnswers> costs_;  // by word
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
