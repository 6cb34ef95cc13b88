// What `sluice serve CONFIG.json` reads: Band's benchmark configuration, whose keys mean what they mean there, and a few of ours.
//
//     text --parse_config--> ServeConfig --serve.cc--> a Scheduler and a workload
//
// A key that is not known, or whose value is not of its kind, is refused by its path (`CONFIG.json: models[2].period_ms`), with what is
// allowed. A key of Band's that changes nothing here is still checked, and listed in `without_effect`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/scheduler/scheduler.h"

namespace sluice::cli {

struct ServedModel {
  std::string graph;  // .sluice, or .onnx
  std::string key;    // of an encrypted model: FILE, fd:N or env:NAME
  double period_ms = 0;
  int batch_size = 1;
  std::optional<std::size_t> processor;  // of its worker_id
  double slo_us = 0;                     // 0: none
  double slo_scale = 0;                  // 0: none; else of the longest expected time on any processor
  int priority = 0;
  bool urgent = false;
  bool same_bits = false;
  int app = 0;
};

/// One request of a recorded workload.
struct RecordedRequest {
  double at_ms = 0;
  std::size_t model = 0;
};

enum class ServeMode { kPeriodic, kStream, kWorkload };

struct ServeConfig {
  std::string path;  // of its file
  std::vector<ServedModel> models;
  ServeMode mode = ServeMode::kPeriodic;
  std::string policy;
  std::vector<scheduler::ProcessorOptions> processors;
  double running_time_ms = 60'000;
  double smoothing = 0.1;
  int warmup_runs = 1, profile_runs = 3;
  std::string log_path;  // empty: none
  std::vector<RecordedRequest> workload;
  std::vector<std::string> without_effect;          // keys
  std::vector<std::optional<std::size_t>> workers;  // by number in the file: its processor, where its device is here
  std::vector<std::string> not_here;                // devices that this machine, or this build, does not have
};

/// A file, or what a pipe brings, up to 64 MiB. Throws Failure.
std::string read_text(const std::string& path);

/// `path` is the configuration's file; relative paths in it are relative to the working directory, as Band's are. Throws Failure.
ServeConfig parse_config(const std::string& text, const std::string& path);

}  // namespace sluice::cli
