// The words of `sluice serve` and `sluice processors`, for main.cc: serve.h has what they stand for.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct ServeOptions {
  std::string config;
  std::string budget = "unlimited";
  std::string scope = "process";
  std::string reserve = "0";
  std::string policy;   // empty: the configuration's
  std::string profile;  // of this device (profile_file.h)
  std::string trace;
  bool json = false;
};
void serve(const ServeOptions& options);

struct ProcessorsOptions {
  bool json = false;
};
void processors(const ProcessorsOptions& options);

/// `sluice plan --processors`.
struct PlanUnitsOptions {
  std::string model;
  std::vector<std::string> dims;
  std::string key;
  std::string processors;  // kinds, with commas
  bool json = false;
};
void plan_units(const PlanUnitsOptions& options);

}  // namespace sluice::cli
