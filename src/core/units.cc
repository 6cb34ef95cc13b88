#include "sluice/core/units.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;  // lower case
  double bytes;
};

// A bare letter is binary, as in the options of other tools that take sizes of memory.
constexpr Unit kUnits[] = {
    {"", 1.0},         {"b", 1.0},           {"kb", 1e3},     {"mb", 1e6},        {"gb", 1e9},           {"k", 1024.0},
    {"m", 1048576.0},  {"g", 1073741824.0},  {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}, {"ki", 1024.0},
    {"mi", 1048576.0}, {"gi", 1073741824.0},
};

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "unlimited") return kUnlimitedBytes;
  double number = 0;
  const auto [rest, error] = std::from_chars(lower.data(), lower.data() + lower.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view suffix(rest, static_cast<std::size_t>(lower.data() + lower.size() - rest));
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name) continue;
    const double bytes = std::floor(number * unit.bytes);
    if (bytes >= static_cast<double>(kUnlimitedBytes.count())) return std::nullopt;
    return Bytes(static_cast<std::uint64_t>(bytes));
  }
  return std::nullopt;
}

std::string format_bytes(Bytes bytes) {
  if (bytes >= kUnlimitedBytes) return "unlimited";
  const auto count = static_cast<double>(bytes.count());
  char text[32];
  if (count < 1024.0) {
    std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes.count()));
  } else if (count < 1048576.0) {
    std::snprintf(text, sizeof text, "%.1f KiB", count / 1024.0);
  } else if (count < 1073741824.0) {
    std::snprintf(text, sizeof text, "%.1f MiB", count / 1048576.0);
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", count / 1073741824.0);
  }
  return text;
}

}  // namespace sluice
