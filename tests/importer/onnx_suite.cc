#include "tests/importer/onnx_suite.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "src/cli/failure.h"
#include "src/cli/tensor_proto.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;
using cli::HostTensor;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A port of a case's graph: a tensor, or a sequence or an optional of them, whose data lies in other messages.
struct CasePort {
  std::string name;
  bool sequence = false, optional = false;
};

/// The ports of a case's graph. Old files list their initialisers as inputs too; those come with no data.
struct CaseGraph {
  std::string op;  // of the first node
  std::vector<CasePort> inputs, outputs;

  explicit CaseGraph(const std::string& bytes) {
    protozero::pbf_reader model(bytes);
    std::vector<std::string> initialisers;
    while (model.next(7)) {
      protozero::pbf_reader graph(model.get_view());
      while (graph.next()) {
        switch (graph.tag()) {
          case 1:
            if (const std::string type = text_of(graph.get_view(), 4); op.empty()) op = type;
            break;
          case 5:
            initialisers.push_back(text_of(graph.get_view(), 8));
            break;
          case 11:
            inputs.push_back(port_of(graph.get_view()));
            break;
          case 12:
            outputs.push_back(port_of(graph.get_view()));
            break;
          default:
            graph.skip();
        }
      }
    }
    std::erase_if(inputs, [&](const CasePort& port) { return std::count(initialisers.begin(), initialisers.end(), port.name) != 0; });
  }

 private:
  static CasePort port_of(const protozero::data_view& bytes) {
    CasePort port{text_of(bytes, 1)};
    protozero::pbf_reader info(bytes);
    if (!info.next(2)) return port;
    for (protozero::pbf_reader type = info.get_message(); type.next();) {
      port.optional = port.optional || type.tag() == 9;
      port.sequence = port.sequence || type.tag() == 4;
      if (type.tag() != 9) {
        type.skip();
        continue;
      }
      protozero::pbf_reader optional = type.get_message();
      if (!optional.next(1)) continue;
      protozero::pbf_reader element = optional.get_message();
      port.sequence = element.next() && element.tag() == 4;
    }
    return port;
  }

  static std::string text_of(const protozero::data_view& bytes, std::uint32_t tag) {
    protozero::pbf_reader part(bytes);
    return part.next(tag) ? part.get_string() : std::string();
  }
};

/// Of a case, or of the function that an "_expanded" case writes out in other operators.
std::string operator_of(const fs::path& folder, const CaseGraph& graph) {
  const std::string name = folder.filename().string();
  const std::size_t cut = name.find("_expanded");
  if (cut == std::string::npos) return graph.op;
  std::string op = graph.op;
  std::size_t best = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.parent_path())) {
    // The plain sibling, or the case whose name has most in common.
    const std::string other = entry.path().filename().string();
    if (other.find("_expanded") != std::string::npos || !fs::exists(entry.path() / "model.onnx")) continue;
    const auto [end, _] = std::mismatch(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(cut), other.begin(), other.end());
    const auto common = static_cast<std::size_t>(end - name.begin());
    if (common <= best) continue;
    best = common;
    op = CaseGraph(read_all(entry.path() / "model.onnx")).op;
  }
  return op;
}

/// The tensors of a file of test data: one, or those of a sequence; none of an optional without a value.
std::vector<HostTensor> read_tensors(const fs::path& path, const CasePort& port) {
  std::string bytes = read_all(path);
  const auto message = [](const protozero::data_view& view) { return std::string(view.data(), view.size()); };
  const auto parse = [&](const std::string& tensor) { return cli::parse_tensor_proto(std::as_bytes(std::span(tensor)), path.string()); };
  if (port.optional) {  // OptionalProto: tensor_value, sequence_value
    protozero::pbf_reader optional(bytes);
    const bool there = optional.next(port.sequence ? 5 : 3);
    if (!there) return {};
    bytes = message(optional.get_view());
  }
  if (!port.sequence) return {parse(bytes)};
  std::vector<HostTensor> tensors;  // SequenceProto: tensor_values
  for (protozero::pbf_reader sequence(bytes); sequence.next(3);) tensors.push_back(parse(message(sequence.get_view())));
  return tensors;
}

