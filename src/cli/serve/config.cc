#include "src/cli/serve/config.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <set>

#include "sluice/core/affinity.h"
#include "sluice/core/file.h"
#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/serve/backends.h"
#include "src/cli/text.h"
#include "src/cli/words.h"

namespace sluice::cli {
namespace {

using scheduler::ProcessorOptions;

constexpr double kMostMs = 86'400'000;
constexpr Bytes kMostText{64 << 20};  // a million recorded requests and more
// Each is counted, refused ones too: what is asked for beyond this would be counted long after the time to serve is over.
constexpr double kMostRequests = 10'000'000;

/// One object of a file. The code that reads a key asks for it; keys that were not asked for in the end are unknown.
class Section {
 public:
  /// `where`: "FILE: " or "FILE: models[0].", which precedes a key in messages.
  Section(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object())
      throw Failure(ErrorCode::kInvalidArgument,
                    fmt::format("{}: is an object of keys and values", where_.substr(0, where_.find_last_not_of(".: ") + 1)));
  }

  std::string path(const std::string& key) const { return where_ + key; }
  [[noreturn]] void refuse(const std::string& key, const std::string& allowed) const {
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path(key), allowed));
  }

  const Json* find(const std::string& key) {
    asked_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  double number(const std::string& key, double otherwise, double least, double most) {
    const Json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
      refuse(key, fmt::format("is a number from {} to {}", least, most));
    return value->get<double>();
  }
  int integer(const std::string& key, int otherwise, int least, int most) {
    const double value = number(key, otherwise, least, most);
    if (value != std::floor(value)) refuse(key, fmt::format("is a whole number from {} to {}", least, most));
    return static_cast<int>(value);
  }
  bool flag(const std::string& key, bool otherwise) {
    const Json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(key, "is true or false");
    return value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& otherwise) {
    const Json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string() || value->get_ref<const std::string&>().find('\0') != std::string::npos)
      refuse(key, "is a text without zero bytes");
    return value->get<std::string>();
  }
  std::string word(const std::string& key, const std::string& otherwise, const std::vector<std::string>& allowed) {
    const std::string value = text(key, otherwise);
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      refuse(key, fmt::format("'{}' is none of {}{}", value, fmt::join(allowed, ", "), suggestion(value, allowed)));
    return value;
  }

  /// No key is passed over in silence.
  void finish() const {
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    for (const auto& [key, value] : json_.items())
      if (!asked_.contains(key))
        refuse(key, fmt::format("is not a key of this object (they are {}){}", fmt::join(known, ", "), suggestion(key, known)));
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> asked_;
};

const std::vector<std::string> kMasks = {"ALL", "LITTLE", "BIG", "PRIMARY"};

/// Processors of a cluster; empty: all.
std::vector<int> cpus_of_mask(const std::string& mask) {
  const CpuKinds kinds = read_cpu_kinds();
  if (mask == "BIG") return kinds.small.empty() ? std::vector<int>() : kinds.big;
  if (mask == "LITTLE") return kinds.small;
  if (mask == "PRIMARY" && !kinds.big.empty()) return {kinds.big.back()};
  return {};
}

std::vector<int> numbers_of(Section& section, const std::string& key) {
  std::vector<int> numbers;
  const Json* const list = section.find(key);
  if (list == nullptr) return numbers;
  const bool sound = list->is_array() && std::all_of(list->begin(), list->end(), [](const Json& item) {
                       return item.is_number_integer() && item.get<std::int64_t>() >= 0 && item.get<std::int64_t>() < 4096;
                     });
  if (!sound) section.refuse(key, "is a list of processor numbers, such as [0, 1]");
  for (const Json& item : *list) numbers.push_back(item.get<int>());
  return numbers;
}

ServedModel parse_model(const Json& json, std::size_t number, const ServeConfig& config) {
  Section section(json, fmt::format("{}: models[{}].", config.path, number));
  ServedModel model;
  model.graph = section.text("graph", "");
  if (model.graph.empty()) section.refuse("graph", "names a model file (.sluice) or an ONNX file (.onnx)");
  model.period_ms = section.number("period_ms", 0, 0.001, kMostMs);
  if (config.mode == ServeMode::kPeriodic && model.period_ms == 0)
    section.refuse("period_ms", "is wanted where execution_mode is periodic");
  model.batch_size = section.integer("batch_size", 1, 1, 1000);
  const int worker = section.integer("worker_id", -1, -1, static_cast<int>(config.workers.size()) - 1);  // -1: any
  if (worker >= 0) model.processor = config.workers[static_cast<std::size_t>(worker)];
  if (worker >= 0 && !model.processor) section.refuse("worker_id", fmt::format("worker {} is of a device that is not here", worker));
  model.key = section.text("key", "");
  model.slo_us = std::max(0.0, section.number("slo_us", 0, -1, kMostMs * 1000));
  model.slo_scale = std::max(0.0, section.number("slo_scale", 0, -1, 1e6));
  section.text("device", "");
  model.priority = section.integer("priority", 0, -1000, 1000);
  model.urgent = section.flag("urgent", false);
  model.same_bits = section.flag("same_bits", false);
  model.app = section.integer("app", 0, 0, static_cast<int>(scheduler::kMostApps) - 1);
  section.finish();
  return model;
}

