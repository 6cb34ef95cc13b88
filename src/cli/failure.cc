#include "src/cli/failure.h"

#include <cmath>
#include <cstdio>

#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

constexpr std::uint64_t kKibi = 1024, kMebi = kKibi * kKibi;

const char* unit_for(std::uint64_t bytes) { return bytes < kMebi ? "KiB" : "MiB"; }

/// Lines stay lines: some complaints are several.
void print_visibly(std::string_view text) noexcept {
  for (const char c : text) {
    if (moves_cursor(c) && c != '\n')
      std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(c));
    else
      std::fputc(c, stderr);
  }
}

}  // namespace

void complain(const char* program, std::string_view text) noexcept {
  constexpr std::size_t kMost = 4000, kEnd = 1000;
  std::fprintf(stderr, "%s: ", program);
  if (text.size() <= kMost) {
    print_visibly(text);
  } else {
    print_visibly(text.substr(0, kMost - kEnd));
    std::fprintf(stderr, "... (%zu bytes are left out) ...", text.size() - kMost);
    print_visibly(text.substr(text.size() - kEnd));
  }
  std::fputc('\n', stderr);
}

ErrorCode code_of_status(int status) noexcept {
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kInvalidModel, ErrorCode::kUnsupported, ErrorCode::kBudgetTooSmall,
                               ErrorCode::kIo, ErrorCode::kOutputMismatch, ErrorCode::kOutOfMemory, ErrorCode::kWrongKey})
    if (exit_status(code) == status) return code;
  return ErrorCode::kInternal;
}

std::string rounded_up(std::uint64_t bytes) {
  const double hundredth = static_cast<double>(bytes < kMebi ? kKibi : kMebi) / 100.0;
  return fmt::format("{:.2f} {}", std::ceil(static_cast<double>(bytes) / hundredth) / 100.0, unit_for(bytes));
}

std::string describe(const Error& error) {
  if (error.code != ErrorCode::kBudgetTooSmall || !error.has_numbers) return error.to_string();
  std::string text(name_of(error.code));
  if (!error.subject().empty()) text += fmt::format(": {}", error.subject());
  text += fmt::format(": the smallest budget that works is {} bytes ({}); given: {} bytes", error.needed, rounded_up(error.needed),
                      error.available);
  // A number below the smallest size with a unit is not a number of bytes.
  if (error.available > 0 && error.available < kKibi)
    text += fmt::format(" (a size has a unit: {}{})", error.available, unit_for(error.needed));
  return text;
}

}  // namespace sluice::cli
