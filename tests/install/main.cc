// main [MODEL]: runs a model through the C++ door and prints a checksum of its outputs, which every consumer agrees about. Links all of the
// runtime, through both doors, and the importer; without a model it succeeds when each refuses a file that is not there.
#include <sluice/sluice.h>
#include <sluice/sluice_c.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>
#ifdef WITH_IMPORTER
#include <sluice/importer/importer.h>
#endif

namespace {

using namespace sluice::literals;

int refuses_what_is_not_there() {
  if (sluice::Model::open("there-is-no-such-file").has_value()) return 1;
  if (sluice::Session::create(nullptr, {.budget = 24_MiB}).has_value()) return 2;
  sluice_model* model = nullptr;
  if (sluice_model_open("there-is-no-such-file", &model) != SLUICE_IO) return 3;
  // Not called, but wanted from the library.
  const volatile auto create = &sluice::AsyncSession::create;
  const volatile auto expect = &sluice::expected_times;
  const volatile auto load = &sluice::profiler::load_profiles;
  const volatile auto say = &sluice::tell;
  if (create == nullptr || expect == nullptr || load == nullptr || say == nullptr) return 5;
#ifdef WITH_IMPORTER
  sluice::importer::ConvertReport report;
  if (sluice::importer::convert("there-is-no-such-file", "unused.sluice", {}, report).has_value()) return 4;
#endif
  return 0;
}

int runs(const char* path) {
  const auto model = sluice::Model::open(path);
  if (!model) return 6;
  const auto session = sluice::Session::create(*model, {.budget = 8_MiB});
  if (!session) return 7;
  std::vector<float> input((*model)->graph().inputs[0].onnx_shape.element_count());
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 251) / 251;
  if (!(*session)->set_input(0, sluice::DType::kF32, std::as_bytes(std::span(input)))) return 8;
  if (!(*session)->run()) return 9;
  std::vector<float> output((*model)->graph().outputs[0].onnx_shape.element_count());
  if (!(*session)->get_output(0, std::as_writable_bytes(std::span(output)))) return 10;
  std::uint32_t sum = 2166136261;
  for (const std::byte byte : std::as_bytes(std::span(output))) sum = (sum ^ std::to_integer<std::uint32_t>(byte)) * 16777619;
  std::printf("%08x\n", static_cast<unsigned>(sum));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int refused = refuses_what_is_not_there();
  if (refused != 0 || argc < 2) return refused;
  return runs(argv[1]);
}
