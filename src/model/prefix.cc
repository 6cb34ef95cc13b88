#include <algorithm>
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
  std::uint64_t needed_features;
  std::uint64_t reserved_0;
  std::array<std::uint64_t, 4> salt;
  std::array<std::uint64_t, 2> header_tag;
  std::array<std::uint64_t, 2> reserved_1;
};
static_assert(sizeof(RawPrefix) == kPrefixSize);

/// Another version than this build's.
Error version_error(std::uint32_t version, std::string_view path) {
  const char* reason = "a model file of a later format version; convert the model again with this build, or run the build that wrote it";
  if (version == 1) reason = "format version 1 was never released; convert the ONNX file again: sluice convert MODEL.onnx -o MODEL.sluice";
  return make_error(ErrorCode::kUnsupportedVersion, path, reason, kFormatVersion, version);
}

/// What a prefix of this version says beyond the sizes.
Status check_features(const RawPrefix& raw, std::string_view path) {
  if ((raw.needed_features & ~kKnownFeatures) != 0) {
    return fail(
        make_error(ErrorCode::kUnsupportedVersion, path,
                   "the model needs features that this build has no name for: a later version of Sluice wrote it (bits of the features)",
                   raw.needed_features, kKnownFeatures));
  }
  const auto zero = [](const auto& words) { return std::all_of(words.begin(), words.end(), [](std::uint64_t word) { return word == 0; }); };
  if (raw.reserved_0 != 0 || !zero(raw.reserved_1))
    return fail(ErrorCode::kInvalidModel, path, "reserved bytes of the prefix are not zero");
  const bool encrypted = (raw.needed_features & bit_of(Feature::kEncryption)) != 0;
  if (!encrypted && (!zero(raw.salt) || !zero(raw.header_tag)))
    return fail(ErrorCode::kInvalidModel, path, "the prefix has the salt or the tag of an encrypted file, which this one is not");
  return {};
}

}  // namespace

std::array<std::byte, kPrefixSize> encode_prefix(const Prefix& prefix) noexcept {
  RawPrefix raw{};
  raw.magic = kMagic;
  raw.endianness = kEndiannessMark;
  raw.version = kFormatVersion;
  raw.header_offset = kPrefixSize;
  raw.header_size = prefix.header_size.count();
  raw.header_hash = prefix.header_hash;
  raw.file_size = prefix.file_size.count();
  raw.needed_features = prefix.needed;
  raw.salt = std::bit_cast<decltype(raw.salt)>(prefix.salt);
  raw.header_tag = std::bit_cast<decltype(raw.header_tag)>(prefix.header_tag);
  return std::bit_cast<std::array<std::byte, kPrefixSize>>(raw);
}

std::array<std::byte, kPrefixSize> associated_prefix(Prefix prefix) noexcept {
  prefix.header_hash = 0;
  prefix.header_tag = {};
  return encode_prefix(prefix);
}

Result<Prefix> decode_prefix(std::span<const std::byte> bytes, Bytes file_size, std::string_view path) {
  RawPrefix raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.magic != kMagic) return fail(ErrorCode::kInvalidModel, path, "not a Sluice model file: its first bytes are others");
  if (raw.endianness == __builtin_bswap32(kEndiannessMark)) {
    return fail(ErrorCode::kUnsupportedVersion, path, "a big-endian model file; this build reads little-endian ones");
  }
  if (raw.endianness != kEndiannessMark) return fail(ErrorCode::kInvalidModel, path, "the endianness mark is neither of the two");
  if (raw.version != kFormatVersion) return fail(version_error(raw.version, path));
  SLUICE_RETURN_IF_ERROR(check_features(raw, path));
  // Without weights the stated size is that which the file would have with them: offsets of stretches refer to it.
  const bool weightless = (raw.needed_features & bit_of(Feature::kWithoutWeights)) != 0;
  const std::uint64_t stated_size = weightless ? kPrefixSize + std::min(raw.header_size, kMaxHeaderBytes.count()) : raw.file_size;
  if (stated_size != file_size.count()) {
    return fail(make_error(ErrorCode::kInvalidModel, path, "the file is not as long as its prefix says", stated_size, file_size.count()));
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;  // no disk holds more; sums of sizes stay far below 64 bits
  if (weightless && raw.file_size > kMostBytes)
    return fail(make_limit_error(ErrorCode::kInvalidModel, path, "the file would be larger than any may be", kMostBytes, raw.file_size));
  if (raw.header_offset != kPrefixSize) return fail(ErrorCode::kInvalidModel, path, "the header does not follow the prefix");
  if (raw.header_size > kMaxHeaderBytes.count()) {
    return fail(
        make_limit_error(ErrorCode::kInvalidModel, path, "the header is larger than any may be", kMaxHeaderBytes.count(), raw.header_size));
  }
  if (raw.header_size > file_size.count() - kPrefixSize) {
    return fail(
        make_error(ErrorCode::kInvalidModel, path, "the header ends beyond the file", raw.header_size, file_size.count() - kPrefixSize));
  }
  return Prefix{Bytes(raw.header_size),        raw.header_hash,
                Bytes(raw.file_size),          raw.needed_features,
                std::bit_cast<Salt>(raw.salt), std::bit_cast<StretchTag>(raw.header_tag)};
}

}  // namespace sluice::model
