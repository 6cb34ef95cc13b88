// The first bytes of a model file: the prefix, 128 bytes at fixed places, and the header, a FlatBuffer (schema/model.fbs).
//
//     0   magic "SLUICE\x1a\n"        24  header size             56  reserved, zero
//     8   endianness mark 0x01020304  32  XXH3-64 of the header   64  salt of the keys, 32 bytes
//     12  format version              40  file size               96  tag of the header, 16 bytes
//     16  header offset               48  needed features         112 reserved, zero
//
// Numbers are little-endian. Salt and tag are zero unless the file is encrypted. Encoding gives the same size whatever the offsets and
// hashes in the graph are, so that the writer can lay out the file before it knows them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/features.h"
#include "sluice/model/graph.h"
#include "sluice/model/variants.h"
#include "src/model/cipher.h"

namespace sluice::model {

inline constexpr std::size_t kPrefixSize = 128;
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::uint8_t kOwnType = 255;  // schema::Port: the caller sees the tensor's type
/// Far above any model's: GPT-2's header is 160 KB. Bounds what opening a file may allocate.
inline constexpr Bytes kMaxHeaderBytes{256u << 20};

struct Prefix {
  Bytes header_size;
  std::uint64_t header_hash = 0;
  Bytes file_size;
  Features needed = 0;  // model/features.h
  Salt salt{};          // of an encrypted file, else zero, as its tag
  StretchTag header_tag{};

  bool encrypted() const noexcept { return (needed & bit_of(Feature::kEncryption)) != 0; }
};

std::array<std::byte, kPrefixSize> encode_prefix(const Prefix& prefix) noexcept;
/// What the tag of an encrypted header covers beside it: the prefix, but for what depends on the encrypted header.
std::array<std::byte, kPrefixSize> associated_prefix(Prefix prefix) noexcept;
/// `bytes` holds at least kPrefixSize bytes, `file_size` is what the system says. Errors: kInvalidModel; kUnsupportedVersion.
Result<Prefix> decode_prefix(std::span<const std::byte> bytes, Bytes file_size, std::string_view path);

/// `variants` may be null: a file of one shape. Errors: kUnsupported beyond kMaxHeaderBytes.
Result<std::vector<std::byte>> encode_header(const Graph& graph, const Variants* variants = nullptr);

/// What a header gives for the extents that a caller asks for.
struct OpenHeader {
  Graph graph;
  std::vector<Dimension> dimensions;  // empty: a file of one shape
  Features needed = 0;                // as the prefix must have them
  bool at_bound = true;               // the graph is the file's own, not one of its variants
};
/// Verifies structure and decodes; every enumerator and extent is in range afterwards, ids and sizes are not yet (`validate`).
/// `bytes` must be aligned to 8. Errors: kInvalidModel; kInvalidArgument where `extents` are none of the file's. Allocates O(bytes.size()).
Result<OpenHeader> decode_header(std::span<const std::byte> bytes, std::string_view path, const Extents& extents = {});

}  // namespace sluice::model
