#include "sluice/core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "src/core/wipe.h"

namespace sluice {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2ull << 20;
// No address space has a longer range; where pointers have 32 bits, `mmap` would take the lower half of its length for all of it.
constexpr Bytes kLongestRange{static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 2 * kHugePage};

/// Calls visit(offset) for each page of `bytes`, whole pages from `base` on, that holds memory. Where the system cannot say: for all.
template <class Visit>
void for_each_resident_page(std::byte* base, Interval<std::uint64_t> bytes, const Visit& visit) noexcept {
  std::array<unsigned char, 1024> pages;  // one each; their lowest bits say
  for (std::uint64_t at = bytes.begin; at < bytes.end; at += pages.size() * kPage) {
    const std::uint64_t size = std::min(bytes.end - at, pages.size() * kPage);
    if (mincore(base + at, size, pages.data()) != 0) pages.fill(1);
    for (std::uint64_t page = 0; page < size / kPage; ++page)
      if ((pages[page] & 1) != 0) visit(at + page * kPage);
  }
}

}  // namespace

Arena::~Arena() {
  if (base_ == nullptr) return;
  if (secret_) wipe();
  munmap(base_, reserved_.count());
}

Result<Arena> Arena::reserve(Bytes size) {
  if (size > kLongestRange) {
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
  const std::uint64_t before = align_up(reinterpret_cast<std::uintptr_t>(begin), alignment) - reinterpret_cast<std::uintptr_t>(begin);
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
    if (secret_) wipe({rounded.count(), committed_.count()});
    madvise(begin, length, MADV_DONTNEED);
    mprotect(begin, length, PROT_NONE);
  }
  committed_ = rounded;
  return {};
}

void Arena::keep_secret() noexcept {
  if (base_ == nullptr || secret_) return;
  secret_ = true;
  madvise(base_, reserved_.count(), MADV_DONTDUMP);
}

void Arena::wipe(Interval<std::uint64_t> bytes) noexcept {
  for_each_resident_page(base_, bytes, [&](std::uint64_t offset) { sluice::wipe({base_ + offset, kPage}); });
}

void Arena::discard(Interval<std::uint64_t> bytes) noexcept {
  const std::uint64_t begin = align_up(bytes.begin, kPage);
  const std::uint64_t end = std::min(align_down(bytes.end, kPage), committed_.count());
  if (begin >= end) return;
  if (secret_) wipe({begin, end});
  madvise(base_ + begin, end - begin, MADV_DONTNEED);
}

Bytes Arena::resident() const noexcept {
  std::uint64_t count = 0;
  for_each_resident_page(base_, {0, committed_.count()}, [&](std::uint64_t) { ++count; });
  return Bytes(count * kPage);
}

}  // namespace sluice
