// The interface for users: open a model, give a budget, run.
//
//     auto model   = sluice::Model::open("resnet50.sluice");
//     auto session = sluice::Session::create(*model, {.budget = 24_MiB});
//     (*session)->set_input(0, sluice::DType::kF32, image);   // ONNX order and shape, any host memory
//     (*session)->run();
//     (*session)->get_output(0, scores);
//
// A Model is the opened file, shared by any number of sessions; of a file for several shapes (model/variants.h) it has the graph of the
// extents that were asked for. A Session owns an arena, a plan, threads and a loader; it is used by one thread at a time; several sessions
// may run at once in one process, each inside its own budget, and of one file at several extents. Sessions that run in turn may share one
// budget (shared_arena.h).
//
// Making a session, changing a budget and running want kLeastStack of the calling thread's stack; with less they are refused. A session
// belongs to the process that made it: in a forked child all its calls are refused, and destroying it there does nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/core/dtype.h"
#include "sluice/core/error.h"
#include "sluice/core/shape.h"
#include "sluice/core/units.h"
#include "sluice/engine/session_options.h"
#include "sluice/executor/executor.h"
#include "sluice/model/model_file.h"
#include "sluice/model/other_sources.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/planner.h"

namespace sluice {

/// Measured (tests/fault/stack_test.cc), optimised: runs take up to 53 KiB, of which a tile's sums are 36, and planning up to 21.
inline constexpr Bytes kLeastStack{96 * 1024};
/// Behind a port that lies with the caller (Session::place_input): so many bytes may be read, never written.
inline constexpr Bytes kPortTail{64};

/// An opened model file. Thread-safe.
class Model {
 public:
  /// `dims` binds dimensions by name, as {{"N", 4}}; others are at their bound. `key` is asked for the key of an encrypted model, once.
  /// Errors: those of ModelFile::open.
  static Result<std::shared_ptr<const Model>> open(const std::string& path, const model::Extents& dims = {},
                                                   const model::KeyCallback& key = {});
  /// A model in the caller's memory, which keeps it while models and sessions of it live. Errors: those of ModelFile::open.
  static Result<std::shared_ptr<const Model>> open_buffer(std::span<const std::byte> bytes, const model::Extents& dims = {},
                                                          const model::KeyCallback& key = {});
  /// A model in `size` bytes from `offset` on of the file that `descriptor` is open on; the caller may close it. Errors: also those of
  /// open_part_source.
  static Result<std::shared_ptr<const Model>> open_part(int descriptor, Bytes offset, Bytes size, const model::Extents& dims = {},
                                                        const model::KeyCallback& key = {});
  /// A model whose bytes a function of the program reads.
  static Result<std::shared_ptr<const Model>> open_reader(const model::Reader& reader, const model::Extents& dims = {},
                                                          const model::KeyCallback& key = {});
  /// Opens the same file with the graph of other extents: dimensions that `dims` does not name are at their bound, whatever they are here.
  /// Reads the header again; the file stays open once. Errors: those of ModelFile::with_extents.
  Result<std::shared_ptr<const Model>> with_dims(const model::Extents& dims) const;
  /// A part of the graph (model/part.h) as a model of its own, with the tensors that cross its border as ports. Shares the open file.
  /// Errors: those of ModelFile::with_part.
  Result<std::shared_ptr<const Model>> part(std::size_t first_node, std::size_t count) const;
  const model::ModelFile& file() const noexcept { return file_; }
  const model::Graph& graph() const noexcept { return file_.graph(); }

 private:
  static Result<std::shared_ptr<const Model>> open_source(Result<std::unique_ptr<model::WeightSource>> source, const char* name,
                                                          const model::Extents& dims, const model::KeyCallback& key);
  explicit Model(model::ModelFile file) noexcept : file_(std::move(file)) {}
  model::ModelFile file_;
};

/// How the bytes of a budget are used.
struct MemoryReport {
  Bytes budget;         // as given
  Bytes overhead;       // what is not arena: process scope: code, stacks, heap, counter error; library scope: metadata and stacks
  Bytes arena;          // plan.arena_bytes; in a shared arena: of all sessions together, and so is the overhead
  Bytes peak_resident;  // VmHWM of the process now
};

/// A tensor where it lies in the arena: the element at (i, j, ...) of the ONNX shape is at data + i * strides[0] + j * strides[1] + ...
struct TensorInPlace {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::array<std::int64_t, Shape::kMaxRank> strides{};  // bytes

  /// Whether the elements follow each other in ONNX order without a gap.
  bool dense() const noexcept;
};

class Session {
 public:
  /// Errors: kBudgetTooSmall with needed = the smallest budget that works in this scope (of a shared arena: with the sessions it has);
  /// those of make_plan, verify and Executor.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Model> model, const SessionOptions& options);
  /// Waits for a call that runs in another thread, but not for reads that hang: those keep their part of the arena.
  virtual ~Session() = default;

