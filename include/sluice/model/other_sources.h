// Models that do not lie in a file of their own: in memory, in a part of an open file (an archive, an application's package), or wherever a
// program's own function reads them from.
//
//     bytes | descriptor + part | Reader  --WeightSource-->  ModelFile::open, loads of a run
//
// Weights are streamed from each of them like from a file. No budget counts models in the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/model/weight_source.h"

namespace sluice::model {

/// How a program reads a model: `read` fills `size` bytes from `offset` on and says how many it brought; fewer are asked for again, 0 or
/// less is an error. Called by several threads at once, until the last model and session made of it is gone.
struct Reader {
  void* context = nullptr;
  std::int64_t (*read)(void* context, std::uint64_t offset, void* target, std::size_t size) = nullptr;
  Bytes size;
};
/// Errors: kInvalidArgument without a function.
Result<std::unique_ptr<WeightSource>> open_reader_source(const Reader& reader);

/// `bytes` stay where they are and as they are while anything made of them lives.
Result<std::unique_ptr<WeightSource>> open_buffer_source(std::span<const std::byte> bytes);

/// A part of the regular file that `descriptor` is open on; the caller may close its descriptor. Read directly where the file system allows
/// it and the part begins on 4096 bytes. Errors: kIo (also without /proc); kInvalidArgument where the part does not lie in the file.
Result<std::unique_ptr<WeightSource>> open_part_source(int descriptor, FileRange part);

}  // namespace sluice::model
