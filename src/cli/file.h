// core/file.h with the tool's kind of failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sluice/core/file.h"

namespace sluice::cli {

std::uint64_t size_of_file(const FileDescriptor& file, const std::string& path);

/// Fills `out` from `offset` on. Throws Failure: kIo; kInvalidArgument when the file ends before.
void read_exactly(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> out, const std::string& path);

/// Writes all of `bytes` from `offset` on. Throws Failure (kIo).
void write_exactly(const FileDescriptor& file, std::uint64_t offset, std::span<const std::byte> bytes, const std::string& path);

/// Refuses an `output` that is the file `read`, which the command reads: "the plan would replace ...". Throws Failure (kInvalidArgument).
void refuse_replacing(const std::string& output, const std::string& read, const char* reason);

/// A file that appears whole or not at all. Throws Failure (kIo).
void write_atomically(const std::string& path, std::span<const std::byte> bytes);

}  // namespace sluice::cli
