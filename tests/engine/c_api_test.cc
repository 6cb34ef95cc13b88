#include <catch2/catch.hpp>

#include "tests/executor/toy_file.h"

extern "C" int run_model_from_c(const char* path, const void* input, std::size_t input_bytes, void* output, std::size_t output_bytes);

namespace sluice {

TEST_CASE("a C program runs a model, and its mistakes are statuses") {
  const toy::ToyModel toy = toy::make_toy_model({.rows = 2, .widths = {64, 512, 384, 10}});
  const toy::TemporaryPath path("c_api_test.sluice");
  REQUIRE(toy::write_toy_file(toy, path.str()));
  std::vector<float> output(toy.expected.size());
  CHECK(run_model_from_c(path.str().c_str(), toy.input.data(), toy.input.size() * sizeof(float), output.data(),
                         output.size() * sizeof(float)) == 0);
  CHECK(output == toy.expected);
}

}  // namespace sluice
