// How the importer says no from deep inside: `refuse` throws a `Refusal`, which is caught for each ONNX node (all problems of a file are
// reported together) and once more at the border of `convert`. No exception leaves the module.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "sluice/core/error.h"

namespace sluice::importer {

/// Why a node or a file cannot be taken.
class Refusal : public std::exception {
 public:
  Refusal(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
  std::string message_;
};

/// The file breaks a rule of ONNX or of protobuf.
[[noreturn]] inline void refuse_malformed(std::string message) { throw Refusal(ErrorCode::kInvalidModel, std::move(message)); }
/// The file is sound, but this is nothing we run.
[[noreturn]] inline void refuse_unsupported(std::string message) { throw Refusal(ErrorCode::kUnsupported, std::move(message)); }

}  // namespace sluice::importer
