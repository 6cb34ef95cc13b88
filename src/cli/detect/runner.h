// Runs a model file with another runtime and gets its milliseconds. Nothing else is known of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace sluice::cli::detect {

class Runner {
 public:
  virtual ~Runner() = default;
  /// Milliseconds of one run of an ONNX file. Throws Failure.
  virtual double time(const std::string& path) = 0;
};

/// A process that reads a path a line and answers each with a line of milliseconds. `command` is the shell's.
class ProcessRunner final : public Runner {
 public:
  using Clock = std::chrono::steady_clock;
  /// Throws Failure (kIo) where it cannot be started.
  ProcessRunner(const std::string& command, double seconds_to_answer);
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;
  ~ProcessRunner() override;
  double time(const std::string& path) override;

 private:
  void write_line(const std::string& line, Clock::time_point end);
  std::string read_line(Clock::time_point end);

  std::string command_;
  double seconds_to_answer_;
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
  std::string pending_;
};

}  // namespace sluice::cli::detect
