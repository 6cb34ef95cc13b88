#include "sluice/executor/decoder.h"

#include <cstring>
#include <new>

#include "sluice/core/hash.h"
#include "src/executor/checksum_error.h"

namespace sluice::executor {
namespace {

/// Stored as used: only the checksum is left to do. A raw stretch in a load of stretches that expand is moved to its place among them.
class RawDecoder final : public Decoder {
 public:
  Status decode(const StretchBytes& bytes) noexcept override {
    SLUICE_RETURN_IF_ERROR(verify_checksum(bytes));
    if (bytes.raw.data() != bytes.stored.data()) std::memmove(bytes.raw.data(), bytes.stored.data(), bytes.raw.size());
    return {};
  }
};

}  // namespace

Status verify_checksum(const StretchBytes& bytes) noexcept {
  const model::Stretch& stretch = bytes.stretch();
  if (xxh3_64(bytes.stored) == stretch.xxh3) return {};
  return fail(checksum_error(bytes.graph.name, stretch.offset));
}

Result<Decoders> make_decoders(const model::Graph& graph) noexcept {
  Decoders decoders;
  std::unique_ptr<Decoder>& raw = decoders[index_of(model::StretchForm::kRaw)];
  raw.reset(new (std::nothrow) RawDecoder);
  if (!raw) return fail(ErrorCode::kOutOfMemory, graph.name, "no memory for what decodes weights");
  return decoders;
}

}  // namespace sluice::executor
