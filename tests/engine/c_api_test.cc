#include <catch2/catch.hpp>

#include "sluice/core/file.h"
#include "sluice/profiler/profile_file.h"
#include "sluice/sluice_c.h"
#include "tests/executor/toy_file.h"

extern "C" int run_model_from_c(const char* path, const void* input, std::size_t input_bytes, void* output, std::size_t output_bytes);
extern "C" int use_other_doors(const void* file, std::size_t file_bytes, const void* input, std::size_t input_bytes, const void* output,
                               std::size_t output_bytes);

extern "C" int run_with_hooks(const char* path, const void* input, std::size_t input_bytes, const void* text, std::size_t text_bytes);

extern "C" int take_output_from_c(const char* path, const void* input, std::size_t input_bytes, float* output, std::size_t output_bytes);

namespace sluice {

TEST_CASE("a C program takes an output as it is made") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 10}});
  const toy::TemporaryPath path("c_api_rows_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  std::vector<float> output(toy.expected.size());
  CHECK(take_output_from_c(path.str().c_str(), toy.input.data(), toy.input.size() * sizeof(float), output.data(),
                           output.size() * sizeof(float)) == 0);
  CHECK(output == toy.expected);
}

TEST_CASE("a C program's hooks are told of lines and steps, and its profile counts") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 10}});
  const toy::TemporaryPath path("c_api_hooks_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  profiler::DeviceProfile slow;
  slow.isa = "scalar";
  slow.threads = 3;
  slow.step_overhead_seconds = 1;
  const std::string text = profiler::text_of_profiles(std::span(&slow, 1));
  CHECK(run_with_hooks(path.str().c_str(), toy.input.data(), toy.input.size() * sizeof(float), text.data(), text.size()) == 0);
}

TEST_CASE("a C program runs a model, and its mistakes are statuses") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 10}});
  const toy::TemporaryPath path("c_api_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  std::vector<float> output(toy.expected.size());
  CHECK(run_model_from_c(path.str().c_str(), toy.input.data(), toy.input.size() * sizeof(float), output.data(),
                         output.size() * sizeof(float)) == 0);
  CHECK(output == toy.expected);
}

TEST_CASE("a C program opens models that lie elsewhere, and runs them in place, beside itself and within a limit") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 10}});
  const toy::TemporaryPath path("c_api_doors_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  const auto file = read_file(path.str(), Bytes(1 << 26));
  REQUIRE(file);
  CHECK(use_other_doors(file->data(), file->size(), toy.input.data(), toy.input.size() * sizeof(float), toy.expected.data(),
                        toy.expected.size() * sizeof(float)) == 0);
}

TEST_CASE("a C program binds a dimension") {
  // The weights of a toy follow from its number of rows too: those of `three` are written, and its first row is what is run.
  const auto toy_of = [](std::int64_t rows) { return toy::make_toy_model({.rows = rows, .widths = {64, 512, 10}}); };
  const toy::ToyModel one = toy_of(1), three = toy_of(3);
  model::VariantsEncoder encoder({{"rows", {1, 3}, 0}});
  REQUIRE(encoder.add(0, one.graph));
  REQUIRE(encoder.add(1, three.graph));
  const model::Variants variants = encoder.take();
  const toy::TemporaryPath path("c_api_dims_test.sluice");
  REQUIRE(toy::write_toy_file(three, path.str(), &variants));

  sluice_model *model = nullptr, *other = nullptr;
  REQUIRE(sluice_model_open(path.str().c_str(), &model) == SLUICE_OK);
  REQUIRE(sluice_dimension_count(model) == 1);
  sluice_dimension_info dimension;
  REQUIRE(sluice_model_dimension_info(model, 0, &dimension) == SLUICE_OK);
  CHECK(std::string(dimension.name) == "rows");
  CHECK(dimension.extent == 3);
  CHECK(dimension.least == 1);
  CHECK(dimension.bound == 3);
  CHECK(sluice_model_dimension_info(model, 1, &dimension) == SLUICE_INVALID_ARGUMENT);

  const sluice_dim wrong[] = {{"rows", 2}, {"lines", 1}, {"rows", 4}, {"rows", -1}};
  for (const sluice_dim& dim : wrong) CHECK(sluice_model_with_dims(model, &dim, 1, &other) == SLUICE_INVALID_ARGUMENT);
  const sluice_dim nameless{nullptr, 1}, dim{"rows", 1};
  CHECK(sluice_model_with_dims(model, &nameless, 1, &other) == SLUICE_INVALID_ARGUMENT);
  CHECK(sluice_model_with_dims(model, nullptr, 1, &other) == SLUICE_INVALID_ARGUMENT);
  CHECK(other == nullptr);
  REQUIRE(sluice_model_with_dims(model, &dim, 1, &other) == SLUICE_OK);
  sluice_model_close(model);

  sluice_port_info info;
  REQUIRE(sluice_input_info(other, 0, &info) == SLUICE_OK);
  CHECK(info.shape[0] == 1);
  sluice_session* session = nullptr;
  REQUIRE(sluice_session_create(other, nullptr, &session) == SLUICE_OK);
  std::vector<float> output(10);
  REQUIRE(sluice_session_set_input(session, 0, three.input.data(), 64 * sizeof(float)) == SLUICE_OK);
  REQUIRE(sluice_session_run(session) == SLUICE_OK);
  REQUIRE(sluice_session_get_output(session, 0, output.data(), output.size() * sizeof(float)) == SLUICE_OK);
  CHECK(output == std::vector<float>(three.expected.begin(), three.expected.begin() + 10));
  sluice_session_close(session);
  sluice_model_close(other);
}

}  // namespace sluice
