// `sluice trim`: lists the parts of the runtime that models need, for a build with -DSLUICE_TRIM (docs/small-binaries.md).
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "sluice/engine/engine.h"
#include "sluice/kernels/kernel_ids.h"
#include "sluice/kernels/left_out.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/body.h"
#include "sluice/model/features.h"
#include "sluice/operators/plain_family.h"
#include "sluice/plan/needs.h"
#include "sluice/plan/plan_file.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/text.h"
#include "src/cli/visible.h"

namespace sluice::cli {
namespace {

using operators::PlainOperator;

/// By the numbers that model files and plans store.
struct Needs {
  std::map<int, std::string_view> operators;
  std::map<int, std::string_view> kernels;
  std::map<std::string_view, std::set<std::string_view>> families;  // and the operators for which they are needed
  model::Features features = 0;                                     // of files
  bool open_extents = false;
  plan::Needs plans = 0;
  std::set<std::int64_t> windows, pools, element_bytes, functions;  // as cmake/SluiceTrim.cmake has them
};

void need_generic(const PlainOperator& op, Needs& needs) { needs.families[operators::family_of(op)].insert(op.name); }

/// Fused ones, and those of nodes of their own; -1: any, where a kernel takes them by other attributes.
void need_functions(const model::Node& node, Needs& needs) {
  needs.functions.insert(static_cast<int>(node.epilogue.activation.function));
  if (node.op == model::OpKind::kRecurrent || std::holds_alternative<model::PlainAttributes>(node.attributes)) needs.functions.insert(-1);
}

std::vector<std::string_view> names_of(model::Features features) {
  std::vector<std::string_view> names;
  for (int i = 0; i < model::kFeatureCount; ++i)
    if (const auto feature = static_cast<model::Feature>(i); (features & model::bit_of(feature)) != 0)
      names.push_back(model::name_of(feature));
  return names;
}

std::vector<std::string_view> names_of_plans(plan::Needs needs) {
  std::vector<std::string_view> names;
  for (int i = 0; i < plan::kNeedCount; ++i)
    if (const auto need = static_cast<plan::Need>(i); (needs & plan::bit_of(need)) != 0) names.push_back(plan::name_of(need));
  return names;
}

/// The kernels are those that planners take (planner/order/select_kernels.h): of each node the first.
void need(const model::Graph& graph, Needs& needs) {
  needs.features |= model::features_of(graph);
  for (const model::Tensor& tensor : graph.tensors) needs.element_bytes.insert(static_cast<std::int64_t>(size_of(tensor.dtype)));
  for (const model::Node& node : graph.nodes) {
    const std::vector<const kernels::KernelDescriptor*> candidates = kernels::kernels_for(graph, node);
    if (candidates.empty()) raise(kernels::no_kernel_for(graph, node));
    const kernels::KernelDescriptor& kernel = *candidates.front();
    needs.operators.emplace(static_cast<int>(node.op), model::name_of(node.op));
    needs.kernels.emplace(static_cast<int>(kernel.id), kernel.name);
    // A full build plans these with the tiles of that one, in another workspace than one without it would.
    if (kernel.id == kernels::kernel_id::kConvTransposed)
      needs.kernels.emplace(static_cast<int>(kernels::kernel_id::kConvGroupedLanes),
                            kernels::find_kernel(kernels::kernel_id::kConvGroupedLanes)->name);
    need_functions(node, needs);
    const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
    if (conv != nullptr && conv->depthwise()) needs.windows.insert(conv->window.kernel_w * 10 + conv->window.stride_w);
    const auto* pool = std::get_if<model::PoolAttributes>(&node.attributes);
    if (pool != nullptr && pool->window.out_w * pool->window.out_h > 1) needs.pools.insert(pool->window.kernel_w);
    if (const auto* generic = std::get_if<model::PlainAttributes>(&node.attributes))
      need_generic(*operators::find_plain(generic->op), needs);
  }
  const std::vector<const model::Node*> runners = model::runners_of(graph);
  for (std::size_t s = 0; s < runners.size(); ++s)
    if (runners[s] != nullptr) need(model::body_of(graph, *runners[s], s).graph, needs);
}

std::string list_of(const char* name, const std::map<int, std::string_view>& numbers) {
  std::string text = fmt::format("set({}\n", name);
  for (const auto& [number, what] : numbers) text += fmt::format("  {:<4} # {}\n", number, what);
  return text + ")\n";
}

std::string text_of(const TrimOptions& options, const Needs& needs) {
  std::string text = "# What these models need of Sluice, by `sluice trim`: cmake -DSLUICE_TRIM=FILE builds it and nothing else.\n";
  for (const std::string& model : options.models) text += "#   " + visible(model) + "\n";
  text += list_of("SLUICE_TRIM_OPERATORS", needs.operators) + list_of("SLUICE_TRIM_KERNELS", needs.kernels);
  text += "set(SLUICE_TRIM_FAMILIES\n";
  for (const auto& [family, lines] : needs.families) text += fmt::format("  {:<10} # {}\n", family, fmt::join(lines, ", "));
  text += ")\n";
  text += fmt::format("set(SLUICE_TRIM_FEATURES {}) # {}\n", needs.features,
                      needs.features == 0 ? "none" : fmt::format("{}", fmt::join(names_of(needs.features), ", ")));
  text += fmt::format("set(SLUICE_TRIM_WINDOWS 0 {}) # of depthwise convolutions: 10 x taps of a row + stride\n",
                      fmt::join(needs.windows, " "));
  text += fmt::format("set(SLUICE_TRIM_POOLS 0 {}) # of more than one output: taps of a row\n", fmt::join(needs.pools, " "));
  text += fmt::format("set(SLUICE_TRIM_ELEMENT_BYTES 0 {})\n", fmt::join(needs.element_bytes, " "));
  text += fmt::format("set(SLUICE_TRIM_FUNCTIONS {}) # of one value, by their numbers; -1: all\n", fmt::join(needs.functions, " "));
  text += fmt::format("set(SLUICE_TRIM_OPEN_EXTENTS {})\n", needs.open_extents);
  if (!options.plans.empty())
    text += fmt::format("set(SLUICE_TRIM_PLANS {}) # {}\n", needs.plans,
                        needs.plans == 0 ? "no more than all need" : fmt::format("{}", fmt::join(names_of_plans(needs.plans), ", ")));
  if (!options.isa.empty()) text += fmt::format("set(SLUICE_TRIM_ISA {})\n", options.isa);
  return text;
}

Json names_of(const std::map<int, std::string_view>& numbers) {
  Json list = Json::array();
  for (const auto& [number, what] : numbers) list.push_back({{"number", number}, {"name", what}});
  return list;
}

void print_needs(const TrimOptions& options, const Needs& needs) {
  if (options.json) {
    Json families = Json::array();
    for (const auto& [family, lines] : needs.families) families.push_back({{"name", family}, {"operators", lines}});
    return print_json("sluice trim", {{"models", options.models},
                                      {"output", options.output},
                                      {"isa", options.isa.empty() ? Json() : Json(options.isa)},
                                      {"operators", names_of(needs.operators)},
                                      {"kernels", names_of(needs.kernels)},
                                      {"families", families},
                                      {"features", names_of(needs.features)},
                                      {"windows", needs.windows},
                                      {"pools", needs.pools},
                                      {"element_bytes", needs.element_bytes},
                                      {"functions", needs.functions},
                                      {"open_extents", needs.open_extents},
                                      {"plans", options.plans.empty() ? Json() : Json(names_of_plans(needs.plans))}});
  }
  const auto names = [](const std::map<int, std::string_view>& numbers) {
    std::vector<std::string_view> list;
    for (const auto& [number, what] : numbers) list.push_back(what);
    return fmt::format("{}", fmt::join(list, ", "));
  };
  std::vector<std::string_view> families;
  for (const auto& [family, lines] : needs.families) families.push_back(family);
  fmt::print("{}: what {} model{} need{}\n", options.output, options.models.size(), options.models.size() == 1 ? "" : "s",
             options.models.size() == 1 ? "s" : "");
  fmt::print("  {:>3} operators: {}\n", needs.operators.size(), names(needs.operators));
  fmt::print("  {:>3} kernels:   {}\n", needs.kernels.size(), names(needs.kernels));
  fmt::print("  {:>3} families of the long tail{}{}\n", families.size(), families.empty() ? "" : ": ", fmt::join(families, ", "));
  const std::vector<std::string_view> features = names_of(needs.features);
  if (needs.open_extents) fmt::print("      extents that are chosen when a model is opened\n");
  fmt::print("  {:>3} features of files{}{}\n", features.size(), features.empty() ? "" : ": ", fmt::join(features, ", "));
  const std::vector<std::string_view> plans = names_of_plans(needs.plans);
  if (!options.plans.empty())
    fmt::print("  {:>3} parts of plans that others have{}{}\n", plans.size(), plans.empty() ? "" : ": ", fmt::join(plans, ", "));
}

}  // namespace

void trim(const TrimOptions& options) {
  Needs needs;
  std::set<std::uint64_t> hashes;
  for (const std::string& path : options.models) {
    refuse_replacing(options.output, path, "the list would replace a model that it is made from");
    const std::shared_ptr<const Model> model = open_model(path, {}, options.key);
    // A file without weights is encrypted all the same.
    if (model->file().key() != nullptr) needs.features |= model::bit_of(model::Feature::kEncryption);
    needs.open_extents = needs.open_extents || !model->file().dimensions().empty();
    hashes.insert(model->file().hash());
    visit_graphs(*model, [&](const model::Graph& graph) { need(graph, needs); });
  }
  for (const std::string& path : options.plans) {
    refuse_replacing(options.output, path, "the list would replace a plan that it is made from");
    const plan::Plan plan = unwrap(plan::load_plan(path));
    // Extents that are chosen when a model is opened have plans of their own.
    if (!hashes.contains(plan.model_hash) && !needs.open_extents)
      raise(make_error(ErrorCode::kInvalidPlan, path, "the plan is of none of the models"));
    needs.plans |= plan::needs_of(plan);
  }
  const std::string text = text_of(options, needs);
  write_atomically(options.output, std::as_bytes(std::span(text)));
  print_needs(options, needs);
}

}  // namespace sluice::cli
