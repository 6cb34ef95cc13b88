#include "src/cli/pack/problem_file.h"

#include <array>
#include <charconv>
#include <string_view>

#include "sluice/core/file.h"
#include "sluice/planner/place/validate_placement.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

constexpr Bytes kMostBytes{64 << 20};  // a few million rows

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kColumnNames = {"id", "lower", "upper", "size", "alignment", "offset"};
constexpr std::size_t kAbsent = ~std::size_t{0};

/// Cuts `text` at the first `separator`; the rest stays in `text`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  if (separator == '\n' && part.ends_with('\r')) part.remove_suffix(1);
  return part;
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && stop == text.data() + text.size();
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) { positions_.fill(kAbsent); }

  Result<ProblemFile> read(std::string_view text) {
    SLUICE_RETURN_IF_ERROR(read_header(take_until(text, '\n')));
    while (!text.empty()) {
      ++line_;
      const std::string_view row = take_until(text, '\n');
      if (!row.empty()) SLUICE_RETURN_IF_ERROR(read_row(row));
    }
    SLUICE_RETURN_IF_ERROR(planner::check_problem(file_.problem));
    return std::move(file_);
  }

 private:
  tl::unexpected<Error> fail_here(const char* reason) const {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}:{}", path_, line_), reason);
  }

  Status read_header(std::string_view header) {
    for (std::size_t position = 0; !header.empty(); ++position) {
      const std::string_view name = take_until(header, ',');
      for (std::size_t c = 0; c < kColumns; ++c)
        if (name == kColumnNames[c]) positions_[c] = position;
    }
    for (Column needed : {kId, kLower, kUpper, kSize})
      if (positions_[needed] == kAbsent) return fail_here("the first line must name the columns id, lower, upper and size");
    if (positions_[kOffset] != kAbsent) file_.offsets.emplace();
    return {};
  }

  Status read_row(std::string_view row) {
    std::array<std::string_view, kColumns> fields;
    for (std::size_t position = 0; !row.empty(); ++position) {
      const std::string_view field = take_until(row, ',');
      for (std::size_t c = 0; c < kColumns; ++c)
        if (positions_[c] == position) fields[c] = field;
    }
    planner::Rectangle rectangle;
    std::uint64_t offset = 0;
    const bool numbers = parse_number(fields[kLower], rectangle.time.begin) && parse_number(fields[kUpper], rectangle.time.end) &&
                         parse_number(fields[kSize], rectangle.size) &&
                         (positions_[kAlignment] == kAbsent || parse_number(fields[kAlignment], rectangle.alignment)) &&
                         (!file_.offsets || parse_number(fields[kOffset], offset));
    if (!numbers) return fail_here("a field that should be a whole number is none");
    if (file_.offsets) file_.offsets->push_back(offset);
    file_.ids.emplace_back(fields[kId]);
    file_.problem.rectangles.push_back(rectangle);
    return {};
  }

  const std::string& path_;
  ProblemFile file_;
  std::array<std::size_t, kColumns> positions_{};
  std::size_t line_ = 1;
};

/// "dir/A.1048576.csv" -> 1048576.
std::optional<std::uint64_t> capacity_in(std::string_view path) {
  constexpr std::string_view kEnding = ".csv";
  if (!path.ends_with(kEnding)) return std::nullopt;
  path.remove_suffix(kEnding.size());
  std::uint64_t capacity = 0;
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || !parse_number(path.substr(dot + 1), capacity)) return std::nullopt;
  return capacity;
}

}  // namespace

Result<ProblemFile> read_problem(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_file(path, kMostBytes));
  SLUICE_ASSIGN_OR_RETURN(ProblemFile file, Reader(path).read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  if (const auto capacity = capacity_in(path)) {
    file.problem.capacity = *capacity;
    file.has_capacity = true;
  }
  return file;
}

std::string solution_text(const ProblemFile& file, const std::vector<std::uint64_t>& offsets) {
  std::string text = "id,lower,upper,size,alignment,offset\n";
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const planner::Rectangle& r = file.problem.rectangles[i];
    text += fmt::format("{},{},{},{},{},{}\n", file.ids[i], r.time.begin, r.time.end, r.size, r.alignment, offsets[i]);
  }
  return text;
}

}  // namespace sluice::cli
