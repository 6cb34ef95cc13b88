#include "src/emit/weights.h"

#include <algorithm>
#include <cstring>

#include "sluice/executor/decoder.h"

namespace sluice::emit {
namespace {

/// A stretch may begin anywhere in the file; reads take whole blocks at multiples of a block.
Status read_stretch(const model::ModelFile& model, const model::Stretch& stretch, std::byte* to) {
  constexpr std::uint64_t kBlock = 4096;
  const std::uint64_t first = stretch.offset.count() / kBlock * kBlock, end = (stretch.offset + stretch.stored_size).count();
  const std::uint64_t size = std::min((end - first + kBlock - 1) / kBlock * kBlock, model.file_size().count() - first);
  std::vector<std::byte> blocks(size + 2 * kBlock);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(blocks.data()) % kBlock;
  std::byte* const aligned = blocks.data() + (misaligned == 0 ? 0 : kBlock - misaligned);
  SLUICE_RETURN_IF_ERROR(model.source().read({Bytes(first), Bytes(size)}, aligned));
  std::memcpy(to, aligned + (stretch.offset.count() - first), stretch.stored_size.count());
  return {};
}

}  // namespace

Result<std::vector<std::byte>> read_weight(const model::ModelFile& model, WeightId id) {
  const model::Graph& graph = model.graph();
  const model::Weight& weight = graph.weight(id);
  SLUICE_ASSIGN_OR_RETURN(const executor::Decoders decoders, executor::make_decoders(graph));
  std::vector<std::byte> raw;
  for (std::uint32_t i = 0; i < weight.stretch_count; ++i) {
    const std::uint32_t index = weight.first_stretch + i;
    const model::Stretch& stretch = graph.stretches[index];
    const std::size_t stored = stretch.stored_size.count(), expanded = stretch.raw_size.count();
    // Coded bytes are read to the end of the room and expand towards its beginning.
    const std::size_t room = stretch.form == model::StretchForm::kRaw ? expanded : expanded + stored;
    std::vector<std::byte> bytes(room);
    SLUICE_RETURN_IF_ERROR(read_stretch(model, stretch, bytes.data() + (room - stored)));
    SLUICE_RETURN_IF_ERROR(decoders[executor::index_of(stretch.form)]->decode(
        {graph, index, {bytes.data() + (room - stored), stored}, {bytes.data(), expanded}}));
    raw.insert(raw.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(expanded));
  }
  return raw;
}

}  // namespace sluice::emit
