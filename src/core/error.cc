#include "sluice/core/error.h"

#include <algorithm>
#include <cstring>

#include "src/core/out_of_memory.h"

namespace sluice {
namespace {

struct CodeRow {
  std::string_view name;
  int exit_status;
};

constexpr CodeRow kRows[] = {
    {"invalid argument", 1}, {"invalid model", 2},    {"checksum mismatch", 2}, {"unsupported version", 2},  {"invalid plan", 2},
    {"unsupported", 3},      {"budget too small", 4}, {"I/O error", 5},         {"file changed", 5},         {"cancelled", 5},
    {"outputs differ", 6},   {"out of memory", 7},    {"internal error", 7},    {"key missing or wrong", 8},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(ErrorCode::kWrongKey) + 1, "one row a code");

}  // namespace

std::string_view name_of(ErrorCode code) noexcept { return kRows[static_cast<std::size_t>(code)].name; }
int exit_status(ErrorCode code) noexcept { return kRows[static_cast<std::size_t>(code)].exit_status; }

std::string Error::to_string() const {
  std::string text(name_of(code));
  if (!subject().empty()) text.append(": ").append(subject());
  if (code == ErrorCode::kBudgetTooSmall && has_numbers)
    return text.append(": the smallest budget that works is ")
        .append(std::to_string(needed))
        .append(" B, ")
        .append(std::to_string(available))
        .append(" B were given");
  if (reason[0] != '\0') text.append(": ").append(reason);
  if (has_numbers) {
    text.append(at_most ? " (at most " : " (needed ")
        .append(std::to_string(needed))
        .append(", found ")
        .append(std::to_string(available))
        .append(")");
  }
  if (os_error != 0) text.append(": ").append(std::strerror(os_error));
  return text;
}

[[gnu::noinline]] Error make_error(ErrorCode code, std::string_view subject, const char* reason) noexcept {
  Error error;
  error.code = code;
  error.reason = reason;
  const std::size_t length = std::min(subject.size(), Error::kSubjectCapacity - 1);
  std::copy_n(subject.data(), length, error.subject_text.begin());
  return error;
}

[[gnu::noinline]] Error make_error(ErrorCode code, std::string_view subject, const char* reason, std::uint64_t needed,
                                   std::uint64_t available) noexcept {
  Error error = make_error(code, subject, reason);
  error.needed = needed;
  error.available = available;
  error.has_numbers = true;
  return error;
}

[[gnu::noinline]] Error make_limit_error(ErrorCode code, std::string_view subject, const char* reason, std::uint64_t most,
                                         std::uint64_t found) noexcept {
  Error error = make_error(code, subject, reason, most, found);
  error.at_most = true;
  return error;
}

[[gnu::noinline]] Error make_io_error(std::string_view subject, const char* reason, int os_error) noexcept {
  Error error = make_error(ErrorCode::kIo, subject, reason);
  error.os_error = os_error;
  return error;
}

Error out_of_memory(std::string_view subject) noexcept { return make_error(ErrorCode::kOutOfMemory, subject, "the system gave no memory"); }

}  // namespace sluice