void parse_worker(const Json& json, std::size_t number, const std::string& mask, int threads, ServeConfig& config) {
  Section section(json, fmt::format("{}: workers[{}].", config.path, number));
  const std::string device = section.word("device", "CPU", {"CPU", "GPU", "DSP", "NPU", "XNNPACK", "OPENCL", "TIMED"});
  ProcessorOptions processor;
  processor.name = section.text("name", "");
  processor.cpus = numbers_of(section, "cpus");
  const std::string own_mask = section.word("cpu_masks", mask, kMasks);
  if (processor.cpus.empty()) processor.cpus = cpus_of_mask(own_mask);
  processor.threads = std::max(1, section.integer("num_threads", threads, -1, 256));
  processor.compute_slowdown = section.number("compute_slowdown", 1, 1, 1000);
  processor.speedup = section.number("speedup", 1, 0.001, 1e6);
  section.finish();
  for (const BackendKind& kind : backend_kinds()) {
    if (device != kind.device && !(device == "GPU" && kind.name == "opencl")) continue;
    BackendHere found = find_backend(kind);
    const bool wanted = found.backend && (device != "GPU" || found.backend->device().starts_with("GPU"));
    if (device == "GPU" && !wanted) continue;  // Band's word: other workers do its work
    if (!wanted) section.refuse("device", fmt::format("{}: {}", device, found.why_not));
    processor.kind = ProcessorOptions::Kind::kBackend;
    processor.backend = std::move(found.backend);
  }
  if (device == "TIMED") processor.kind = ProcessorOptions::Kind::kTimed;
  const bool here = (device != "GPU" || processor.backend) && device != "DSP" && device != "NPU";
  config.workers.push_back(here ? std::optional(config.processors.size()) : std::nullopt);
  if (here)
    config.processors.push_back(std::move(processor));
  else
    config.not_here.push_back(device);
}

// What a parsed text may hold, so that a file of a few megabytes takes neither hundreds of them nor minutes: objects keep their keys in a
// list, which is searched for each that comes.
constexpr std::size_t kMostKeys = 200;       // of one object
constexpr std::size_t kMostValues = 50'000;  // of a configuration: thousands of models
constexpr std::size_t kMostWorkloadValues = 4'000'000;
constexpr int kDeepest = 8;

Json parse_json(const std::string& text, const std::string& path, std::size_t most_values) {
  std::size_t values = 0;
  std::array<std::size_t, kDeepest + 2> keys{};
  const auto within_limits = [&](int depth, Json::parse_event_t event, Json&) {
    const auto inside = static_cast<std::size_t>(std::min(depth, kDeepest)) + 1;
    if (event == Json::parse_event_t::object_start) keys[inside] = 0;
    const std::size_t of_this_object = event == Json::parse_event_t::key ? ++keys[inside - 1] : 0;
    if (depth > kDeepest || of_this_object > kMostKeys || ++values > 2 * most_values)
      throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: holds more than is read: {} deep, {} keys of one object, {} values", path,
                                                             kDeepest, kMostKeys, most_values));
    return true;
  };
  Json json = Json::parse(text, within_limits, false);
  if (json.is_discarded()) throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: is not JSON", path));
  return json;
}

void parse_workload(const std::string& path, ServeConfig& config) {
  const Json json = parse_json(read_text(path), path, kMostWorkloadValues);
  if (!json.is_array()) throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: is a list of requests", path));
  for (std::size_t i = 0; i < json.size(); ++i) {
    Section section(json[i], fmt::format("{}: [{}].", path, i));
    RecordedRequest request;
    request.at_ms = section.number("at_ms", 0, 0, kMostMs);
    request.model = static_cast<std::size_t>(section.integer("model", 0, 0, static_cast<int>(config.models.size()) - 1));
    section.finish();
    config.workload.push_back(request);
  }
  std::stable_sort(config.workload.begin(), config.workload.end(),
                   [](const RecordedRequest& a, const RecordedRequest& b) { return a.at_ms < b.at_ms; });
}

/// A wish that no machine could serve is told before anything runs.
void check_requests(const ServeConfig& config, Section& section) {
  double requests = 0;
  if (config.mode == ServeMode::kPeriodic)
    for (const ServedModel& model : config.models) requests += std::ceil(config.running_time_ms / model.period_ms) * model.batch_size;
  for (const RecordedRequest& request : config.workload) requests += config.models[request.model].batch_size;
  if (requests > kMostRequests)
    section.refuse("models",
                   fmt::format("ask for {:.0f} requests in running_time_ms, and at most {:.0f} are made", requests, kMostRequests));
}