constexpr double kNarrow = 1e-7, kWide = 1e-5;  // absolute tolerances: of most cases, and where a sum is long

/// Steps of 16-bit floats, some of them: the inputs of a case were rounded to the type, what it expects was made from others.
double step_of(DType dtype) { return dtype == DType::kF16 ? 0x1p-8 : dtype == DType::kBF16 ? 0x1p-5 : 0.0; }

/// Nothing when the values agree within rtol 1e-3 and `absolute`, else where they do not. Integers must be equal.
std::string difference(const HostTensor& expected, const HostTensor& found, double absolute) {
  const double step = step_of(expected.dtype);
  const bool real = expected.dtype == DType::kF32 || expected.dtype == DType::kF64 || step != 0;
  const auto count = static_cast<std::size_t>(expected.shape.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    const double want = cli::value_at(expected, i), got = cli::value_at(found, i);
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    if (!real || !(std::abs(want - got) <= absolute + step + (1e-3 + step) * std::abs(want)))
      return "element " + std::to_string(i) + " is " + std::to_string(got) + " instead of " + std::to_string(want);
  }
  return "";
}

class CaseRun {
 public:
  CaseRun(const fs::path& folder, const fs::path& scratch) : folder_(folder), scratch_(scratch), graph_(read_all(folder / "model.onnx")) {
    result_.name = folder.filename().string();
    result_.op = operator_of(folder, graph_);
  }

  CaseResult run() {
    try {
      if (convert()) compare();
    } catch (const cli::Failure& failure) {
      refuse(failure.what());  // a type of tensor that we do not read
    }
    return result_;
  }

 private:
  fs::path data(const char* kind, std::size_t i) const {
    return folder_ / "test_data_set_0" / (std::string(kind) + "_" + std::to_string(i) + ".pb");
  }
  fs::path model_path() const { return scratch_ / (result_.name + ".sluice"); }

