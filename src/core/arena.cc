#include "sluice/core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sluice {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2ull << 20;

}  // namespace

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, reserved_.count());
}

Result<Arena> Arena::reserve(Bytes size) {
  if (size > kUnlimitedBytes) {  // no address space is as large, and sums below would not hold
    return fail(make_error(ErrorCode::kOutOfMemory, "arena", "the system has no such address range", size.count(), 0));
  }
  const Bytes rounded = align_up(size, kPage);
  if (rounded.count() == 0) return Arena();
  const std::uint64_t alignment = rounded.count() >= kHugePage ? kHugePage : kPage;
  const std::uint64_t spare = alignment - kPage;
  void* range = mmap(nullptr, rounded.count() + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    Error error = make_error(ErrorCode::kOutOfMemory, "arena", "the system reserved no address range", rounded.count(), 0);
    error.os_error = errno;
    return fail(error);
  }
  auto* const begin = static_cast<std::byte*>(range);
  const std::uint64_t before = align_up(reinterpret_cast<std::uint64_t>(begin), alignment) - reinterpret_cast<std::uint64_t>(begin);
  if (before > 0) munmap(begin, before);
  if (before < spare) munmap(begin + before + rounded.count(), spare - before);
  Arena arena;
  arena.base_ = begin + before;
  arena.reserved_ = rounded;
  madvise(arena.base_, rounded.count(), MADV_HUGEPAGE);
  return arena;
}

Status Arena::commit(Bytes size) {
  const Bytes rounded = align_up(size, kPage);
  if (rounded > reserved_) {
    return fail(
        make_error(ErrorCode::kInvalidArgument, "arena", "more was to be committed than is reserved", rounded.count(), reserved_.count()));
  }
  if (rounded > committed_) {
    std::byte* begin = base_ + committed_.count();
    if (mprotect(begin, (rounded - committed_).count(), PROT_READ | PROT_WRITE) != 0) {
      return fail(make_error(ErrorCode::kOutOfMemory, "arena", "the system committed no memory", rounded.count(), committed_.count()));
    }
  } else if (rounded < committed_) {
    std::byte* begin = base_ + rounded.count();
    const std::size_t length = (committed_ - rounded).count();
    madvise(begin, length, MADV_DONTNEED);
    mprotect(begin, length, PROT_NONE);
  }
  committed_ = rounded;
  return {};
}

void Arena::discard(Interval<std::uint64_t> bytes) noexcept {
  const std::uint64_t begin = align_up(bytes.begin, kPage);
  const std::uint64_t end = std::min(align_down(bytes.end, kPage), committed_.count());
  if (begin < end) madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

Bytes Arena::resident() const noexcept {
  std::array<unsigned char, 1024> pages;  // one each; their lowest bits say
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < committed_.count(); at += pages.size() * kPage) {
    const std::uint64_t bytes = std::min(committed_.count() - at, pages.size() * kPage);
    if (mincore(base_ + at, bytes, pages.data()) != 0) return committed_;
    count += static_cast<std::uint64_t>(std::count_if(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>(bytes / kPage),
                                                      [](unsigned char page) { return (page & 1) != 0; }));
  }
  return Bytes(count * kPage);
}

}  // namespace sluice
