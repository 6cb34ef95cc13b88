#include "sluice/model/model_file.h"

#include <catch2/catch.hpp>

#include "tests/model/sample_graph.h"

namespace sluice::model {
namespace {

Result<ModelFile> write_and_open(Graph& graph, const std::string& path) {
  PatternProducer producer(graph);
  SLUICE_RETURN_IF_ERROR(write_model(graph, producer, path));
  return ModelFile::open(path);
}

}  // namespace

TEST_CASE("a model file gives back the graph that was written") {
  const TemporaryDirectory directory;
  Graph graph = sample_graph();
  const auto model = write_and_open(graph, directory.file("m.sluice"));
  INFO((model ? "" : model.error().to_string()));
  REQUIRE(model);
  const Status verified = verify_weights(*model);
  INFO((verified ? "" : verified.error().to_string()));
  REQUIRE(verified);
  CHECK(directory.entries() == 1);
}

}  // namespace sluice::model
