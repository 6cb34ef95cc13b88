#include "src/cli/serve/serve.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "sluice/engine/engine.h"
#include "src/cli/converted.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/inputs.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/profile_file.h"
#include "src/cli/serve/job_log.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

using scheduler::JobResult;
using scheduler::kMillisecond;
using scheduler::ModelId;
using scheduler::ProcessorId;
using scheduler::Scheduler;
using serve_detail::JobLog;
using serve_detail::Served;
using serve_detail::ServeReport;

// Live jobs beyond this are refused: an overload shows, and memory is bounded.
constexpr std::size_t kMostLive = 64;
// Jobs of a model whose outputs are kept for comparison at one time; others are not copied out.
constexpr std::size_t kChecked = 2;

/// The tensors of one model's requests: the same inputs for all, and room for some outputs.
struct ModelTensors {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::span<const std::byte>> views;
  struct Room {
    std::vector<std::vector<std::byte>> outputs;
    std::vector<std::span<std::byte>> views;
  };
  std::deque<Room> rooms;
  std::vector<Room*> free;
  std::vector<std::span<std::byte>> no_room;
};

ModelTensors make_tensors(const model::Graph& graph, std::size_t seed) {
  ModelTensors tensors;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const HostTensor values = random_tensor(graph.dtype_of(graph.inputs[i]), graph.inputs[i].onnx_shape, seed + i);
    const auto bytes = std::as_bytes(std::span(values.data));
    tensors.inputs.emplace_back(bytes.begin(), bytes.end());
  }
  for (const auto& input : tensors.inputs) tensors.views.emplace_back(input);
  tensors.no_room.resize(graph.outputs.size());
  return tensors;
}

void add_room(ModelTensors& tensors, const model::Graph& graph) {
  ModelTensors::Room& room = tensors.rooms.emplace_back();
  for (const model::Port& port : graph.outputs) room.outputs.emplace_back(static_cast<std::size_t>(graph.bytes_of(port).count()));
  for (auto& output : room.outputs) room.views.emplace_back(output);
  tensors.free.push_back(&room);
}

class Serving {
 public:
  explicit Serving(const ServeOptions& options) : options_(options) {}

  ServeReport run() {
    report_.config = parse_config(read_text(options_.config), options_.config);
    if (!options_.policy.empty()) report_.config.policy = options_.policy;
    say_what_is_not_done();
    report_.served = serve_detail::Tally(report_.config.models.size());
    log_.emplace(report_.config.log_path);
    open_models();
    start();
    serve();
    return finish();
  }

 private:
  void say_what_is_not_done() const {
    const ServeConfig& config = report_.config;
    for (const std::string& device : config.not_here)
      fmt::print(stderr, "sluice: workers: no {} is here; its work goes to the other workers\n", device);
    if (!config.without_effect.empty())
      fmt::print(stderr, "sluice: {}: read, and without effect here (docs/scheduling.md)\n", fmt::join(config.without_effect, ", "));
  }

  void open_models() {
    for (const ServedModel& model : report_.config.models) {
      const bool onnx = is_onnx(model.graph);
      models_.push_back(open_model(onnx ? converted_.emplace_back(model.graph).path() : model.graph, {}, model.key));
      tensors_.push_back(make_tensors(models_.back()->graph(), 1));
    }
  }

