// Times as options give them: `50ms`, `1s`, `0`.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cli {

/// Whole milliseconds, at most an hour. Throws Failure (kInvalidArgument) naming the option.
std::uint64_t parse_milliseconds(const std::string& text, const char* option);

}  // namespace sluice::cli
