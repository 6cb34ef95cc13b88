// The subcommands: the options of each, and its function. They print their result on stdout and throw Failure.
//
//     argv --main.cc--> options --inspect.cc, verify.cc, trim.cc, profile.cc, plan.cc, run.cc--> stdout, exit status
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/core/units.h"
#include "sluice/kernels/turns.h"
#include "sluice/profiler/measure.h"
#include "src/cli/image.h"

namespace sluice::cli {

struct InspectOptions {
  std::string model;
  std::string key;  // where the key of an encrypted model is, here and below: FILE, fd:N or env:NAME; empty: no key
  std::vector<std::string> dims;
  bool json = false;     // with every node
  bool nodes = false;    // a line for every node
  bool weights = false;  // a line for every weight
  bool dot = false;      // the graph for Graphviz
};
void inspect(const InspectOptions& options);

struct VerifyOptions {
  std::string model;
  std::string key;
};
void verify(const VerifyOptions& options);

struct TrimOptions {
  std::vector<std::string> models;
  std::vector<std::string> plans;  // empty: any that there may be
  std::string key;
  std::string output;
  std::string isa;  // empty: all that the compiler has
  bool json = false;
};
void trim(const TrimOptions& options);

struct ProfileOptions {
  std::vector<int> threads = {1};
  std::vector<std::string> types = {"f32"};  // of nets (profiler/net_type.h)
  std::string output;                        // empty: where plan and run look
  std::string file;                          // empty: a temporary one beside the output
  std::vector<std::string> models;           // whose own layers are measured too
  std::string key;
  std::string io_limit;
  std::string transfer;  // a profile of another device; empty: all is measured
  int most = 600;
  double seconds = profiler::MeasureOptions().seconds;
  bool check = false;  // an existing profile, instead
  bool json = false;
  friend bool operator==(const ProfileOptions&, const ProfileOptions&) = default;
};
void profile(const ProfileOptions& options);

/// What `plan` and `run` share.
struct BudgetOptions {
  std::string model;
  std::string key;
  std::vector<std::string> dims;
  std::string budget = "unlimited";
  std::string scope = "process";
  std::string reserve = "0";
  std::string policy = "sluice";
  std::optional<int> threads;  // 1, or those of the plan given
  std::string profile;         // a file, or `none`; empty: the one that `profile` wrote, if it did
  std::string io_limit;
  double compute_slowdown = 1;
  std::string partition = "auto";
  std::string max_overhead = "5%";
  std::string spill;         // the directory of a scratch file; empty: nothing is spilled
  bool output_rows = false;  // outputs are taken as they are made
};

struct PlanOptions {
  BudgetOptions budget;
  bool repeat = false;
  bool table = false;
  bool sweep = false;
  bool explain = false;
  std::string search = "50ms";
  bool json = false;
  std::string save;
  std::string svg;
};
void plan(const PlanOptions& options);

struct RunOptions {
  BudgetOptions budget;
  std::vector<std::string> inputs;
  ImageOptions image;
  std::vector<std::string> expected;
  double tolerance = 1e-4;
  int repeat = 1;
  int warmup = 0;
  std::int64_t max_turns = kernels::kDefaultMaxTurns;
  int top = 0;
  std::string labels;
  std::string output_directory;
  std::string reader = "auto";
  std::string read_size;    // empty: the profile says
  int reads_in_flight = 0;  // 0: the profile says
  double read_timeout_s = 30;
  std::string plan;
  std::string compute_cpus;
  std::string load_cpu;
  bool stats = false;
  std::string trace;
  bool sandbox = false;
  bool json = false;
};
void run(const RunOptions& options);

/// Replaces this process by a program in the same folder, such as `sluice-convert`, with the same arguments and exit status. Returns only
/// by Failure.
[[noreturn]] void start_tool(const char* name, char** arguments);
struct PredictOptions {
  BudgetOptions budget;              // its model may be an ONNX file
  std::vector<std::string> compare;  // two models, in place of one
  std::vector<std::string> budgets;  // a curve
  std::string numerics = "fast";     // of an ONNX file, as `convert` has them
  std::string weights;
  bool cold = false;
  bool json = false;
};
void predict(const PredictOptions& options);

}  // namespace sluice::cli
