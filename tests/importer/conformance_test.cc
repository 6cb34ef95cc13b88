// ONNX's own operator tests (float cases of onnx/backend/test/data/node), converted and run: the importer, the kernels and the executor
// together against answers that are not ours. The cases are not in the repository; SLUICE_SHARED_DIR names the folder that holds
// onnx-node-tests/. Where it is absent the test says so and passes.
//
// The cases feed weights as inputs; here they become initialisers, as every real model has them. A case whose operator or form is refused
// as unsupported is counted, not failed; what is converted must agree.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "sluice/engine/engine.h"
#include "sluice/importer/importer.h"
#include "src/cli/failure.h"
#include "src/cli/tensor_proto.h"
#include "tests/cli/temporary.h"
#include "tests/importer/onnx_builder.h"

using namespace sluice;
namespace fs = std::filesystem;

namespace {

std::string shared_folder() {
  if (const char* named = std::getenv("SLUICE_SHARED_DIR")) return named;
  return *SLUICE_SHARED_DIR != '\0' ? SLUICE_SHARED_DIR : SLUICE_SHARED_DIR_DEFAULT;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Inputs from this index on are weights or shapes; the ones before are data.
std::size_t data_inputs(const std::string& op) {
  static const std::map<std::string, std::size_t> kCounts = {{"BatchNormalization", 1},
                                                             {"Clip", 1},
                                                             {"Conv", 1},
                                                             {"ConvTranspose", 1},
                                                             {"Gemm", 1},
                                                             {"Pad", 1},
                                                             {"PRelu", 1},
                                                             {"Resize", 1},
                                                             {"Upsample", 1}};
  const auto found = kCounts.find(op);
  return found == kCounts.end() ? 99 : found->second;
}

/// What the test needs to know of a case's graph.
struct CaseGraph {
  std::string model;  // the model's bytes with the graph left out
  std::string graph;
  std::string op;  // of the first node
  std::vector<std::string> inputs, outputs;

  explicit CaseGraph(const std::string& bytes) {
    protozero::pbf_writer rest(model);
    protozero::pbf_reader reader(bytes);
    while (reader.next()) {
      if (reader.tag() == 7)
        graph = reader.get_string();
      else if (reader.tag() == 1)
        rest.add_int64(1, reader.get_int64());
      else if (reader.tag() == 8)
        rest.add_message(8, reader.get_string());
      else
        reader.skip();
    }
    protozero::pbf_reader g(graph);
    while (g.next()) {
      const auto tag = g.tag();
      if (tag != 1 && tag != 11 && tag != 12) {
        g.skip();
        continue;
      }
      protozero::pbf_reader part(g.get_view());
      while (part.next()) {
        if (tag == 1 && part.tag() == 4 && op.empty())
          op = part.get_string();
        else if (tag != 1 && part.tag() == 1)
          (tag == 11 ? inputs : outputs).push_back(part.get_string());
        else
          part.skip();
      }
    }
  }

  /// The model with some inputs as initialisers.
  std::string with_initializers(const std::vector<std::pair<std::string, std::string>>& tensors) const {
    std::string grown = graph;
    protozero::pbf_writer writer(grown);
    for (const auto& [name, tensor] : tensors) {
      std::string named = tensor;
      protozero::pbf_writer(named).add_string(8, name);  // the last name counts
      writer.add_message(5, named);
    }
    std::string whole = model;
    protozero::pbf_writer(whole).add_message(7, grown);
    return whole;
  }
};

/// Nothing when the values agree, else where they do not.
std::string difference(const cli::HostTensor& expected, std::span<const float> found) {
  if (static_cast<std::size_t>(expected.shape.element_count()) != found.size()) return "another number of elements";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double want = cli::value_at(expected, i), got = found[i];
    if (std::isnan(want) && std::isnan(got)) continue;
    if (want != got && !(std::abs(want - got) <= 1e-5 + 1e-3 * std::abs(want)))
      return "element " + std::to_string(i) + " is " + std::to_string(got) + " instead of " + std::to_string(want);
  }
  return "";
}

enum class Outcome { kPassed, kUnsupported, kNotOurs };

Outcome run_case(const fs::path& folder, const TemporaryFolder& scratch, std::string& failure) {
  const CaseGraph graph(read_all(folder / "model.onnx"));
  std::vector<std::pair<std::string, std::string>> constants;
  std::vector<cli::HostTensor> feeds;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string file = (folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb")).string();
    const cli::HostTensor tensor = cli::read_tensor_proto(file);
    const bool data = tensor.dtype == DType::kF32 && tensor.shape.element_count() > 0 && i < data_inputs(graph.op);
    if (data)
      feeds.push_back(tensor);
    else
      constants.emplace_back(graph.inputs[i], read_all(file));
  }
  if (feeds.empty()) return Outcome::kNotOurs;
  test::write_file(scratch.path("case.onnx"), graph.with_initializers(constants));
  importer::ConvertReport report;
  if (const Status status = importer::convert(scratch.path("case.onnx"), scratch.path("case.sluice"), {}, report); !status) {
    if (status.error().code == ErrorCode::kUnsupported) return Outcome::kUnsupported;
    failure = report.problems.empty() ? status.error().to_string() : report.problems[0].message;
    return Outcome::kPassed;
  }
  const auto model = Model::open(scratch.path("case.sluice"));
  const auto fail_with = [&](const Error& error) {
    failure = error.to_string();
    return error.code == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kPassed;
  };
  if (!model) return fail_with(model.error());
  const auto session = Session::create(*model, {});
  if (!session) return fail_with(session.error());
  for (std::size_t i = 0; i < feeds.size(); ++i)
    if (const Status set = (*session)->set_input(i, DType::kF32, feeds[i].data); !set) return fail_with(set.error());
  if (const Status run = (*session)->run(); !run) return fail_with(run.error());
  for (std::size_t o = 0; o < graph.outputs.size() && failure.empty(); ++o) {
    const cli::HostTensor expected =
        cli::read_tensor_proto((folder / "test_data_set_0" / ("output_" + std::to_string(o) + ".pb")).string());
    const model::Port& port = (*model)->graph().outputs[o];
    if (!(port.onnx_shape == expected.shape))
      failure = "shape " + port.onnx_shape.to_string() + " instead of " + expected.shape.to_string();
    std::vector<float> found(static_cast<std::size_t>(port.onnx_shape.element_count()));
    if (const Status got = (*session)->get_output(o, std::as_writable_bytes(std::span(found))); !got) return fail_with(got.error());
    if (failure.empty()) failure = difference(expected, found);
  }
  return Outcome::kPassed;
}

}  // namespace

