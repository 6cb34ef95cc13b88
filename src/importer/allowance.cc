#include "src/importer/allowance.h"

#include <algorithm>

#include "src/importer/refusal.h"

namespace sluice::importer {
namespace {

constexpr std::uint64_t kMadePerByte = 64u << 10;
constexpr std::uint64_t kMostFile = std::uint64_t{4} << 30;
constexpr std::uint64_t kMostWork = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostPanel = std::uint64_t{64} << 20;
// What the file itself accounts for: f16 doubles and panels of few outputs are padded sixteenfold; values of two bits become bytes and
// floats, while both are held.
constexpr std::uint64_t kWrittenPerByte = 32;
constexpr std::uint64_t kWorkPerByte = 64;

thread_local Allowance* current = nullptr;

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept { return checked_mul(a, b).value_or(kUnlimitedBytes.count()); }
std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept { return checked_add(a, b).value_or(kUnlimitedBytes.count()); }

}  // namespace

Allowance::Allowance(Bytes source, std::optional<Bytes> stated) : source_(source) {
  const std::uint64_t size = source.count();
  allowed_ = stated.value_or(size <= kSmallFile.count() ? kSmallFileAllowance : Bytes(std::min(times(kMadePerByte, size), kMostFile)));
  file_ = Bytes(plus(allowed_.count(), times(kWrittenPerByte, size)));
  panel_ = Bytes(plus(std::min(allowed_.count(), stated ? allowed_.count() : kMostPanel), times(kWrittenPerByte, size)));
  work_left_ = plus(std::min(allowed_.count(), stated ? allowed_.count() : kMostWork), times(kWorkPerByte, size));
}

void Allowance::take(std::uint64_t bytes) {
  if (!covers(bytes))
    refuse_unsupported("what it computes from constants would take another " + format_bytes(Bytes(bytes)) + ", and " +
                       format_bytes(Bytes(work_left_)) + " are left of" + limit_text());
  work_left_ -= bytes;
}

std::string Allowance::limit_text() const {
  return " the " + format_bytes(allowed_) + " that a file of " + format_bytes(source_) + " may make; --max-constants SIZE allows more";
}

AllowanceScope::AllowanceScope(Allowance& allowance) noexcept : before_(current) { current = &allowance; }
AllowanceScope::~AllowanceScope() { current = before_; }

void count_made(std::uint64_t bytes) {
  if (current != nullptr) current->take(bytes);
}

void count_made(std::uint64_t elements, std::uint64_t bytes_each) { count_made(times(elements, bytes_each)); }

bool may_make(std::uint64_t elements, std::uint64_t bytes_each) noexcept {
  return current == nullptr || current->covers(times(elements, bytes_each));
}

}  // namespace sluice::importer
