// A runner for `sluice detect`: reads the path of an ONNX file a line, answers with the milliseconds of a run, a line each:
//
//     sluice detect --runner build/release/18_time_models
//
// Programs for other runtimes need no more than this: a file in, the least processor time of its runs out.
#include <alloca.h>
#include <sluice/convert.h>
#include <sluice/sluice.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr int kWarmUps = 1, kLeastRuns = 8;
constexpr std::size_t kPage = 4096, kLine = 64, kMostElsewhere = std::size_t{4} << 20;
constexpr double kMostMs = 0.5;  // after which no further run begins, but those above

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

sluice::Status fill(sluice::Session& session, const sluice::model::Graph& graph) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    std::vector<float> values(static_cast<std::size_t>(graph.inputs[i].onnx_shape.element_count()));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = 0.01f * static_cast<float>(k * 7 % 23) - 0.1f;
    if (auto set = session.set_input(i, sluice::DType::kF32, std::as_bytes(std::span(values))); !set) return set;
  }
  return {};
}

struct Known {
  std::string bytes;  // which the model reads
  std::shared_ptr<const sluice::Model> model;
  std::optional<sluice::plan::Plan> plan;
};

/// Each file is converted and planned once, however often it is asked about. Sessions are made anew: where memory lies changes times by some
/// per cent, and only many placings say what is usual.
sluice::Result<Known*> known_of(const std::string& onnx, const std::string& file) {
  static std::map<std::string, Known> all;
  Known& known = all[onnx];
  if (known.model != nullptr) return &known;
  sluice::importer::ConvertReport report;
  if (auto converted = sluice::importer::convert(onnx, file, {}, report); !converted) return sluice::fail(converted.error());
  std::ifstream stream(file, std::ios::binary);
  known.bytes.assign(std::istreambuf_iterator<char>(stream), {});
  std::remove(file.c_str());
  auto opened = sluice::Model::open_buffer(std::as_bytes(std::span(known.bytes)));
  if (!opened) return sluice::fail(opened.error());
  known.model = *opened;
  return &known;
}

sluice::Result<double> time_of(const std::string& onnx, const std::string& file) {
  const auto known = known_of(onnx, file);
  if (!known) return sluice::fail(known.error());
  const auto& model = (*known)->model;
  auto& plan = (*known)->plan;
  sluice::SessionOptions options;
  options.tuning.reads_in_flight = 1;  // one thread: starting and ending more takes longer than a run
  if (plan) options.plan = &*plan;
  // Kernels wait where what they spill to the stack, or another map, has the same place in its page. Without these two, which models that
  // befalls is the same in all sessions of a process: some would take some per cent longer than others.
  static std::minstd_rand random;
  volatile char* const lower = static_cast<char*>(alloca((random() % (kPage / kLine) + 1) * kLine));
  *lower = 0;
  const std::vector<char> elsewhere(random() % kMostElsewhere, 1);
  auto session = sluice::Session::create(model, options);
  if (!session) return sluice::fail(session.error());
  if (!plan) plan = (*session)->plan();
  if (auto filled = fill(**session, model->graph()); !filled) return sluice::fail(filled.error());
  double least = 1e300;
  const double start = processor_ms();
  for (int run = 0; run < kWarmUps + kLeastRuns || processor_ms() - start < kMostMs; ++run) {
    const double before = processor_ms();
    if (auto ran = (*session)->run(); !ran) return sluice::fail(ran.error());
    if (run >= kWarmUps) least = std::min(least, processor_ms() - before);
  }
  return least;
}

}  // namespace

int main() {
  std::string folder = "/tmp/time-models-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return std::perror(folder.c_str()), 1;
  int status = 0;
  for (std::string path; status == 0 && std::getline(std::cin, path);) {
    const auto ms = time_of(path, folder + "/model.sluice");
    if (ms)
      std::printf("%.6f\n", *ms), std::fflush(stdout);
    else
      status = (std::fprintf(stderr, "%s\n", ms.error().to_string().c_str()), 1);
  }
  std::remove(folder.c_str());
  return status;
}
