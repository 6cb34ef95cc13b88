// From a model file to C99: the entry point of this module.
//
// It writes one file and one header without a heap, recursion, or library calls other than memcpy and memset: weights are const, tensors
// are in one arena of a known size, and each row of the input is asked for when it is needed. The bits are those of the engine.
//
// Invariant: the same model and options give the same text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/emit/memory_plan.h"
#include "sluice/emit/network.h"
#include "sluice/model/model_file.h"

namespace sluice::emit {

struct EmitOptions {
  std::string name;  // begins all public names; make it with `c_name_of`
  /// Arena and stack together, in bytes; 0: the least that works.
  std::uint64_t ram = 0;
  /// Multiply-adds that may be spent on less RAM, as a share of the network's own: columns between strips are computed twice. None by
  /// default. On MobileNets 0.2 halves the RAM of a streamed input; its rows are then asked for once for each strip.
  double max_overhead = 0;
  NetworkOptions network;
  /// Told how far the work is: stages whose weights are written, of all. Called before the first, too, while memory is arranged.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

struct Emission {
  std::string source;  // NAME.c
  std::string header;  // NAME.h
  std::uint64_t arena_bytes = 0;
  std::uint64_t stack_bound_bytes = 0;  // of NAME_run and what it calls, on a 32-bit ARM
  std::uint64_t lower_bound_bytes = 0;  // of the tensors alone
  double macs_factor = 1.0;             // multiply-adds over the network's own
  std::int64_t input_passes = 1;        // how often a streamed input is asked for, each time from the first row on
  std::uint64_t weight_bytes = 0;       // of products; biases, multipliers and tables apart
  std::uint64_t constant_bytes = 0;     // those
  Network network;
};

/// Makes a C name of a file's stem: `_` replaces characters that a name cannot have.
std::string c_name_of(const std::string& stem);

/// Errors: kUnsupported naming the node; kBudgetTooSmall with the least RAM that works; those of reading weights.
Result<Emission> emit(const model::ModelFile& model, const EmitOptions& options);

/// NAME_test.c: a `main` that runs the network on an input and compares with what the engine gave. Values are the ports' bytes as they lie
/// in the arena: rows, pixels, channels.
struct TestVector {
  std::vector<std::vector<std::byte>> inputs, outputs;
};
std::string test_program(const Emission& emission, const EmitOptions& options, const TestVector& vector);

}  // namespace sluice::emit
