// What to say of an operator that we do not run: what it is, and what comes nearest.
#pragma once

#include <string>
#include <string_view>

namespace sluice::importer {

/// For an operator of this full name ("NonZero", "com.microsoft::MoE").
std::string unsupported_message(std::string_view op);

}  // namespace sluice::importer
