#include <bit>
#include <cstring>

#include "src/model/header.h"

namespace sluice::model {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they lie in memory");

// The last two bytes show a transfer that translated line ends or stopped at control-Z.
constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'I', 'C', 'E', '\x1a', '\n'};
constexpr std::uint32_t kEndiannessMark = 0x01020304;

struct RawPrefix {
  std::array<char, 8> magic;
  std::uint32_t endianness;
  std::uint32_t version;
  std::uint64_t header_offset;
  std::uint64_t header_size;
  std::uint64_t header_hash;
  std::uint64_t file_size;
  std::uint64_t reserved[2];
};
static_assert(sizeof(RawPrefix) == kPrefixSize);

}  // namespace

std::array<std::byte, kPrefixSize> encode_prefix(const Prefix& prefix) noexcept {
  const RawPrefix raw{
      kMagic, kEndiannessMark, kFormatVersion, kPrefixSize, prefix.header_size.count(), prefix.header_hash, prefix.file_size.count(),
      {0, 0}};
  return std::bit_cast<std::array<std::byte, kPrefixSize>>(raw);
}

Result<Prefix> decode_prefix(std::span<const std::byte> bytes, Bytes file_size, std::string_view path) {
  RawPrefix raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kMagic) return fail(ErrorCode::kInvalidModel, path, "not a Sluice model file: its first bytes are others");
  if (raw.endianness == __builtin_bswap32(kEndiannessMark)) {
    return fail(ErrorCode::kUnsupportedVersion, path, "a big-endian model file; this build reads little-endian ones");
  }
  if (raw.endianness != kEndiannessMark) return fail(ErrorCode::kInvalidModel, path, "the endianness mark is neither of the two");
  if (raw.version != kFormatVersion) {
    return fail(make_error(ErrorCode::kUnsupportedVersion, path, "a model file of another format version; convert the model again",
                           kFormatVersion, raw.version));
  }
  if (raw.reserved[0] != 0 || raw.reserved[1] != 0) {
    return fail(ErrorCode::kInvalidModel, path, "reserved bytes of the prefix are not zero");
  }
  if (raw.file_size != file_size.count()) {
    return fail(make_error(ErrorCode::kInvalidModel, path, "the file is not as long as its prefix says", raw.file_size, file_size.count()));
  }
  if (raw.header_offset != kPrefixSize) return fail(ErrorCode::kInvalidModel, path, "the header does not follow the prefix");
  if (raw.header_size > kMaxHeaderBytes.count()) {
    return fail(
        make_error(ErrorCode::kInvalidModel, path, "the header is larger than any may be", kMaxHeaderBytes.count(), raw.header_size));
  }
  if (raw.header_size > file_size.count() - kPrefixSize) {
    return fail(
        make_error(ErrorCode::kInvalidModel, path, "the header ends beyond the file", raw.header_size, file_size.count() - kPrefixSize));
  }
  return Prefix{Bytes(raw.header_size), raw.header_hash, Bytes(raw.file_size)};
}

}  // namespace sluice::model
