#include "src/cli/convert/choose_weights.h"

#include <algorithm>
#include <cmath>

#include "src/cli/child.h"
#include "src/cli/failure.h"
#include "src/cli/sibling.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

using importer::ChosenWeight;
using importer::WeightChoice;
using importer::WeightPrice;

Result<WeightPrice> price(const WeightTarget& target, const std::string& model) {
  std::vector<std::string> words = {"plan", model, "--repeat", "--json", "--budget", target.budget};
  if (!target.profile.empty()) words.insert(words.end(), {"--profile", target.profile});
  if (!target.io_limit.empty()) words.insert(words.end(), {"--io-limit", target.io_limit});
  const ChildResult planned = run_program(sibling_program("sluice"), "sluice", words);
  if (planned.status != 0 && code_of_status(planned.status) == ErrorCode::kBudgetTooSmall) {
    // The program's messages name a temporary file that the user does not know.
    return fail(ErrorCode::kBudgetTooSmall, "--for-budget", "the model does not fit, whatever its weights are");
  }
  check_succeeded(planned);
  const Json plan = Json::parse(planned.output, nullptr, false);
  if (plan.is_discarded()) return fail(ErrorCode::kInternal, "sluice plan", "it printed no JSON");
  return WeightPrice{plan.at("predicted_ms"), plan.at("compute_ms"), Bytes(plan.at("streamed_bytes").get<std::uint64_t>())};
}

/// JSON has no infinity: what is stored as it is has no noise.
Json json_of_noise(double noise) { return noise > 0 ? Json(-10 * std::log10(noise)) : Json(nullptr); }
std::string text_of_noise(double noise) { return noise > 0 ? fmt::format("{:.1f}", -10 * std::log10(noise)) : "exact"; }

Json json_of_price(const WeightPrice& price) {
  return {{"period_ms", price.period_ms}, {"compute_ms", price.compute_ms}, {"streamed_bytes", price.streamed.count()}};
}

void print_price(const char* name, const WeightPrice& price) {
  fmt::print("  {:<8} {:8.2f} ms a run, {:.2f} of them computing, {} read\n", name, price.period_ms, price.compute_ms,
             format_bytes(price.streamed));
}

}  // namespace

importer::PriceWeights price_by_plans(const WeightTarget& target, const std::function<void(int plans)>& progress) {
  return [target, progress, plans = 0](const std::string& model) mutable {
    progress(++plans);
    return price(target, model);
  };
}

void print_choice(const WeightTarget& target, const WeightChoice& choice) {
  std::size_t width = 6;
  for (const ChosenWeight& weight : choice.weights) width = std::max(width, std::min<std::size_t>(weight.name.size(), 48));
  fmt::print("  weights for a budget of {}, {} plans priced\n", target.budget, choice.plans);
  if (choice.held)
    print_price("given", choice.given);
  else
    fmt::print("  given    more than the budget holds\n");
  print_price("chosen", choice.chosen);
  fmt::print("  {:<{}}  {:<5} {:>8} {:>12} {:>12}\n", "weight", width, "type", "SNR, dB", "bytes", "f32");
  for (const ChosenWeight& weight : choice.weights) {
    fmt::print("  {:<{}}  {:<5} {:>8} {:>12} {:>12}\n", weight.name.substr(0, width), width, name_of(weight.storage),
               text_of_noise(weight.noise), weight.bytes.count(), weight.f32_bytes.count());
  }
  fmt::print("  noise of all weights together: {}{}\n", text_of_noise(choice.noise), choice.noise > 0 ? " dB below their values" : "");
}

Json json_of_choice(const WeightTarget& target, const WeightChoice& choice) {
  Json weights = Json::array();
  for (const ChosenWeight& weight : choice.weights) {
    weights.push_back({{"name", weight.name},
                       {"type", name_of(weight.storage)},
                       {"noise_db", json_of_noise(weight.noise)},
                       {"bytes", weight.bytes.count()},
                       {"f32_bytes", weight.f32_bytes.count()}});
  }
  return {{"budget", target.budget},
          {"io_limit", target.io_limit.empty() ? Json(nullptr) : Json(target.io_limit)},
          {"plans", choice.plans},
          {"given", choice.held ? json_of_price(choice.given) : Json(nullptr)},
          {"chosen", json_of_price(choice.chosen)},
          {"noise_db", json_of_noise(choice.noise)},
          {"weights", weights}};
}

}  // namespace sluice::cli
