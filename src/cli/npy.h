// NumPy's .npy files, versions 1 to 3: the tool's own way of taking and giving tensors.
//
// Reads little-endian (and one-byte) f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1, and V2 as bf16, in C order. The header is untrusted: it is parsed
// by a small strict reader, its size is bounded, and the declared shape must match the bytes of the file before anything is allocated for
// it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sluice/core/file.h"
#include "src/cli/pieces.h"

namespace sluice::cli {

/// What a header dictionary says.
struct NpyHeader {
  DType dtype = DType::kF32;
  Shape shape;
};

/// Parses the Python dictionary of a header. Throws Failure (kInvalidArgument; kUnsupported for types and orders that are not read).
NpyHeader parse_npy_header(std::string_view dictionary, const std::string& path);

/// Throws Failure: kIo, kInvalidArgument, kUnsupported.
HostTensor read_npy(const std::string& path);

/// Opens the file and reads its values when they are asked for. Throws Failure as read_npy.
Pieces open_npy(const std::string& path);

/// Does the same with a file in memory; errors call it `path`.
HostTensor parse_npy(std::span<const std::byte> file, const std::string& path);

/// Version 1, C order; under a temporary name first. Throws Failure (kIo).
void write_npy(const std::string& path, const Pieces& tensor);
/// Writes to a file that is open, empty and has its name already: its content is complete only when this returns.
void write_npy(const FileDescriptor& file, const std::string& path, const Pieces& tensor);

/// The header of a file of this type and shape.
std::string npy_start(DType dtype, const Shape& shape);

}  // namespace sluice::cli
