// Whole small files, read and written with the tool's kind of failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace sluice::cli {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Opens a regular file for reading. Throws Failure (kIo) with the system's reason.
File open_for_reading(const std::string& path);
std::uint64_t size_of_file(std::FILE* file, const std::string& path);

/// Reads exactly `out.size()` bytes. Throws Failure (kIo) when the file is shorter.
void read_exactly(std::FILE* file, std::span<std::byte> out, const std::string& path);

/// Writes head and body under a temporary name beside `path` and renames: a reader sees the old file or the whole new one.
void write_atomically(const std::string& path, std::span<const std::byte> head, std::span<const std::byte> body);

}  // namespace sluice::cli
