#include "src/engine/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

/// The first byte of what the linker made of this code: the head of the program's file, or of the shared library's.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const char __ehdr_start;

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

/// A mapping as /proc/self/smaps tells of it: a head "55d0-55f0 r-xp ... /usr/bin/x" and lines such as "Anonymous:   0 kB".
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool from_file = false;  // private, not writable, of a file
};

/// Reads the head of a mapping; false for any other line.
bool read_head(std::string_view line, Mapping& mapping) noexcept {
  Mapping found;
  const char* const end = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), end, found.begin, 16);
  if (begin.ec != std::errc() || begin.ptr == end || *begin.ptr != '-') return false;
  const auto last = std::from_chars(begin.ptr + 1, end, found.end, 16);
  if (last.ec != std::errc() || end - last.ptr < 6 || *last.ptr != ' ') return false;
  const std::string_view rights(last.ptr + 1, 4);
  found.from_file = rights[0] == 'r' && rights[1] == '-' && rights[3] == 'p' && line.find(" /") != std::string_view::npos;
  mapping = found;
  return true;
}

/// Calls `visit` with each line of a file, without its end. Longer lines than the buffer come in parts.
template <class Visit>
void for_each_line(const char* path, const Visit& visit) noexcept {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  std::array<char, 4096> buffer;
  std::size_t held = 0;
  for (;;) {
    const ssize_t length = read(descriptor, buffer.data() + held, buffer.size() - held);
    if (length <= 0) break;
    held += static_cast<std::size_t>(length);
    std::size_t at = 0;
    for (std::size_t end = 0; (end = std::string_view(buffer.data(), held).find('\n', at)) != std::string_view::npos; at = end + 1) {
      visit(std::string_view(buffer.data() + at, end - at));
    }
    if (at == 0 && held == buffer.size()) at = held;
    held -= at;
    std::memmove(buffer.data(), buffer.data() + at, held);
  }
  close(descriptor);
}

/// `before()` comes between the opening and the reading, of which it sees the least code.
template <class Before>
ProcessMemory read_status(const Before& before) noexcept {
  const int descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::array<char, 4096> buffer;
  buffer.fill(0);  // its pages are there when it is read into
  before();
  const ssize_t length = read(descriptor, buffer.data(), buffer.size());
  close(descriptor);
  if (length <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  return {read_field(text, "VmRSS:"), read_field(text, "VmHWM:")};
}

}  // namespace

ProcessMemory release_code_pages() noexcept {
  std::array<Mapping, 128> mappings;  // of the program and its libraries, four each; what is beyond keeps its pages
  std::size_t count = 0;
  bool own_addresses = false;  // an emulator may let through what the system says of the emulator
  Mapping mapping;
  for_each_line("/proc/self/smaps", [&](std::string_view line) {
    if (read_head(line, mapping)) {
      own_addresses |= mapping.begin == reinterpret_cast<std::uintptr_t>(&__ehdr_start);
      return;
    }
    if (!mapping.from_file || !line.starts_with("Anonymous:")) return;
    // What was written since it was mapped (relocations, a debugger's break points) would be lost with its page.
    if (read_field(line, "Anonymous:") == Bytes() && count < mappings.size()) mappings[count++] = mapping;
  });
  return read_status([&] {
    for (std::size_t i = 0; own_addresses && i < count; ++i) {
      auto* const begin = reinterpret_cast<void*>(mappings[i].begin);
      // Where the system caches a program just linked in pieces of 2 MiB, a touch would map all of one.
      madvise(begin, mappings[i].end - mappings[i].begin, MADV_NOHUGEPAGE);
      madvise(begin, mappings[i].end - mappings[i].begin, MADV_DONTNEED);
    }
  });
}

ProcessMemory read_process_memory() noexcept {
  return read_status([] {});
}

void release_free_heap() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sluice::engine