/// Keys of Band's that ask for something that is done in another way here.
void read_without_effect(Section& section, ServeConfig& config) {
  section.integer("minimum_subgraph_size", 7, 1, 1'000'000);
  section.word("subgraph_preparation_type", "merge_unit_subgraph",
               {"no_fallback_subgraph", "fallback_per_worker", "unit_subgraph", "merge_unit_subgraph"});
  section.word("planner_cpu_masks", "ALL", kMasks);
  section.text("profile_data_path", "");
  section.text("model_profile", "");
  section.integer("availability_check_interval_ms", 30'000, 0, 1'000'000'000);
  section.integer("schedule_window_size", 1, 1, 2'000'000'000);
  section.flag("allow_work_steal", false);
  for (const char* const key : {"minimum_subgraph_size", "subgraph_preparation_type", "planner_cpu_masks", "profile_data_path",
                                "model_profile", "availability_check_interval_ms", "schedule_window_size", "allow_work_steal"})
    if (section.find(key) != nullptr) config.without_effect.emplace_back(key);
  if (!section.flag("profile_online", true)) section.refuse("profile_online", "is true: models are measured when serving begins");
}

void read_workers(Section& section, ServeConfig& config) {
  const std::string mask = section.word("cpu_masks", "ALL", kMasks);
  const int threads = section.integer("num_threads", -1, -1, 256);
  const Json* const workers = section.find("workers");
  if (workers != nullptr && !workers->is_array()) section.refuse("workers", "is a list of workers");
  for (std::size_t i = 0; workers != nullptr && i < workers->size(); ++i) parse_worker((*workers)[i], i, mask, threads, config);
  constexpr std::size_t kMost = scheduler::Device::kMostProcessors;
  if (config.processors.size() > kMost) section.refuse("workers", fmt::format("are at most {} that are here", kMost));
  if (!config.processors.empty()) return;
  if (config.workers.empty()) config.workers.emplace_back(0);
  ProcessorOptions processor;
  processor.cpus = cpus_of_mask(mask);
  processor.threads = std::max(1, threads);
  config.processors.push_back(std::move(processor));
}

std::string read_policy(Section& section) {
  std::vector<std::string> allowed;
  for (const scheduler::Policy& policy : scheduler::policies()) {
    allowed.emplace_back(policy.alias);
    if (policy.alias != policy.name) allowed.emplace_back(policy.name);
  }
  const Json* const list = section.find("schedulers");
  if (list == nullptr) return "sluice";
  const bool sound = list->is_array() && list->size() == 1 && list->front().is_string() &&
                     scheduler::find_policy(list->front().get<std::string>()) != nullptr;
  if (!sound) section.refuse("schedulers", fmt::format("is a list of one of {}", fmt::join(allowed, ", ")));
  return list->front().get<std::string>();
}

}  // namespace

std::string read_text(const std::string& path) {
  // A pipe is read too (`serve <(make a configuration)`), but opening one that no program writes to does not wait.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 || ::fcntl(file.get(), F_SETFL, 0) != 0) raise(make_io_error(path, "the file cannot be read", errno));
  std::string text;
  for (std::array<char, 16384> piece;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) raise(make_io_error(path, "the file cannot be read", errno));
    if (got == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostText.count())  // an endless device file would exhaust memory
      throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: is longer than {}", path, format_bytes(kMostText)));
  }
  return text;
}

ServeConfig parse_config(const std::string& text, const std::string& path) {
  const Json json = parse_json(text, path, kMostValues);
  Section section(json, path + ": ");
  ServeConfig config;
  config.path = path;
  const std::string mode = section.word("execution_mode", "periodic", {"periodic", "stream", "workload"});
  config.mode = mode == "stream" ? ServeMode::kStream : mode == "workload" ? ServeMode::kWorkload : ServeMode::kPeriodic;
  config.policy = read_policy(section);
  read_workers(section, config);
  config.running_time_ms = section.number("running_time_ms", 60'000, 1, kMostMs);
  config.smoothing = section.number("profile_smoothing_factor", 0.1, 0.001, 1);
  config.warmup_runs = section.integer("profile_warmup_runs", 1, 0, 10'000);
  config.profile_runs = section.integer("profile_num_runs", 3, 1, 10'000);
  config.log_path = section.text("log_path", "");
  read_without_effect(section, config);
  const Json* const models = section.find("models");
  if (models == nullptr || !models->is_array() || models->empty()) section.refuse("models", "is a list of one model or more");
  for (std::size_t i = 0; i < models->size(); ++i) config.models.push_back(parse_model((*models)[i], i, config));
  const std::string workload = section.text("workload", "");
  if (config.mode == ServeMode::kWorkload && workload.empty()) section.refuse("workload", "is wanted where execution_mode is workload");
  if (config.mode == ServeMode::kWorkload) parse_workload(workload, config);
  section.finish();
  check_requests(config, section);
  return config;
}

}  // namespace sluice::cli
