// The file that spilled activations go to and come back from (plan::PassingTensor, ADR 0040).
//
// It has no name, so it disappears however the process ends. All that a plan writes is set aside when it is made, as far as the
// file system can do that, so that a full disk is an error of making a session rather than of a run.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sluice/core/error.h"
#include "sluice/core/file.h"
#include "sluice/core/units.h"

namespace sluice::executor {

class ScratchFile {
 public:
  /// In `directory`. Errors: kIo, with the system's reason.
  static Result<ScratchFile> create(const std::string& directory, Bytes size);

  /// All of `bytes`. Errors: kIo. Allocate nothing.
  Status write(Bytes offset, std::span<const std::byte> bytes) noexcept;
  Status read(Bytes offset, std::span<std::byte> bytes) noexcept;

 private:
  ScratchFile(FileDescriptor file, std::string directory) noexcept : file_(std::move(file)), directory_(std::move(directory)) {}

  FileDescriptor file_;
  std::string directory_;  // for the words of errors
};

}  // namespace sluice::executor
