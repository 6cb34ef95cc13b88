// A processor other than our CPU kernels, as the scheduler sees it: which nodes it can run, and graphs made ready for it.
//
//     graph of a unit --supports, for each node--> prepare --> Program --set_input, run, get_output--> outputs
//
// A unit is a graph with ports (model/graph.h), so a backend gets whole graphs and knows nothing of units, jobs or policies. What it
// does not support by name goes to another processor, and the plan shows where (`sluice plan --processors`): there is no silent fallback.
//
// Invariants: (B1) a Program is used by one thread, `cancel` apart; (B2) `supports` says the same for a node whenever it is asked, and
// `prepare` takes every graph of supported nodes or gives an error; (B3) `bytes` counts all that the program holds or causes its library to
// hold, packed copies of weights included: it comes out of the one budget; (B4) after an error of `run` the program can run again, unless
// `lost` says that the processor is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"

namespace sluice::backends {

class Program {
 public:
  virtual ~Program() = default;
  /// Lets the next run read an input from the caller's memory, or write an output to it: nothing is copied then, and set_input or
  /// get_output is not called. `memory` as for Session::place_input. Errors: kUnsupported, always the same for a port, where it does not.
  virtual Status place_input(std::size_t /*port*/, std::span<std::byte> /*memory*/) noexcept { return copies(); }
  virtual Status place_output(std::size_t /*port*/, std::span<std::byte> /*memory*/) noexcept { return copies(); }
  /// Values in the port's ONNX shape, row-major. They are copied.
  virtual Status set_input(std::size_t port, std::span<const std::byte> data) noexcept = 0;
  virtual Status run() noexcept = 0;
  virtual Status get_output(std::size_t port, std::span<std::byte> data) noexcept = 0;
  /// Ends the run that is under way, or the next, with kCancelled, at a step boundary where there is one. From any thread.
  virtual void cancel() noexcept = 0;
  /// After `run` failed: the processor is gone, and its runs are for others.
  virtual bool lost() const noexcept { return false; }
  virtual Bytes bytes() const noexcept { return {}; }

 private:
  static Status copies() noexcept { return tl::unexpected(make_error(ErrorCode::kUnsupported, "program", "it copies its tensors")); }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view kind() const noexcept = 0;
  /// The device that it computes on, such as "GPU: its name"; empty: the CPU's cores.
  virtual std::string_view device() const noexcept { return {}; }
  /// Whether its outputs are, bit for bit, those of our CPU kernels. Jobs that want the same bits keep to such processors.
  virtual bool same_bits() const noexcept = 0;
  /// Bytes of the process that its library takes besides its programs, for code and tables.
  virtual Bytes process_bytes() const noexcept { return {}; }
  virtual bool supports(const model::Graph& graph, const model::Node& node) const noexcept = 0;
  /// Errors: kUnsupported naming the node; those of reading weights; kOutOfMemory.
  virtual Result<std::unique_ptr<Program>> prepare(const model::Graph& graph, model::WeightSource& source) = 0;
};

}  // namespace sluice::backends
