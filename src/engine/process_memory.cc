#include "src/engine/process_memory.h"

#include <fcntl.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <array>
#include <charconv>
#include <string_view>

namespace sluice::engine {
namespace {

/// The number behind `key` in a text of lines such as "VmHWM:\t    1234 kB".
Bytes read_field(std::string_view text, std::string_view key) noexcept {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return {};
  const std::size_t digit = text.find_first_of("0123456789", found + key.size());
  if (digit == std::string_view::npos) return {};
  std::uint64_t kibibytes = 0;
  std::from_chars(text.data() + digit, text.data() + text.size(), kibibytes);
  return Bytes(kibibytes * 1024);
}

}  // namespace

ProcessMemory read_process_memory() noexcept {
  const int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::array<char, 4096> buffer;
  const ssize_t length = read(descriptor, buffer.data(), buffer.size());
  close(descriptor);
  if (length <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  return {read_field(text, "VmRSS:"), read_field(text, "VmHWM:")};
}

void release_free_heap() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sluice::engine
