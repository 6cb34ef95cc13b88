#include "src/core/wipe.h"

#include <string.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>

#include "sluice/core/units.h"
#include "src/core/stack.h"

namespace sluice {
namespace {

constexpr std::size_t kFrame = 4096;          // a page
constexpr std::size_t kLeftOver = 64 * 1024;  // runs take up to some 57 KiB (kLeastStack)
constexpr std::size_t kMargin = 2 * kFrame;

/// One frame, and those below it, each in a call of its own, so that none of them is larger than a stack's guard.
[[gnu::noinline]] void wipe_frames(std::size_t bytes) noexcept {
  std::array<std::byte, kFrame> frame;
  if (bytes > kFrame) wipe_frames(bytes - kFrame);
  wipe(frame);  // after the call, so that it is no tail call, which would use one frame again and again
}

bool resident(const std::byte* at) noexcept {
  unsigned char page = 0;
  auto* const begin = reinterpret_cast<void*>(align_down(reinterpret_cast<std::uintptr_t>(at), kFrame));
  return mincore(begin, kFrame, &page) == 0 && (page & 1) != 0;
}

}  // namespace

void wipe(std::span<std::byte> bytes) noexcept {
  if (!bytes.empty()) ::explicit_bzero(bytes.data(), bytes.size());
}

void wipe_stack() noexcept {
  // Only as deep as pages hold memory: nothing is made resident that was not.
  auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
  std::size_t deepest = 0;
  for (std::size_t depth = kFrame; depth <= kLeftOver && stack_has(depth + kMargin, false); depth += kFrame)
    if (resident(here - depth)) deepest = depth;
  if (deepest > 0) wipe_frames(deepest);
}

}  // namespace sluice