  /// Sequences become inputs of their own, of the extents that the data has.
  void read_inputs(importer::ConvertOptions& options) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const CasePort& port = graph_.inputs[i];
      std::vector<HostTensor> tensors = read_tensors(data("input", i), port);
      if (port.sequence || port.optional) options.dims[port.name] = static_cast<std::int64_t>(tensors.size());
      for (std::size_t item = 0; item < tensors.size(); ++item) {
        const std::string name = port.sequence ? port.name + "." + std::to_string(item) : port.name;
        const Shape& shape = tensors[item].shape;
        for (int axis = 0; axis < shape.rank(); ++axis) free_dims_[name + "." + std::to_string(axis)] = shape[axis];
        inputs_[name] = std::move(tensors[item]);
      }
    }
  }

  /// Binds what convert asks for, and nothing else.
  bool convert() {
    importer::ConvertOptions options;
    bool read = false;
    for (std::size_t attempt = 0; attempt <= graph_.inputs.size() + 2; ++attempt) {
      importer::ConvertReport report;
      const Status status = importer::convert((folder_ / "model.onnx").string(), model_path().string(), options, report);
      // What convert refuses without data is refused for its own reason, not for a type of the data.
      if (!status && status.error().code == ErrorCode::kUnsupported && report.value_inputs.empty() && report.unbounded.empty()) {
        refuse_or_fail(status.error(), report);
        return false;
      }
      if (!read) {
        read_inputs(options);
        read = true;
        if (status && options.dims.empty()) return true;
        if (!options.dims.empty()) continue;
      }
      if (status) return true;
      if (bind_dims(report, options) || state_bounds(report, options) || bind_values(report, options)) continue;
      refuse_or_fail(status.error(), report);
      return false;
    }
    return false;
  }

  void refuse_or_fail(const Error& error, const importer::ConvertReport& report) {
    std::string why = error.to_string();
    if (!report.problems.empty()) {
      const importer::Problem& problem = report.problems[0];
      why = (problem.op_type.empty() ? "" : problem.op_type + ": ") + problem.message;
    }
    error.code == ErrorCode::kUnsupported ? refuse(why) : fail(why);
  }

  /// Free dimensions, by their places.
  bool bind_dims(const importer::ConvertReport& report, importer::ConvertOptions& options) {
    const bool asked = std::any_of(report.problems.begin(), report.problems.end(),
                                   [](const auto& problem) { return problem.message.find("free dimensions") != std::string::npos; });
    if (!asked || bound_dims_) return false;
    bound_dims_ = true;
    options.dims.insert(free_dims_.begin(), free_dims_.end());
    return true;
  }

  bool bind_values(const importer::ConvertReport& report, importer::ConvertOptions& options) {
    bool bound = false;
    for (const auto& [name, tensor] : inputs_) {
      const bool asked = std::count(report.value_inputs.begin(), report.value_inputs.end(), name) != 0;
      if (!asked || options.values.contains(name)) continue;
      options.values[name] = {tensor.dtype, tensor.shape, tensor.data};
      ++result_.bound_inputs;
      bound = true;
      std::erase_if(options.dims, [&input = name](const auto& dim) { return dim.first.starts_with(input + "."); });
    }
    return bound;
  }

  /// Gives outputs whose extents come at run time a bound with room to spare.
  bool state_bounds(const importer::ConvertReport& report, importer::ConvertOptions& options) {
    bool stated = false;
    for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
      const std::string& name = graph_.outputs[o].name;
      if (std::count(report.unbounded.begin(), report.unbounded.end(), name) == 0 || options.bounds.contains(name)) continue;
      Shape most = read_tensors(data("output", o), graph_.outputs[o]).at(0).shape;
      for (int axis = 0; axis < most.rank(); ++axis) ++most[axis];
      options.bounds[name] = most;
      stated = true;
    }
    result_.stated_bounds = result_.stated_bounds || stated;
    return stated;
  }

  void compare() {
    const auto model = Model::open(model_path().string());
    if (!model) return stop(model.error());
    const auto roomy = outputs_at(*model, kUnlimitedBytes);
    if (!roomy) return stop(roomy.error());
    std::vector<HostTensor> wanted;
    for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
      std::vector<HostTensor> tensors = read_tensors(data("output", o), graph_.outputs[o]);
      std::move(tensors.begin(), tensors.end(), std::back_inserter(wanted));
    }
    if (wanted.size() != roomy->size()) return fail(std::to_string(roomy->size()) + " tensors instead of " + std::to_string(wanted.size()));
    for (std::size_t o = 0; o < roomy->size(); ++o) {
      const HostTensor &expected = wanted[o], &found = (*roomy)[o];
      if (!(found.shape == expected.shape)) return fail("shape " + found.shape.to_string() + " instead of " + expected.shape.to_string());
      if (found.dtype != expected.dtype)
        return fail("type " + std::string(name_of(found.dtype)) + " instead of " + std::string(name_of(expected.dtype)));
      if (const std::string where = difference(expected, found, kWide); !where.empty())
        return fail("output " + std::to_string(o) + ": " + where);
      result_.wide = result_.wide || !difference(expected, found, kNarrow).empty();
    }
    const auto least = minimum_budget(**model, {});
    if (!least) return stop(least.error());
    const auto tight = outputs_at(*model, *least);
    if (!tight) return fail("at its smallest budget: " + tight.error().to_string());
    for (std::size_t o = 0; o < roomy->size(); ++o)
      if ((*tight)[o].data != (*roomy)[o].data) return fail("other bits at its smallest budget");
    result_.outcome = Outcome::kPassed;
  }

  Result<std::vector<HostTensor>> outputs_at(const std::shared_ptr<const Model>& model, Bytes budget) {
    SLUICE_ASSIGN_OR_RETURN(const auto session, Session::create(model, {.budget = budget}));
    for (std::size_t p = 0; p < model->graph().inputs.size(); ++p) {
      const HostTensor& given = inputs_.at(model->graph().inputs[p].name);
      SLUICE_RETURN_IF_ERROR(session->set_input(p, given.dtype, given.data));
    }
    SLUICE_RETURN_IF_ERROR(session->run());
    std::vector<HostTensor> outputs;
    for (std::size_t o = 0; o < model->graph().outputs.size(); ++o) {
      const model::Port& port = model->graph().outputs[o];
      outputs.push_back(cli::make_host_tensor(model->graph().dtype_of(port), session->output_shape(o)));
      SLUICE_RETURN_IF_ERROR(session->get_output(o, outputs.back().data));
    }
    return outputs;
  }

  void stop(const Error& error) { error.code == ErrorCode::kUnsupported ? refuse(error.to_string()) : fail(error.to_string()); }
  void refuse(std::string why) {
    result_.outcome = Outcome::kRefused;
    result_.why = std::move(why);
  }
  void fail(std::string why) {
    result_.outcome = Outcome::kFailed;
    result_.why = std::move(why);
  }

  fs::path folder_, scratch_;
  CaseGraph graph_;
  std::map<std::string, HostTensor> inputs_;  // by the names that they have as inputs of the model
  std::map<std::string, std::int64_t> free_dims_;
  bool bound_dims_ = false;
  CaseResult result_;
};

