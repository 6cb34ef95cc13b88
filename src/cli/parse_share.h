// A share of something, as options take it.
#pragma once

#include <charconv>
#include <string>

#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli {

/// 5% or 0.05. Throws Failure.
inline double parse_share(const std::string& text, const char* option) {
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (percent) value /= 100;
  if (error != std::errc{} || stop != end || !(value >= 0 && value <= 10))
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{} {}: is not a share such as 5% or 0.05, up to 1000%", option, text));
  return value;
}

}  // namespace sluice::cli
