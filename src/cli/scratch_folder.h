// A folder of one's own among the temporary files, gone with its owner, and where a signal ends the program, too.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "src/cli/failure.h"
#include "src/cli/leftovers.h"

namespace sluice::cli {

class ScratchFolder {
 public:
  /// Throws Failure (kIo).
  explicit ScratchFolder(const std::string& name) {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    path_ = ((error ? std::filesystem::path("/tmp") : parent) / (name + "-XXXXXX")).string();
    const SignalsHeld held;
    if (::mkdtemp(path_.data()) == nullptr) raise(make_io_error(path_, "no folder can be made", errno));
    leftover_.emplace(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<LeftoverFolder> leftover_;
};

}  // namespace sluice::cli
