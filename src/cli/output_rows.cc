#include "src/cli/output_rows.h"

#include <algorithm>
#include <array>

#include "src/cli/failure.h"
#include "src/cli/npy.h"
#include "src/cli/outputs.h"
#include "src/core/out_of_memory.h"

namespace sluice::cli {

OutputRows::OutputRows(const std::string& directory, const model::Graph& graph) {
  const std::vector<std::string> paths = output_paths(directory, graph.outputs);
  for (std::size_t port = 0; port < paths.size(); ++port) {
    const model::Port& p = graph.outputs[port];
    files_.push_back(
        {paths[port], unwrap(AtomicFile::create(paths[port])), graph.dtype_of(p), p.onnx_shape, graph.tensor(p.tensor).bounded != 0});
  }
}

OutputHook OutputRows::hook() noexcept {
  return {[](void* self, const OutputBlock& block) noexcept { return static_cast<OutputRows*>(self)->take(block); }, this};
}

Status OutputRows::begin(File& file, const Shape& shape) noexcept {
  return or_out_of_memory(file.path, [&]() -> Status {
    const std::string head = npy_start(file.dtype, shape);
    file.values_at = head.size();
    file.shape = shape;
    return file.file.write_at(Bytes(), std::as_bytes(std::span(head)));
  });
}

/// Writes the box as runs along its last axis, which are contiguous in the file.
Status OutputRows::take(const OutputBlock& block) noexcept {
  File& file = files_[block.port];
  if (file.values_at == 0 || file.bounded) SLUICE_RETURN_IF_ERROR(begin(file, file.bounded ? block.shape : file.shape));
  const std::size_t size = size_of(file.dtype);
  const int last = block.shape.rank() - 1;
  const std::int64_t length = last < 0 ? 1 : block.shape[last];
  alignas(8) std::array<std::byte, 4096> piece;
  for (std::int64_t first = 0, all = block.shape.element_count(); first < all;) {
    std::int64_t rest = first, place = 0, stride = 1;  // of the element in the output
    for (int axis = last; axis >= 0; --axis) {
      place += (block.begin[static_cast<std::size_t>(axis)] + rest % block.shape[axis]) * stride;
      rest /= block.shape[axis];
      stride *= file.shape[axis];
    }
    const std::int64_t count = std::min<std::int64_t>(length - first % length, static_cast<std::int64_t>(piece.size() / size));
    const std::span<std::byte> bytes = std::span(piece).first(static_cast<std::size_t>(count) * size);
    block.copy(first, bytes);
    SLUICE_RETURN_IF_ERROR(file.file.write_at(Bytes(file.values_at + static_cast<std::uint64_t>(place) * size), bytes));
    first += count;
  }
  return {};
}

void OutputRows::finish(const Session& session) {
  for (std::size_t port = 0; port < files_.size(); ++port) {
    File& file = files_[port];
    if (file.values_at == 0) unwrap(begin(file, session.output_shape(port)));  // without elements, it has no block
    unwrap(file.file.commit());
  }
}

std::vector<Pieces> OutputRows::outputs() const {
  std::vector<Pieces> outputs;
  for (const File& file : files_) outputs.push_back(open_npy(file.path));
  return outputs;
}

}  // namespace sluice::cli
