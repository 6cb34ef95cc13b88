// Decides which weights of a model are coded, and codes them for the writer (model/model_writer.h).
//
// A weight of b bytes that shrinks to s is read in b / disk, or coded in max(s / disk, s / checksums + symbols / decoder), since a stretch is
// judged and decoded while the next ones are read: where the disk is fast, coding integers, a symbol a byte, would only cost. `kAuto`
// compares the two.
//
// Floats of few bits, such as whole numbers times a scale, are zeros in their lower bytes: coded byte by byte they are smaller than with those
// copied, and slower to decode. `kSmall` takes that where it is smaller.
#pragma once

#include "sluice/importer/importer.h"
#include "sluice/model/model_writer.h"
#include "src/importer/coding/encoder.h"

namespace sluice::importer::coding {

class WeightCoder final : public model::StretchCoder {
 public:
  WeightCoder(Coding coding, double disk_bytes_per_second) noexcept : coding_(coding), disk_bytes_per_second_(disk_bytes_per_second) {}

  bool begin(const model::Weight& weight) override;
  void look(std::span<const std::byte> raw) override;
  std::optional<model::Code> end() override;
  std::optional<std::vector<std::byte>> encode(const model::Code& code, std::span<const std::byte> raw) override;

 private:
  struct Choice {
    model::CodePlane plane = model::CodePlane::kBytes;
    Counts counts{};
  };

  double stored_bytes(const model::Code& code, const Counts& counts) const noexcept;
  bool pays(model::CodePlane plane, double stored) const noexcept;

  const Coding coding_;
  const double disk_bytes_per_second_;
  // Of the weight that was begun:
  Choice of_type_;  // what values of its type gain most by
  Choice bytes_;    // the other one, looked at where it may be taken
  bool has_other_ = false;
  double raw_bytes_ = 0;
  double head_bytes_ = 0;  // of its blocks
};

}  // namespace sluice::importer::coding
