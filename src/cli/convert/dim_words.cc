#include "src/cli/convert/dim_words.h"

#include <optional>
#include <vector>

#include "src/cli/failure.h"
#include "src/cli/parse_dim.h"

namespace sluice::cli {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// "4", "1..8" or "32..512:32" onto `extents`; false when it is none of these, or longer than any file takes.
bool add_extents(const std::string& text, std::vector<std::int64_t>& extents) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const auto extent = parse_extent(text);
    if (extent) extents.push_back(*extent);
    return extent.has_value();
  }
  const std::size_t colon = text.find(':', dots);
  const auto first = parse_extent(text.substr(0, dots));
  const auto last = parse_extent(text.substr(dots + 2, colon == std::string::npos ? colon : colon - dots - 2));
  const auto step = colon == std::string::npos ? std::optional<std::int64_t>(1) : parse_extent(text.substr(colon + 1));
  if (!first || !last || !step || *step < 1 || *first > *last) return false;
  if (static_cast<std::uint64_t>(*last - *first) / static_cast<std::uint64_t>(*step) >= model::kMaxPoints) return false;
  for (std::int64_t i = 0, count = (*last - *first) / *step; i <= count; ++i) extents.push_back(*first + i * *step);
  return true;
}

std::optional<std::vector<std::int64_t>> parse_extents(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const std::string& part : split(text, ','))
    if (!add_extents(trimmed(part), extents)) return std::nullopt;
  return extents;
}

}  // namespace

void add_dim(const std::string& word, importer::ConvertOptions& options) {
  const auto [name, rest] = split_dim(word);
  const auto refuse = [&](const char* why) { raise(make_error(ErrorCode::kInvalidArgument, word, why)); };
  if (name.empty()) refuse("--dim wants NAME=EXTENT");
  if (options.dims.contains(name) || options.open_dims.contains(name) || options.dim_sums.contains(name))
    refuse("--dim states this dimension twice");
  if (const auto extent = parse_extent(rest)) {
    options.dims[name] = *extent;
  } else if (const auto extents = parse_extents(rest)) {
    options.open_dims[name] = *extents;
  } else {
    if (rest.empty() || (rest[0] >= '0' && rest[0] <= '9' && rest.find('+') == std::string::npos) || rest[0] == '-')
      refuse("--dim wants NAME=4, NAME=1..8, NAME=32..512:32, NAME=1,4,8 (up to 4096 of them) or a sum such as NAME=S+P");
    importer::DimSum sum;
    for (const std::string& term : split(rest, '+')) sum.push_back(trimmed(term));
    options.dim_sums[name] = std::move(sum);
  }
}

}  // namespace sluice::cli
