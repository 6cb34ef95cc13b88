// `--output-rows`: outputs written into their .npy files block by block, as a run makes them, so that no budget holds them whole.
//
// Files appear under their names when all is written; a run that fails leaves those of before.
#pragma once

#include <string>
#include <vector>

#include "sluice/core/file.h"
#include "sluice/engine/engine.h"
#include "src/cli/pieces.h"

namespace sluice::cli {

class OutputRows {
 public:
  /// Files in `directory`, which is made if it is missing. Throws Failure (kIo).
  OutputRows(const std::string& directory, const model::Graph& graph);

  /// The hook for SessionOptions::outputs; this object must not move while the session lives.
  OutputHook hook() noexcept;
  /// After the last run: gives the files their names. Throws Failure (kIo).
  void finish(const Session& session);
  /// The contents of these files, read when they are asked for.
  std::vector<Pieces> outputs() const;

 private:
  struct File {
    std::string path;
    AtomicFile file;
    DType dtype = DType::kF32;
    Shape shape;
    bool bounded = false;         // its shape is known with its one block
    std::uint64_t values_at = 0;  // 0: nothing is written yet
  };
  Status take(const OutputBlock& block) noexcept;
  static Status begin(File& file, const Shape& shape) noexcept;

  std::vector<File> files_;  // by port
};

}  // namespace sluice::cli