  void start() {
    const ServeConfig& config = report_.config;
    const SessionOptions budget =
        session_options({.model = {}, .budget = options_.budget, .scope = options_.scope, .reserve = options_.reserve});
    scheduler::SchedulerOptions options;
    options.budget = report_.budget = budget.budget;
    options.scope = budget.scope;
    options.reserve = budget.reserve + bytes_of_requests();
    options.processors = config.processors;
    options.policy = config.policy;
    options.limits.jobs = kMostLive;
    options.warmup_runs = config.warmup_runs;
    options.profile_runs = config.profile_runs;
    options.smoothing = config.smoothing;
    options.trace_runs = options_.trace.empty() ? 0 : 200'000;
    const FoundProfile profile = find_profile(options_.profile, threads_of_kernels());
    options.profile = profile.get();
    scheduler_ = unwrap(Scheduler::create(options));
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const ServedModel& served = config.models[m];
      scheduler::ModelOptions model;
      model.name = served.graph;
      model.urgent = served.urgent;
      model.same_bits = served.same_bits;
      model.runs_per_second = requests_per_second(m);
      model.reference_inputs = tensors_[m].inputs;
      if (served.processor) model.fixed = ProcessorId(*served.processor);
      unwrap(scheduler_->add_model(models_[m], model));
    }
    unwrap(scheduler_->start());
    report_.fallbacks = scheduler_->fallbacks();
    const scheduler::SchedulerStatistics ready = scheduler_->statistics();
    for (const scheduler::Fallback& fallback : report_.fallbacks)
      fmt::print(stderr, "sluice: {}: unit {} goes to other processors than {}: {}\n", report_.config.models[fallback.model.index()].graph,
                 fallback.unit, ready.processors[fallback.processor.index()].name, fallback.why.to_string());
    for (std::size_t m = 0; m < models_.size(); ++m) {
      needs_room_.push_back(scheduler_->units(ModelId(m)).size() > 1);
      for (std::size_t i = 0; i < (needs_room_[m] ? kMostLive : kChecked); ++i) add_room(tensors_[m], models_[m]->graph());
    }
  }

  /// Taken from the first worker with our kernels: a device profile is for one number of threads.
  int threads_of_kernels() const {
    for (const scheduler::ProcessorOptions& processor : report_.config.processors)
      if (processor.kind == scheduler::ProcessorOptions::Kind::kCpu) return processor.threads;
    return 1;
  }

  /// As far as the configuration states it: frames of a stream come as fast as they are served, so all models come equally often.
  double requests_per_second(std::size_t m) const {
    const ServeConfig& config = report_.config;
    if (config.mode == ServeMode::kPeriodic) return config.models[m].batch_size * 1e3 / std::max(config.models[m].period_ms, 1e-3);
    if (config.mode == ServeMode::kStream) return config.models[m].batch_size;
    const auto requests =
        std::count_if(config.workload.begin(), config.workload.end(), [&](const RecordedRequest& r) { return r.model == m; });
    return static_cast<double>(requests) * config.models[m].batch_size * 1e3 / std::max(config.running_time_ms, 1.0);
  }

  /// The memory that this program holds for requests while they are served.
  Bytes bytes_of_requests() const {
    const auto& processors = report_.config.processors;
    const bool in_units = std::any_of(processors.begin(), processors.end(), [](const auto& p) { return p.backend != nullptr; });
    const std::size_t rooms = in_units ? kMostLive : kChecked;
    Bytes sum(2 << 20);  // counts, percentiles, the log's buffer
    for (std::size_t m = 0; m < models_.size(); ++m)
      for (const model::Port& port : models_[m]->graph().outputs) sum += rooms * models_[m]->graph().bytes_of(port);
    return sum;
  }

  scheduler::Time deadline_of(std::size_t m) const {
    const ServedModel& model = report_.config.models[m];
    if (model.slo_us > 0) return std::max<scheduler::Time>(static_cast<scheduler::Time>(model.slo_us * 1e3), 1);
    if (model.slo_scale <= 0) return scheduler::kNever;
    scheduler::Time longest = 0;
    for (std::size_t p = 0; p < report_.config.processors.size(); ++p) {
      const scheduler::Time time = scheduler_->expected_time(ModelId(m), ProcessorId(p));
      if (time < scheduler::kNever) longest = std::max(longest, time);
    }
    return std::max<scheduler::Time>(static_cast<scheduler::Time>(static_cast<double>(longest) * model.slo_scale), 1);
  }

  /// A request that is being served, and the memory for its outputs.
  struct Request {
    Serving* serving = nullptr;
    std::size_t model = 0;
    ModelTensors::Room* room = nullptr;
  };

  void submit(std::size_t m) {
    Request* request = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (free_.empty()) {
        requests_.emplace_back();
        free_.push_back(&requests_.back());
      }
      request = free_.back();
      free_.pop_back();
      *request = {this, m, nullptr};
      if (!tensors_[m].free.empty()) {
        request->room = tensors_[m].free.back();
        tensors_[m].free.pop_back();
      }
    }
    scheduler::JobOptions options;
    options.deadline = deadlines_[m];
    options.priority = report_.config.models[m].priority;
    options.app = static_cast<std::uint32_t>(report_.config.models[m].app);
    options.done = [](void* context, const JobResult& result) noexcept {
      Request& done = *static_cast<Request*>(context);
      done.serving->ended(done, result);
    };
    options.context = request;
    if (needs_room_[m] && request->room == nullptr) {  // the outputs of so many jobs are on their way already
      ++turned_away_;
      return give_back(*request);
    }
    const scheduler::JobTensors tensors{tensors_[m].views, request->room == nullptr ? tensors_[m].no_room : request->room->views};
    if (!scheduler_->submit(ModelId(m), tensors, options)) give_back(*request);  // refused: the scheduler counts it
  }

  void ended(Request& request, const JobResult& result) noexcept {
    const bool done = result.outcome == scheduler::Outcome::kMet || result.outcome == scheduler::Outcome::kLate;
    Served served{result, done && request.room != nullptr, false};
    const auto expected = scheduler_->reference_outputs(ModelId(request.model));
    for (std::size_t i = 0; served.checked && i < expected.size(); ++i)
      served.wrong = served.wrong || std::memcmp(expected[i].data(), request.room->outputs[i].data(), expected[i].size()) != 0;
    {
      const std::lock_guard lock(mutex_);
      report_.served.add(served);
      log_->add(report_.config.models[request.model].graph, result);
    }
    give_back(request);
  }

  void give_back(Request& request) noexcept {
    const std::lock_guard lock(mutex_);
    if (request.room != nullptr) tensors_[request.model].free.push_back(request.room);
    free_.push_back(&request);
  }

  void serve() {
    for (std::size_t m = 0; m < models_.size(); ++m) deadlines_.push_back(deadline_of(m));
    switch (report_.config.mode) {
      case ServeMode::kPeriodic:
        serve_periodic();
        break;
      case ServeMode::kStream:
        serve_stream();
        break;
      case ServeMode::kWorkload:
        for (const RecordedRequest& request : report_.config.workload) {
          if (request.at_ms > report_.config.running_time_ms) break;
          wait_until(request.at_ms);
          submit_frame(request.model);
        }
        break;
    }
    scheduler_->drain();
  }

  void submit_frame(std::size_t m) {
    for (int i = 0; i < report_.config.models[m].batch_size; ++i) submit(m);
  }

  void serve_periodic() {
    std::vector<double> next(models_.size(), 0);
    while (true) {
      const auto first = std::min_element(next.begin(), next.end());
      if (*first >= report_.config.running_time_ms) return;
      const auto m = static_cast<std::size_t>(first - next.begin());
      wait_until(*first);
      submit_frame(m);
      *first += report_.config.models[m].period_ms;
    }
  }

  void serve_stream() {
    while (elapsed_ms() < report_.config.running_time_ms) {
      for (std::size_t m = 0; m < models_.size(); ++m) submit_frame(m);
      scheduler_->drain();
      progress();
    }
  }

  double elapsed_ms() const { return static_cast<double>(scheduler_->now()) / 1e6; }

  void wait_until(double at_ms) {
    progress();
    const double left = at_ms - elapsed_ms();
    if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(left));
  }

  void progress() {
    progress_.update(static_cast<std::uint64_t>(elapsed_ms()), [&] { return fmt::format("{:.0f} s", elapsed_ms() / 1e3); });
  }

  ServeReport finish() {
    report_.elapsed_ms = elapsed_ms();
    report_.statistics = scheduler_->statistics();
    report_.statistics.jobs.submitted += turned_away_;
    report_.statistics.jobs.refused += turned_away_;
    report_.events = scheduler_->trace();
    for (std::size_t m = 0; m < models_.size(); ++m) {
      auto& row = report_.expected.emplace_back();
      for (std::size_t p = 0; p < report_.config.processors.size(); ++p)
        row.push_back(scheduler_->expected_time(ModelId(m), ProcessorId(p)));
    }
    report_.predicts = scheduler::find_policy(report_.config.policy) == scheduler::find_policy("sluice");
    scheduler_.reset();  // all have been told
    log_->finish();
    report_.peak_rss_bytes = peak_rss_bytes();
    return std::move(report_);
  }

  const ServeOptions& options_;
  ServeReport report_;
  std::deque<ConvertedModel> converted_;  // files that models are read from until the end
  std::vector<std::shared_ptr<const Model>> models_;
  std::deque<ModelTensors> tensors_;  // views name what lies here: nothing is moved
  std::vector<bool> needs_room_;      // by model: whether it runs in units, which write all outputs
  std::uint64_t turned_away_ = 0;     // requests for which there was no such room
  std::vector<scheduler::Time> deadlines_;
  std::mutex mutex_;  // guards what requests share with the scheduler's thread
  std::deque<Request> requests_;
  std::vector<Request*> free_;
  std::optional<JobLog> log_;
  Progress progress_{"serve", 0};
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace

void serve(const ServeOptions& options) {
  const ServeReport report = Serving(options).run();
  if (!options.trace.empty()) {
    const std::string trace = serve_detail::trace_of(report);
    write_atomically(options.trace, std::as_bytes(std::span(trace)));
  }
  serve_detail::print(report, options.json);
}

}  // namespace sluice::cli
