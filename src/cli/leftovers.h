// Removes what a program would leave if a signal ended it: temporary folders, and programs that it has started. A signal that would end the
// program (SIGINT, SIGTERM, SIGHUP) removes the folders and passes itself on to the programs first, which clear away what is theirs.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>

namespace sluice::cli {

/// None of those signals arrives while this lives, so that making something and recording it cannot be separated.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  /// What was held before.
  const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_;
};

/// While this lives, a signal removes the folder and the files in it. Signals that the program ignores stay ignored.
class LeftoverFolder {
 public:
  explicit LeftoverFolder(const std::string& path);
  ~LeftoverFolder();
  LeftoverFolder(const LeftoverFolder&) = delete;
  LeftoverFolder& operator=(const LeftoverFolder&) = delete;

 private:
  std::size_t place_;
};

/// While this lives, a signal goes to this program too. One at a time.
class LeftoverChild {
 public:
  explicit LeftoverChild(pid_t child);
  ~LeftoverChild();
  LeftoverChild(const LeftoverChild&) = delete;
  LeftoverChild& operator=(const LeftoverChild&) = delete;
};

}  // namespace sluice::cli
