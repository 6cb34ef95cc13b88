// The words of --budget, --scope, --policy and --threads become the library's options.
#pragma once

#include "sluice/engine/engine.h"
#include "src/cli/commands.h"

namespace sluice::cli {

constexpr int kMaxThreads = 256;

/// Throws Failure (kInvalidArgument) naming the option.
SessionOptions session_options(const BudgetOptions& options);

/// The planner's policies: "sluice, resident, on_demand or flexnn".
std::string policy_names(const std::string& before_last);

/// Sizes as an option gives them: `48MiB`, bytes, `unlimited`.
Bytes parse_size(const std::string& text, const char* option);

/// Bytes per second as --io-limit gives them: `300MB/s`; 0 for an empty text.
double parse_rate(const std::string& text);

std::string scope_name(BudgetScope scope);

}  // namespace sluice::cli
