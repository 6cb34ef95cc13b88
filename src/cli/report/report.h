// `sluice report`: one page that shows a plan and a run of it.
//
//     sluice plan --save, plan --sweep, run --plan --trace     as children, so that each holds to its budget alone
//         --data.cc--> one JSON object --page.html--> FILE.html: no network, nothing beside it
//
// The page's script builds all it shows out of the object. Names come from model files: they are data in a JSON text whose `<` are escaped,
// and become text nodes, never markup.
#pragma once

#include <string>
#include <vector>

#include "sluice/engine/timeline.h"
#include "src/cli/commands.h"
#include "src/cli/json.h"

namespace sluice::cli {

struct ReportOptions {
  BudgetOptions budget;
  std::vector<std::string> inputs;
  std::string output;
  bool repeat = false;  // a plan for repeated runs, and one of those
  bool no_run = false;  // the plan alone
};
void report(const ReportOptions& options);

namespace report_detail {

/// What the children said. `run` and `trace` are null where there was no run.
struct Material {
  Json plan, sweep, run, trace;
};

/// All that the page shows; its keys are explained where the page reads them.
Json data_of(const Model& model, const plan::Plan& plan, const ExpectedTimes& expected, const Material& material);

/// The page with this title and data.
std::string page_of(const std::string& title, const Json& data);

}  // namespace report_detail
}  // namespace sluice::cli
