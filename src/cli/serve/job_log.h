// The log of Band's `log_path`: one object a job, written as jobs end, so that a long run holds no more of it than a short one. The file
// appears whole, at the end, or not at all.
#pragma once

#include <string>

#include "sluice/core/file.h"
#include "sluice/scheduler/scheduler.h"

namespace sluice::cli::serve_detail {

class JobLog {
 public:
  /// Nothing is written where there is no path. Throws Failure (kIo).
  explicit JobLog(const std::string& path);

  /// An error is kept until `finish`.
  void add(const std::string& graph, const scheduler::JobResult& result);
  /// Throws Failure (kIo).
  void finish();

 private:
  void flush();

  bool wanted_;
  AtomicFile file_;
  Bytes written_;
  std::string text_;
  Status status_;
};

}  // namespace sluice::cli::serve_detail