  /// The model that this session runs. If its options have `dims`, that is not the one that it was made of.
  virtual const Model& model() const noexcept = 0;
  /// Copies a tensor of the port's ONNX shape, row-major, into the arena. `dtype` is the port's (model::Graph::dtype_of); f32 too where
  /// that is f16, bf16 or f64, all of which become f32 here. Inputs without elements need not be set. Errors: kInvalidArgument (port, type
  /// or size); after a run that failed also kIo or kCancelled, where a read that it left does not end.
  virtual Status set_input(std::size_t port, DType dtype, std::span<const std::byte> data) noexcept = 0;
  /// Extents of an output in the last successful run: the port's, or fewer where the graph says that they are known at run only
  /// (model::Tensor::bounded). Before a run, the port's: the most that it can be.
  virtual Shape output_shape(std::size_t port) const noexcept = 0;
  /// Copies an output, ONNX shape, row-major, into `data`, in the port's type: as many bytes as output_shape has; room for the port's shape
  /// is taken too.
  /// Errors: kInvalidArgument; before the first successful run. They hold from a successful run to the next run or input.
  virtual Status get_output(std::size_t port, std::span<std::byte> data) noexcept = 0;
  /// A part of an output: as many elements of its ONNX order as `data` holds, from `first_element` on. For outputs that are too large to
  /// be held twice. Errors: as get_output.
  virtual Status get_output_part(std::size_t port, std::uint64_t first_element, std::span<std::byte> data) noexcept = 0;
  /// An input to be written without a copy, which then counts as set. Images are stored as NHWC here, whatever their ONNX order: use the
  /// strides. It holds until the next run (with keep_inputs until it is set again), not beyond set_budget or another session's turn.
  /// Errors: those of set_input; kUnsupported for an input that no step reads.
  virtual Result<TensorInPlace> input_in_place(std::size_t port) noexcept = 0;
  /// An output to be read without a copy, in the extents of the last run. It holds as long as get_output gives it, and is not written.
  virtual Result<TensorInPlace> output_in_place(std::size_t port) noexcept = 0;
  /// Needs SessionOptions::ports_elsewhere. The next run reads an input from the caller's memory, or writes an output to it, so that
  /// sessions hand tensors to each other without a copy. `memory` has the bytes of the tensor, dense in ONNX order, and kPortTail more that
  /// may be read; it begins on 64 bytes. An input counts as set, and get_output has nothing to give. Both hold for one run, not beyond
  /// set_budget or another session's turn. Errors: those of set_input; kUnsupported if the port is stored in another order in the arena, or
  /// the plan uses its bytes for something else: it is then copied as usual.
  virtual Status place_input(std::size_t port, std::span<std::byte> memory) noexcept = 0;
  virtual Status place_output(std::size_t port, std::span<std::byte> memory) noexcept = 0;
  /// Runs the model. Allocates nothing. After an error the session can run again.
  virtual Status run() noexcept = 0;

  /// Makes the current run, or the next one, end with kCancelled after its current step or iteration of a loop. From
  /// any thread, also beside set_budget.
  virtual void cancel() noexcept = 0;
  /// Takes back a cancellation that no run has consumed, for a caller that cancelled a run that had just ended. By the thread that runs.
  virtual void forget_cancel() noexcept = 0;

  /// Plans again for another budget. Memory that the new plan does not need goes back to the system before this returns; resident weights
  /// that both plans hold at the same addresses are kept, others are read by the next run. Inputs must be set again; `plan()` refers to
  /// the new plan. After an error (those of `create`) all is as before. Costs the planner's time, no reading. kInvalidArgument in a shared
  /// arena, which has a budget of its own to set.
  virtual Status set_budget(Bytes budget) = 0;

  virtual const executor::RunStats& stats() const noexcept = 0;
  virtual const plan::Plan& plan() const noexcept = 0;
  /// By step of the plan, of the last run; empty without SessionOptions::time_steps.
  virtual std::span<const executor::StepTime> step_times() const noexcept = 0;
  /// By load of the plan, likewise.
  virtual std::span<const executor::LoadTime> load_times() const noexcept = 0;
  virtual MemoryReport memory() const noexcept = 0;
};

/// The budget arithmetic alone: what `sluice plan` prints. Makes no arena, starts no thread.
struct PlannedBudget {
  plan::Plan plan;
  Bytes overhead;        // budget less arena capacity
  Bytes minimum_budget;  // the smallest budget that works, in the scope of the options
};
Result<PlannedBudget> plan_session(const Model& model, const SessionOptions& options);
/// Only the smallest budget that works in the scope of the options, independent of options.budget.
Result<Bytes> minimum_budget(const Model& model, const SessionOptions& options);
/// How good the partition of a plan of these options is.
Result<planner::PartitionReport> report_partition(const Model& model, const SessionOptions& options, const plan::Plan& plan);

}  // namespace sluice