TEST_CASE("ONNX's operator tests") {
  const fs::path root = fs::path(shared_folder()) / "onnx-node-tests";
  if (!fs::is_directory(root)) {
    std::cout << "SKIPPED: onnx-node-tests is not here; SLUICE_SHARED_DIR names the folder that holds it\n";
    return;
  }
  // With fractional scales ONNX's reference divides by the fractional extent, ONNX Runtime and we by the whole one.
  const std::set<std::string> known = {"test_resize_downsample_scales_cubic_align_corners",
                                       "test_resize_downsample_scales_linear_align_corners"};
  const TemporaryFolder scratch;
  int passed = 0, unsupported = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(entry.path() / "model.onnx") || known.contains(name)) continue;
    std::string failure;
    try {
      const Outcome outcome = run_case(entry.path(), scratch, failure);
      if (outcome == Outcome::kNotOurs) continue;
      if (outcome == Outcome::kUnsupported) {
        ++unsupported;
        continue;
      }
    } catch (const cli::Failure&) {
      continue;  // a type of tensor that the tool does not read
    }
    INFO(name << ": " << failure);
    CHECK(failure.empty());
    passed += failure.empty() ? 1 : 0;
  }
  std::cout << passed << " cases agree, " << unsupported << " are of operators or forms that are not supported\n";
  CHECK(passed >= 240);
}
