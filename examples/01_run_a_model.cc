// Runs a model inside 24 MiB, on an input of zeros, and prints the place of its largest score: 01_run_a_model MODEL.sluice
#include <sluice/sluice.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  using namespace sluice::literals;
  if (argc != 2) return std::fprintf(stderr, "usage: 01_run_a_model MODEL.sluice\n"), 1;
  const auto report = [](const sluice::Error& error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; };

  auto model = sluice::Model::open(argv[1]);
  if (!model) return report(model.error());
  auto session = sluice::Session::create(*model, {.budget = 24_MiB});
  if (!session) return report(session.error());

  // All zeros, as an example; put your values here. Examples 03 and 13 decode a picture and scale it.
  std::vector<float> image((*model)->graph().inputs[0].onnx_shape.element_count());
  std::vector<float> scores((*model)->graph().outputs[0].onnx_shape.element_count());
  if (auto set = (*session)->set_input(0, sluice::DType::kF32, std::as_bytes(std::span(image))); !set) return report(set.error());
  if (auto run = (*session)->run(); !run) return report(run.error());
  if (auto get = (*session)->get_output(0, std::as_writable_bytes(std::span(scores))); !get) return report(get.error());
  const auto best = std::max_element(scores.begin(), scores.end());
  std::printf("class %td, score %g\n", best - scores.begin(), *best);
}
