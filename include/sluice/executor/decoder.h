// What becomes of a stretch between the disk and the kernels: the third stage of reading.
//
//     read -> verify (or decrypt) -> expand -> publish         a Decoder does the two in the middle, for one stored form
//
// Stored as used, a stretch stays where it was read. A form whose stored size differs from its raw size is read to the end of its region
// and expands towards the region's beginning, so that a load needs no second buffer:
//
//     region   |== raw, ready ==|== raw of stretch s ==|    |~~ stored s ~~|~~ stored s + 1 ~~| slack |
//                               ^ decode writes here        ^ and reads here
//
// A new form is a Decoder and its place in the table that `make_decoders` fills; loader and step reader do not change.
//
// Invariants: (D1) a decoder judges the bytes before anybody uses them: by the checksum of the stored bytes, or by a tag. (D2) `raw` ends
// no later than `stored`, so what is not decoded yet is not overwritten by a stretch before it; within its own stretch a decoder sees to
// that itself, with memory that it took when it was made. (D3) `decode` allocates nothing. One thread at a time uses a decoder: each reader
// has a table of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/core/error.h"
#include "sluice/model/graph.h"

namespace sluice::model {
class FileKey;  // src/model/cipher.h
}

namespace sluice::executor {

/// One stretch in memory.
struct StretchBytes {
  const model::Graph& graph;
  std::uint32_t index = 0;      // of Graph::stretches: what a form keeps for each stretch or each weight is found by it
  std::span<std::byte> stored;  // nobody's after: a decoder may decrypt them where they lie
  std::span<std::byte> raw;     // the same bytes as `stored` where a stretch is used as it was stored

  const model::Stretch& stretch() const noexcept { return graph.stretches[index]; }
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Judges `bytes.stored` and leaves the values in `bytes.raw`. Errors: kChecksumMismatch, and what else a form can find wrong.
  virtual Status decode(const StretchBytes& bytes) noexcept = 0;
};

/// Forms are sums (model::StretchForm): each sum has a decoder of its own, which undoes its parts from the last to the first.
inline constexpr std::size_t kStoredForms = 8;
/// A form as an index of Decoders; raw is 0.
constexpr std::size_t index_of(model::StretchForm form) noexcept {
  constexpr unsigned kPacked = 3;  // forms that change the bytes; encryption comes behind them
  return (static_cast<unsigned>(form) & kPacked) + (model::has_form(form, model::StretchForm::kEncrypted) ? kPacked + 1 : 0);
}

/// By stored form; null: this build does not decode it.
using Decoders = std::array<std::unique_ptr<Decoder>, kStoredForms>;

/// The decoders of the forms that `graph` has: raw, and coded where it has tables; with a key, of encrypted stretches and of no others. A
/// graph with another was refused when it was opened (model/features.h). The key is not used after. Errors: kOutOfMemory; kUnsupported.
Result<Decoders> make_decoders(const model::Graph& graph, const model::FileKey* key = nullptr) noexcept;
/// What they take, for budgets.
Bytes decoder_bytes(const model::Graph& graph) noexcept;
using MakeDecoders = Result<Decoders> (*)(const model::Graph& graph, const model::FileKey* key) noexcept;

/// The check that all forms with a checksum begin with. Errors: kChecksumMismatch with the offset in the file.
Status verify_checksum(const StretchBytes& bytes) noexcept;

}  // namespace sluice::executor
