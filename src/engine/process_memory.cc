#include "src/engine/process_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
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

/// A mapping as /proc/self/maps tells of it: "55d0-55f0 r-xp ... /usr/bin/x".
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool from_file = false;  // private, not writable, of a file
};

/// False if the line is not a mapping.
bool read_mapping(std::string_view line, Mapping& mapping) noexcept {
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

/// What this process has mapped from files and not written: the program's code and constants, and its libraries'. What was written since
/// (relocations, a debugger's break points) would be lost with its page.
class CodePages {
 public:
  CodePages() noexcept : pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    const bool tells_of_this = pages_are_own();
    bool tells_of_code = false;
    for_each_line("/proc/self/maps", [&](std::string_view line) {
      Mapping mapping;
      if (!read_mapping(line, mapping)) return;
      tells_of_code |= mapping.begin == reinterpret_cast<std::uintptr_t>(&__ehdr_start);
      if (mapping.from_file) add(mapping);
    });
    // An emulator may let through what the system says of the emulator, whose addresses are others.
    if (!tells_of_this || !tells_of_code) count_ = 0;
  }
  CodePages(const CodePages&) = delete;
  CodePages& operator=(const CodePages&) = delete;
  ~CodePages() {
    if (pagemap_ >= 0) close(pagemap_);
  }

  void release() const noexcept {
    for_each_run([](std::uintptr_t begin, std::uintptr_t end) {
      // If the system caches a program that was just linked in pages of 2 MiB, touching one byte would map a whole page.
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_NOHUGEPAGE);
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    });
  }

  /// How many of these pages the process holds.
  Bytes held() const noexcept {
    std::uint64_t pages = 0;
    for_each_entry([&](std::uintptr_t, std::uint64_t entry) { pages += !written(entry) && (entry >> 63) != 0 ? 1 : 0; }, [] {});
    return Bytes(pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  }

  /// A page that is touched brings 64 KiB or more of what the system has cached around it, but never more than its mapping. So every other
  /// 16 KiB gets a flag that makes it a mapping of its own and has no other effect: core dumps leave out file pages anyway.
  void cut() const noexcept {
    for_each_run([](std::uintptr_t run, std::uintptr_t end) {
      if (end - run > kMostToCut) return;
      for (std::uintptr_t at = run / (2 * kPiece) * (2 * kPiece); at < end; at += 2 * kPiece) {
        const std::uintptr_t begin = std::max(at, run), next = std::min(at + kPiece, end);
        if (begin < next) madvise(reinterpret_cast<void*>(begin), next - begin, MADV_DONTDUMP);
      }
    });
  }

 private:
  static constexpr std::uintptr_t kPiece = std::uintptr_t{16} << 10;
  static constexpr std::uintptr_t kMostToCut = std::uintptr_t{64} << 20;  // 4,096 mappings of the 65,530 that a process may have

  /// Pieces that follow each other are one.
  void add(const Mapping& mapping) noexcept {
    if (count_ > 0 && mappings_[count_ - 1].end == mapping.begin)
      mappings_[count_ - 1].end = mapping.end;
    else if (count_ < mappings_.size())
      mappings_[count_++] = mapping;
  }

  /// Present or swapped out, and no longer the file's page.
  static bool written(std::uint64_t entry) noexcept { return (entry >> 62) != 0 && (entry >> 61 & 1) == 0; }

  /// Does the system's list of pages speak of this process's own addresses? An emulator may let through that of the emulator, which has the
  /// same memory some pages away: then pages with relocations would seem unwritten. So it has to know which of a few pages are written.
  bool pages_are_own() const noexcept {
    constexpr std::array kWritten{true, false, true, true, false, false, true, false};
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const map = mmap(nullptr, kWritten.size() * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    for (std::size_t i = 0; i < kWritten.size(); ++i)
      if (kWritten[i]) static_cast<volatile std::byte*>(map)[i * page] = std::byte{1};
    std::array<std::uint64_t, kWritten.size()> entries{};
    const auto first = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(map) / page * sizeof entries[0]);
    bool own = pread(pagemap_, entries.data(), sizeof entries, first) == ssize_t{sizeof entries};
    for (std::size_t i = 0; i < kWritten.size(); ++i) own = own && written(entries[i]) == kWritten[i];
    munmap(map, kWritten.size() * page);
    return own;
  }

  /// Calls `visit(address, entry)` with each page and what the system's list says of it, and `next()` after each mapping.
  template <class Visit, class Next>
  void for_each_entry(const Visit& visit, const Next& next) const noexcept {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::array<std::uint64_t, 256> entries;
    for (std::size_t m = 0; m < count_; ++m) {
      std::uintptr_t at = mappings_[m].begin;
      while (at < mappings_[m].end) {
        const std::size_t wanted = std::min(entries.size(), (mappings_[m].end - at) / page) * sizeof entries[0];
        const ssize_t length = pread(pagemap_, entries.data(), wanted, static_cast<off_t>(at / page * sizeof entries[0]));
        if (length < static_cast<ssize_t>(sizeof entries[0])) break;
        for (std::size_t i = 0; i < static_cast<std::size_t>(length) / sizeof entries[0]; ++i, at += page) visit(at, entries[i]);
      }
      next();
    }
  }

  /// Calls `visit(begin, end)` with each run of pages that are not written.
  template <class Visit>
  void for_each_run(const Visit& visit) const noexcept {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::uintptr_t begin = 0, end = 0;
    const auto close_run = [&] {
      if (begin < end) visit(begin, end);
      begin = end = 0;
    };
    for_each_entry(
        [&](std::uintptr_t at, std::uint64_t entry) {
          if (written(entry)) return close_run();
          if (begin == end) begin = at;
          end = at + page;
        },
        close_run);
  }

  const int pagemap_;
  std::array<Mapping, 128> mappings_;  // of the program and its libraries; what is beyond keeps its pages
  std::size_t count_ = 0;
};

/// Calls `before()` between the opening of a file of lines and its reading, which so sees the least code. Empty where there is no file.
template <class Before>
std::string_view read_lines(const char* path, std::array<char, 4096>& buffer, const Before& before) noexcept {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  buffer.fill(0);  // its pages are there when it is read into
  before();
  const ssize_t length = read(descriptor, buffer.data(), buffer.size());
  close(descriptor);
  return {buffer.data(), static_cast<std::size_t>(std::max(length, ssize_t{0}))};
}

}  // namespace

void release_code_pages() noexcept { CodePages().release(); }

Bytes release_code_and_measure() noexcept {
  const CodePages code;
  Bytes held;
  const auto release = [&] {
    code.release();
    code.held();  // what counts comes back first
    held = code.held();
  };
  std::array<char, 4096> buffer;
  std::string_view text = read_lines("/proc/self/smaps_rollup", buffer, release);
  Bytes resident = read_field(text, "Rss:"), locked = read_field(text, "Locked:");
  if (resident == Bytes()) {
    text = read_lines("/proc/self/status", buffer, release);
    resident = read_field(text, "VmRSS:");
    locked = read_field(text, "VmLck:");
  }
  // Locked pages cannot be given back: they stay, and count.
  return locked > Bytes() ? resident : resident - std::min(resident, held);
}

void release_code_pages_in_pieces() noexcept {
  const CodePages code;
  code.cut();
  code.release();
}

ProcessMemory read_process_memory() noexcept {
  std::array<char, 4096> buffer;
  const std::string_view text = read_lines("/proc/self/status", buffer, [] {});
  return {read_field(text, "VmRSS:"), read_field(text, "VmHWM:")};
}

void release_free_heap() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace sluice::engine
