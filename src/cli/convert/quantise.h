// `sluice quantize`: an ONNX file of floats becomes one of integers, or a model file.
#pragma once

#include <span>

namespace sluice::cli {

/// The words behind `quantize`. Gives the exit status. Throws Failure.
int quantise_command(std::span<const char* const> words);

}  // namespace sluice::cli
