#include "src/cli/duration.h"

#include <charconv>

#include "src/cli/failure.h"
#include "src/cli/text.h"

namespace sluice::cli {

std::uint64_t parse_milliseconds(const std::string& text, const char* option) {
  constexpr double kMost = 3600e3;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  if (unit == "s") value *= 1e3;
  const bool known = unit == "s" || unit == "ms" || (unit.empty() && value == 0);
  if (error != std::errc{} || !known || !(value >= 0 && value <= kMost))
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{} {}: is not a time such as 50ms, 1s or 0, up to an hour", option, text));
  return static_cast<std::uint64_t>(value);
}

}  // namespace sluice::cli
