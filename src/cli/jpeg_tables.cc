#include "src/cli/jpeg_tables.h"

#include <algorithm>

namespace sluice::cli {
namespace {

enum Marker : int {
  kStuffed = 0x00,  // a byte 0xff of a scan's data
  kHuffmanTables = 0xc4,
  kFirstRestart = 0xd0,  // the first marker without a segment; the last is kEnd
  kEnd = 0xd9,
  kFill = 0xff,
};

constexpr int kLengths = 16;
constexpr int kMostCodes = 256;

/// The marker after the next 0xff and any that follow it; EOF at the end of the file.
int next_marker(std::FILE* file) noexcept {
  int byte = std::getc(file);
  while (byte != kFill && byte != EOF) byte = std::getc(file);
  while (byte == kFill) byte = std::getc(file);
  return byte;
}

void skip(std::FILE* file, int bytes) noexcept {
  while (bytes > 0 && std::getc(file) != EOF) --bytes;
}

/// The bytes of a segment behind its length; 0 where it has none.
int segment_bytes(std::FILE* file) noexcept {
  const int high = std::getc(file);
  const int low = std::getc(file);
  return high == EOF || low == EOF ? 0 : (high << 8 | low) - 2;
}

bool tables_fit(std::FILE* file) noexcept {
  for (int left = segment_bytes(file); left > 0;) {
    std::getc(file);  // which table
    int codes = 0;
    for (int length = 0; length < kLengths; ++length) codes += std::max(std::getc(file), 0);  // behind the end stb_image reads zeros
    if (codes > kMostCodes) return false;
    if (std::feof(file) != 0) return true;
    skip(file, codes);
    left -= 1 + kLengths + codes;
  }
  return true;
}

bool all_tables_fit(std::FILE* file) noexcept {
  if (std::getc(file) != kFill) return true;
  for (int marker = next_marker(file); marker != EOF && marker != kEnd; marker = next_marker(file)) {
    if (marker == kHuffmanTables) {
      if (!tables_fit(file)) return false;
    } else if (marker != kStuffed && (marker < kFirstRestart || marker > kEnd)) {
      skip(file, segment_bytes(file));
    }
  }
  return true;
}

}  // namespace

bool huffman_tables_fit(std::FILE* file) noexcept {
  const bool fit = all_tables_fit(file);
  std::rewind(file);
  return fit;
}

}  // namespace sluice::cli
