#include "src/cli/failure.h"

#include <cmath>
#include <cstdio>

#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

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

std::string mebibytes_up(std::uint64_t bytes) {
  return fmt::format("{:.2f} MiB", std::ceil(static_cast<double>(bytes) / 10485.76) / 100.0);
}

std::string describe(const Error& error) {
  if (error.code != ErrorCode::kBudgetTooSmall || !error.has_numbers) return error.to_string();
  std::string text(name_of(error.code));
  if (!error.subject().empty()) text += fmt::format(": {}", error.subject());
  constexpr std::uint64_t kNoUnit = 65536;  // less than any budget: a number of something else
  return text + fmt::format(": the smallest budget that works is {} bytes ({}); given: {} bytes{}", error.needed,
                            mebibytes_up(error.needed), error.available, error.available < kNoUnit ? " (a size has a unit: 16MiB)" : "");
}

}  // namespace sluice::cli
