// Loads any bytes as a plan. The input is the body; the prefix is made to agree with it, so that verifier and decoder see every mutation.
#include <cstdint>
#include <cstring>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/plan/plan_file.h"
#include "tests/fuzz/virtual_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kPrefixSize = 32;
  const std::uint32_t words[] = {0x01020304, 1};  // endianness mark, version
  const std::uint64_t numbers[] = {size, sluice::xxh3_64(std::as_bytes(std::span(data, size)))};
  std::vector<std::uint8_t> bytes(kPrefixSize + size);
  std::memcpy(bytes.data(), "SLUPLAN\n", 8);
  std::memcpy(bytes.data() + 8, words, sizeof words);
  std::memcpy(bytes.data() + 16, numbers, sizeof numbers);
  if (size > 0) std::memcpy(bytes.data() + kPrefixSize, data, size);
  sluice::VirtualFile::install(bytes, 0);
  static_cast<void>(sluice::plan::load_plan("input"));
  return 0;
}
