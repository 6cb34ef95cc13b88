// A model file that lies in memory.
#pragma once

#include <string>

#include "sluice/model/model_file.h"
#include "sluice/operators/validate.h"
#include "tests/core/fake_file_ops.h"

namespace sluice::model {

/// Opens these bytes as a file; the caller has put MemoryFile's operations in place.
inline Result<ModelFile> open_bytes(const std::string& bytes, const Extents& extents = {}) {
  MemoryFile::bytes() = bytes;
  return ModelFile::open("memory", operators::validate_node, extents);
}

}  // namespace sluice::model
