#include "src/cli/session_options.h"

#include <optional>

#include "sluice/engine/auto_budget.h"
#include "src/cli/failure.h"
#include "src/cli/parse_share.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// Empty: there are no more.
std::string_view policy_name(int number) { return planner::name_of(static_cast<planner::Policy>(number)); }

planner::Policy parse_policy(const std::string& text) {
  for (int number = 0; !policy_name(number).empty(); ++number)
    if (text == policy_name(number)) return static_cast<planner::Policy>(number);
  const std::string reason = fmt::format("is one of {}, not '{}'", policy_names("and"), text);
  raise(make_error(ErrorCode::kInvalidArgument, "--policy", reason.c_str()));
}

planner::Partition parse_partition(const std::string& text) {
  for (int number = 0;; ++number) {
    const auto partition = static_cast<planner::Partition>(number);
    if (planner::name_of(partition).empty()) break;
    if (text == planner::name_of(partition)) return partition;
  }
  raise(make_error(ErrorCode::kInvalidArgument, "--partition", fmt::format("is one of auto, off and least, not '{}'", text).c_str()));
}

BudgetScope parse_scope(const std::string& text) {
  if (text == "process") return BudgetScope::kProcess;
  if (text == "library") return BudgetScope::kLibrary;
  raise(make_error(ErrorCode::kInvalidArgument, "--scope", fmt::format("is one of process and library, not '{}'", text).c_str()));
}

}  // namespace

std::string policy_names(const std::string& before_last) {
  std::string names(policy_name(0));
  for (int number = 1; !policy_name(number).empty(); ++number) {
    const bool last = policy_name(number + 1).empty();
    names += (last ? " " + before_last + " " : ", ") + std::string(policy_name(number));
  }
  return names;
}

SessionOptions session_options(const BudgetOptions& options) {
  SessionOptions result;
  result.scope = parse_scope(options.scope);
  if (options.budget == "auto") {
    if (result.scope != BudgetScope::kProcess) raise(make_error(ErrorCode::kInvalidArgument, "--budget", "auto is of process scope"));
    result.budget = first_budget(read_memory_outlook());
    result.largest_budget = kUnlimitedBytes;
  } else {
    result.budget = parse_size(options.budget, "--budget");
  }
  result.reserve = parse_size(options.reserve, "--reserve");
  result.tuning.policy = parse_policy(options.policy);
  result.emulation.read_bytes_per_second = parse_rate(options.io_limit);
  if (!executor::is_compute_slowdown(options.compute_slowdown))
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("--compute-slowdown {}: is a factor from 1 to 1000", options.compute_slowdown));
  result.emulation.compute_slowdown = options.compute_slowdown;
  result.tuning.partition = parse_partition(options.partition);
  result.tuning.max_overhead = parse_share(options.max_overhead, "--max-overhead");
  result.threads = options.threads.value_or(1);
  result.scratch_directory = options.spill;
  // The receiver is set when there are outputs; plans only depend on whether there is one.
  if (options.output_rows) result.outputs.take = [](void*, const OutputBlock&) noexcept { return Status(); };
  // The tool keeps its own copy of the inputs and sets them before each run, so the plan may reuse their place.
  result.keep_inputs = false;
  return result;
}

Bytes parse_size(const std::string& text, const char* option) {
  const std::optional<Bytes> size = parse_bytes(text);
  const bool is_budget = std::string_view(option) == "--budget";
  const bool wants_least = is_budget && (text == "smallest" || text == "minimum" || text == "min");
  if (!size)
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("{} {}: is not a size such as 48MiB, 50331648{}{}", option, text, is_budget ? ", unlimited or auto" : "",
                              wants_least ? "; `sluice plan` of the model prints its smallest budget" : ""));
  return *size;
}

double parse_rate(const std::string& text) {
  if (text.empty()) return 0;
  const bool per_second = text.ends_with("/s");
  const std::optional<Bytes> rate = parse_bytes(std::string_view(text).substr(0, text.size() - (per_second ? 2 : 0)));
  if (!rate || *rate == Bytes() || *rate >= kUnlimitedBytes) {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("--io-limit {}: is not a rate such as 300MB/s", text));
  }
  constexpr Bytes kLeast{4096};  // a page a second: less was meant in another unit, and would look like a program that hangs
  if (*rate < kLeast)
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("--io-limit {}: is {} bytes a second, and the least is {}; a unit is said as in 300MB/s", text, rate->count(),
                              kLeast.count()));
  return static_cast<double>(rate->count());
}

std::string scope_name(BudgetScope scope) { return scope == BudgetScope::kProcess ? "process" : "library"; }

}  // namespace sluice::cli
