// What to say of an operator that we do not run: what it is, and what comes nearest.
#pragma once

#include <string>
#include <string_view>

namespace sluice::importer {

/// What to do instead of an operator whose kind we know; empty when there is nothing to say.
std::string_view advice_for(std::string_view op) noexcept;

/// The advice for an operator of this full name ("NonZero", "com.microsoft::MoE").
std::string unsupported_message(std::string_view op);

}  // namespace sluice::importer