/// A result as a line of bytes: outcome, bound inputs, wide, stated bounds, operator, reason.
void send(int pipe, const CaseResult& result) {
  const std::string text = std::to_string(static_cast<int>(result.outcome)) + '\n' + std::to_string(result.bound_inputs) + '\n' +
                           (result.wide ? "1" : "0") + '\n' + (result.stated_bounds ? "1" : "0") + '\n' + result.op + '\n' + result.why;
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(pipe, text.data() + at, text.size() - at);
    if (wrote <= 0) return;
    at += static_cast<std::size_t>(wrote);
  }
}

CaseResult receive(int pipe, const fs::path& folder) {
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = read(pipe, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  CaseResult result;
  result.name = folder.filename().string();
  std::vector<std::string> parts;
  for (int i = 0; i < 5; ++i) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    parts.push_back(text.substr(0, end));
    text.erase(0, std::min(end + 1, text.size()));
  }
  if (parts[0].empty()) return result;
  result.outcome = static_cast<Outcome>(std::stoi(parts[0]));
  result.bound_inputs = std::stoi(parts[1]);
  result.wide = parts[2] == "1";
  result.stated_bounds = parts[3] == "1";
  result.op = parts[4];
  result.why = text;
  return result;
}

CaseResult run_apart(const fs::path& folder, const fs::path& scratch) {
  constexpr unsigned kSeconds = 120;
  int ends[2];
  if (pipe(ends) != 0) return {folder.filename().string(), "", Outcome::kFailed, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kSeconds);
    send(ends[1], run_case(folder, scratch));
    _exit(0);
  }
  close(ends[1]);
  CaseResult result = receive(ends[0], folder);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
    result.op = CaseGraph(read_all(folder / "model.onnx")).op;
    result.outcome = Outcome::kFailed;
    result.why = WIFSIGNALED(status) ? "crashed: signal " + std::to_string(WTERMSIG(status))
                                     : "ended with status " + std::to_string(WEXITSTATUS(status));
  }
  return result;
}

}  // namespace

CaseResult run_case(const fs::path& folder, const fs::path& scratch) {
  CaseRun run(folder, scratch);
  CaseResult result = run.run();
  std::error_code ignored;
  fs::remove(scratch / (result.name + ".sluice"), ignored);
  return result;
}

std::vector<CaseResult> run_suite(const fs::path& root, const fs::path& scratch) {
  std::set<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "model.onnx")) folders.insert(entry.path());
  std::vector<CaseResult> results;
  for (const fs::path& folder : folders) results.push_back(run_apart(folder, scratch));
  return results;
}

}  // namespace sluice::test
