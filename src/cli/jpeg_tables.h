// Looks through a JPEG's segments before stb_image decodes it.
//
// A Huffman table says how many codes it has of each of 16 lengths. stb_image 2.27, which Debian has, has room for 256 of them and does not
// count, so that a table of more writes over its neighbours (upstream counts since 2.28). No picture needs more: codes stand for bytes.
//
// The walk follows markers as stb_image does: bytes that are not a marker are skipped, and a segment at which stb_image gives up may be
// read as anything.
#pragma once

#include <cstdio>

namespace sluice::cli {

/// Has every Huffman table of the file at most 256 codes? True for a file that is not a JPEG. Leaves the file at its beginning.
bool huffman_tables_fit(std::FILE* file) noexcept;

}  // namespace sluice::cli
