// The weights of one model file whose graphs are of several shapes: those of the bound's graph, and what other graphs have beside them.
//
// Graphs of one ONNX file nearly always read the same values, most of them straight from the mapped file, so that comparing where they come
// from is enough; what was computed is compared byte for byte. Beside them there are constants that follow from the extents themselves
// (positions, masks): their bytes are kept here until they are written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/importer/emit.h"

namespace sluice::importer {

class WeightPool final : public model::WeightProducer {
 public:
  /// Of the bound's graph. What `recipes` view must outlive the pool.
  WeightPool(const model::Graph& graph, std::vector<Recipe> recipes);

  /// Makes the ids of weights in `graph` those of the pool, which takes what it has not got. Refuses when that becomes too much.
  void share(model::Graph& graph, std::vector<Recipe> recipes);

  const std::vector<model::Weight>& weights() const noexcept { return weights_; }
  /// Of weights that the bound's graph does not read.
  Bytes added_bytes() const noexcept { return added_bytes_; }

  Status produce(WeightId id, PanelRange p, std::span<std::byte> out) override;

 private:
  bool equal(std::size_t mine, const model::Weight& weight, WeightId theirs, Packer& packer);
  std::size_t add(const model::Weight& weight, WeightId theirs, Packer& packer);

  Packer packer_;                // of the first weights
  std::size_t first_added_ = 0;  // the others follow, with their bytes
  std::vector<std::vector<std::byte>> packed_;
  std::vector<model::Weight> weights_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_name_;
  Bytes added_bytes_;
};

}  // namespace sluice::importer
