// Parsing that all uses of `--dim` share.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::cli {

/// NAME=REST at the last equals sign: a name may hold one of its own. Both are empty where there is none.
inline std::pair<std::string, std::string> split_dim(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) return {};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// A number of 0 or more and nothing else.
inline std::optional<std::int64_t> parse_extent(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace sluice::cli
