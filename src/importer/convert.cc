#include <new>

#include "sluice/importer/importer.h"
#include "sluice/model/model_writer.h"
#include "sluice/operators/validate.h"
#include "src/core/out_of_memory.h"
#include "src/importer/allowance.h"
#include "src/importer/coding/weight_coder.h"
#include "src/importer/convert_graph.h"
#include "src/importer/dims.h"
#include "src/importer/emit.h"
#include "src/importer/lowering.h"
#include "src/importer/numerics.h"
#include "src/importer/onnx_graph.h"
#include "src/importer/rewrite/rewrite.h"
#include "src/importer/sparse_weights.h"
#include "src/importer/weight_pool.h"

namespace sluice::importer {
namespace {

// Names and messages come from an untrusted file and go to a terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

tl::unexpected<Error> fail_with(const std::string& path, ConvertReport& report) {
  for (Problem& problem : report.problems) {
    problem.node = printable(std::move(problem.node));
    problem.op_type = printable(std::move(problem.op_type));
    problem.message = printable(std::move(problem.message));
  }
  return fail(report.problems.front().code, path, "the file cannot be converted; the report says why");
}

Bytes size_of_files(const OnnxGraph& onnx) {
  Bytes files;
  for (const auto& file : onnx.files) files += Bytes(file->bytes().size());
  return files;
}

bool may_be_absent(const ConvertOptions& options) noexcept { return options.without_weights || options.made_up_weights; }

/// What is filled (ConstantOfShape) is written out in full where it lies in panels, so a small file can ask for a large one.
Status check_size(const OnnxGraph& onnx, const ConvertOptions& options, const model::Graph& graph, ConvertReport& report) {
  // Weights that are not written cost a header its stretches alone; those that are made up were asked for.
  constexpr Bytes kMostUnwritten{std::uint64_t{64} << 30};
  const Allowance allowance(size_of_files(onnx), may_be_absent(options) ? kMostUnwritten : options.max_constants);
  const auto refuse = [&](const std::string& what, std::uint64_t bytes) {
    report.problems.push_back(
        {ErrorCode::kUnsupported, "", "", onnx.opset,
         what + " would take " + format_bytes(Bytes(bytes)) + ", more than the file accounts for and" + allowance.limit_text()});
    return fail(ErrorCode::kUnsupported, "weights", "they are larger than the file accounts for");
  };
  std::uint64_t weights = 0;
  for (const model::Weight& weight : graph.weights) {
    const auto bytes = checked_mul(static_cast<std::uint64_t>(weight.panels), weight.panel_bytes.count());
    const auto sum = bytes ? checked_add(weights, *bytes) : std::nullopt;
    weights = sum.value_or(kUnlimitedBytes.count());
    if (weight.panel_bytes > allowance.of_panel())
      return refuse("a part of weight `" + weight.name + "` that is made at once", weight.panel_bytes.count());
  }
  report.weight_bytes = Bytes(weights);
  if (Bytes(weights) <= allowance.of_file()) return {};
  return refuse("its weights", weights);
}

/// The graph of one choice of extents, and what its weights are packed from.
struct MadeGraph {
  Draft draft;
  model::Graph graph;
  std::vector<Recipe> recipes;
};

/// Lowers, rewrites, lays out and proves one graph. `where` is for problems: the choice of extents, where there are several.
Status make_graph(const OnnxGraph& onnx, const ConvertOptions& options, const std::string& onnx_path, const std::string& where,
                  MadeGraph& made, ConvertReport& report) {
  const auto stop = [&] {
    if (!where.empty())
      for (Problem& problem : report.problems) problem.message = "at " + where + ": " + problem.message;
    return fail_with(onnx_path, report);
  };
  made.draft.bounds = options.bounds;
  Allowance allowance(size_of_files(onnx), options.max_constants);
  const AllowanceScope counted(allowance);
  lower(onnx, options, made.draft, report.problems);
  report.value_inputs.assign(made.draft.value_inputs.begin(), made.draft.value_inputs.end());
  report.unbounded.assign(made.draft.wanted_bounds.begin(), made.draft.wanted_bounds.end());
  if (!report.problems.empty()) return stop();
  // The rule of a graph by its axes has one structure for all of them, and no Winograd (check_numerics_by_axis).
  const bool by_axis = model::count_points(report.dimensions) > model::kMaxPoints;
  rewrite(made.draft, options.fuse, options.exact || by_axis);

  model::Graph& graph = made.graph;
  report.pruned.clear();
  made.recipes = emit(made.draft, graph, {options.weights, options.weight_forms, !options.exact});
  graph.preprocess = options.preprocess;
  graph.labels = options.labels;
  SLUICE_RETURN_IF_ERROR(check_size(onnx, options, graph, report));
  // What the file asks for and we would not run is the file's fault, not the caller's.
  if (Status valid = model::validate(graph, Bytes(), operators::validate_node); !valid) {
    Error error = valid.error();
    if (error.code == ErrorCode::kInvalidModel) error.code = ErrorCode::kUnsupported;
    report.problems.push_back({error.code, std::string(error.subject()), "", onnx.opset, error.to_string()});
    return stop();
  }
  std::set<std::string> exact;
  for (const DraftNode& node : made.draft.nodes)
    if (node.sums_whole_numbers) exact.insert(node.name);
  if (!options.exact) choose_numerics(graph, exact);
  if (options.sparse && !may_be_absent(options)) choose_sparse(graph, made.recipes, options.prune, report.pruned);
  return {};
}

/// Height and width decide together whether a convolution takes Winograd's sums, which no rule by axis tells.
Status check_numerics_by_axis(const model::Graph& bound, const model::Graph& graph) {
  for (std::size_t n = 0; n < std::min(bound.nodes.size(), graph.nodes.size()); ++n) {
    const model::Node &at_bound = bound.nodes[n], &here = graph.nodes[n];
    if (at_bound.op != model::OpKind::kConv || here.op != model::OpKind::kConv) continue;
    const model::Window &a = at_bound.as<model::ConvAttributes>().window, &b = here.as<model::ConvAttributes>().window;
    const bool winograd = at_bound.numeric == model::NumericClass::kWinograd4 || here.numeric == model::NumericClass::kWinograd4;
    if (winograd && (a.out_h != b.out_h || a.out_w != b.out_w))
      return fail(ErrorCode::kUnsupported, here.name,
                  "at more than 4096 choices of extents Winograd cannot be chosen by height and width: convert with --numerics exact");
  }
  return {};
}

/// The graph of the largest extents.
Status make_bound(const OnnxGraph& onnx, const ConvertOptions& options, const std::string& onnx_path, MadeGraph& bound,
                  ConvertReport& report) {
  report.dimensions = open_dimensions(options);
  const std::size_t last = model::count_points(report.dimensions) - 1;
  ConvertOptions at_bound = options;
  at_bound.dims = dims_at(options, report.dimensions, last);
  return make_graph(onnx, at_bound, onnx_path, point_text(report.dimensions, last), bound, report);
}

/// The graphs of all choices of extents, the bound's own included. Their weights join those of the pool.
Result<model::Variants> make_variants(const OnnxGraph& onnx, ConvertOptions options, const std::string& onnx_path,
                                      const model::Graph& bound, WeightPool& pool, ConvertReport& report) {
  const std::vector<model::Dimension>& dimensions = report.dimensions;
  const std::size_t points = model::count_points(dimensions);
  const ConvertOptions stated = options;
  const auto make = [&](std::size_t point, model::Graph& graph) -> Status {
    if (point == points - 1) return graph = bound, Status();
    options.dims = dims_at(stated, dimensions, point);
    MadeGraph made;
    SLUICE_RETURN_IF_ERROR(make_graph(onnx, options, onnx_path, point_text(dimensions, point), made, report));
    pool.share(made.graph, std::move(made.recipes));
    graph = std::move(made.graph);
    return {};
  };
  model::Variants variants;
  std::size_t made = points;
  if (points > model::kMaxPoints) {
    const auto make_alike = [&](std::size_t point, model::Graph& graph) -> Status {
      SLUICE_RETURN_IF_ERROR(make(point, graph));
      return check_numerics_by_axis(bound, graph);
    };
    auto by_axis = model::encode_by_axis(dimensions, make_alike, made);
    if (!by_axis && report.problems.empty())
      report.problems.push_back({by_axis.error().code, "", "", onnx.opset, by_axis.error().to_string()});
    if (!by_axis) return fail(by_axis.error());
    variants = std::move(*by_axis);
  } else {
    model::VariantsEncoder encoder(dimensions);
    for (std::size_t point = points; point-- > 0;) {
      model::Graph graph;
      SLUICE_RETURN_IF_ERROR(make(point, graph));
      SLUICE_RETURN_IF_ERROR(encoder.add(point, graph));
    }
    variants = encoder.take();
  }
  report.graphs = static_cast<std::int64_t>(points);
  report.made_graphs = static_cast<std::int64_t>(made);
  report.forms = static_cast<std::int64_t>(variants.forms.size());
  report.variant_bytes = pool.added_bytes();
  return variants;
}

Status convert_read(const OnnxGraph& onnx, const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options,
                    ConvertReport& report) {
  for (const auto& file : onnx.files)
    if (file->is_at(model_path))
      return fail(ErrorCode::kInvalidArgument, model_path, "the model would replace a file that it is made from");
  report.onnx_nodes = static_cast<std::int64_t>(onnx.nodes.size());

  MadeGraph bound;
  SLUICE_RETURN_IF_ERROR(make_bound(onnx, options, onnx_path, bound, report));
  model::Graph& graph = bound.graph;
  report.nodes = static_cast<std::int64_t>(graph.nodes.size());

  WeightPool pool(graph, std::move(bound.recipes));
  model::WriteOptions write{.progress = options.progress, .before_commit = [&]() -> Status {
                              for (const auto& file : onnx.files) SLUICE_RETURN_IF_ERROR(file->check_unchanged());
                              return {};
                            }};
  model::Variants variants;
  if (!report.dimensions.empty()) {
    SLUICE_ASSIGN_OR_RETURN(variants, make_variants(onnx, options, onnx_path, graph, pool, report));
    write.variants = &variants;
    graph.weights = pool.weights();
  }
  SLUICE_RETURN_IF_ERROR(check_size(onnx, options, graph, report));
  coding::WeightCoder coder(options.code, options.disk_bytes_per_second);
  if (options.code != Coding::kNone) write.coder = &coder;
  write.key = options.key;
  write.weights = !options.without_weights;
  SLUICE_RETURN_IF_ERROR(model::write_model(graph, pool, model_path, operators::validate_node, write));
  for (const model::Weight& weight : graph.weights)
    if (weight.code != model::kNoCode) report.coded_bytes += weight.bytes;
  for (const model::Stretch& stretch : graph.stretches) report.stored_bytes += stretch.stored_size;
  for (const model::Weight& weight : graph.weights) {
    if (weight.panel_layout.layout != model::WeightLayout::kSparse) continue;
    report.sparse_weights += 1;
    report.sparse_bytes += weight.bytes;
    report.sparse_dense_bytes += static_cast<std::uint64_t>(weight.panels) * weight.panel_bytes;
  }
  for (const model::Stretch& stretch : graph.stretches)
    report.file_bytes = std::max(report.file_bytes, align_up(stretch.offset + stretch.stored_size, model::kSegmentAlignment));
  return {};
}

/// A refusal is told in the report, for which there may be no memory either.
template <class Body>
Status or_refused(const std::string& onnx_path, ConvertReport& report, const Body& body) {
  try {
    return body();
  } catch (const Refusal& refusal) {
    report.problems.push_back({refusal.code(), "", "", 0, printable(refusal.what())});
    return fail(refusal.code(), onnx_path, "the file cannot be converted; the report says why");
  }
}

}  // namespace

Status convert_graph(const OnnxGraph& onnx, const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options,
                     ConvertReport& report) {
  return or_refused(onnx_path, report, [&] { return convert_read(onnx, onnx_path, model_path, options, report); });
}

Status visit_weights(const OnnxGraph& onnx, const std::string& onnx_path, const ConvertOptions& options, ConvertReport& report,
                     const std::function<void(const model::Weight&, const Recipe&)>& visit) {
  return or_refused(onnx_path, report, [&]() -> Status {
    MadeGraph bound;
    SLUICE_RETURN_IF_ERROR(make_bound(onnx, options, onnx_path, bound, report));
    for (std::size_t i = 0; i < bound.recipes.size(); ++i) visit(bound.graph.weights[i], bound.recipes[i]);
    return {};
  });
}

Status read_onnx(const std::string& path, OnnxGraph& graph, ConvertReport& report, AbsentData absent) {
  std::string message;
  const Status read = read_onnx(path, graph, message, absent);
  if (read) return read;
  const std::string text = message.empty() ? read.error().to_string() : message;
  report.problems.push_back({read.error().code, "", "", graph.opset, printable(text)});
  return read;
}

namespace {

Status convert_file(const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options, ConvertReport& report) {
  OnnxGraph onnx;
  const AbsentData absent = options.made_up_weights   ? AbsentData::kMadeUp
                            : options.without_weights ? AbsentData::kAllowed
                                                      : AbsentData::kRefused;
  SLUICE_RETURN_IF_ERROR(read_onnx(onnx_path, onnx, report, absent));
  return convert_graph(onnx, onnx_path, model_path, options, report);
}

}  // namespace

Status convert(const std::string& onnx_path, const std::string& model_path, const ConvertOptions& options, ConvertReport& report) {
  report = {};
  try {
    return or_out_of_memory(onnx_path, [&] { return convert_file(onnx_path, model_path, options, report); });
  } catch (const std::exception&) {
    return fail(ErrorCode::kInternal, onnx_path, "the importer failed in a way it does not know");
  }
}

}  // namespace sluice::importer
