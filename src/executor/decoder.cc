#include "sluice/executor/decoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "sluice/core/hash.h"
#include "src/core/out_of_memory.h"
#include "src/executor/checksum_error.h"
#include "src/executor/coding/stretch_decoder.h"

namespace sluice::executor {
namespace {

/// Stored as used: only the checksum is left to do. A raw stretch in a load of stretches that expand is moved to its place among them.
class RawDecoder final : public Decoder {
 public:
  Status decode(const StretchBytes& bytes) noexcept override {
    SLUICE_RETURN_IF_ERROR(verify_checksum(bytes));
    if (bytes.raw.data() != bytes.stored.data()) std::memmove(bytes.raw.data(), bytes.stored.data(), bytes.raw.size());
    return {};
  }
};

/// A run of stretches with one table.
struct CodedRun {
  std::uint32_t first_stretch = 0;
  std::uint32_t end = 0;
  std::uint32_t code = 0;
};

/// By stretch: the weights that have a table.
std::vector<CodedRun> coded_runs(const model::Graph& graph) {
  std::vector<CodedRun> runs;
  runs.reserve(graph.weights.size());
  for (const model::Weight& weight : graph.weights)
    if (weight.code != model::kNoCode) runs.push_back({weight.first_stretch, weight.first_stretch + weight.stretch_count, weight.code});
  std::sort(runs.begin(), runs.end(), [](const CodedRun& a, const CodedRun& b) { return a.first_stretch < b.first_stretch; });
  return runs;
}

/// Entropy-coded (model/code.h). A weight's stretches come one after the other, so that its table is made once for many.
class CodedDecoder final : public Decoder {
 public:
  explicit CodedDecoder(std::vector<CodedRun> runs) noexcept : runs_(std::move(runs)) {}

  Status decode(const StretchBytes& bytes) noexcept override {
    SLUICE_RETURN_IF_ERROR(verify_checksum(bytes));
    if (run_ == nullptr || bytes.index < run_->first_stretch || bytes.index >= run_->end) {
      const auto behind = [](std::uint32_t index, const CodedRun& run) { return index < run.first_stretch; };
      run_ = &*std::prev(std::upper_bound(runs_.begin(), runs_.end(), bytes.index, behind));  // G5: what is coded has a table
      decoder_.take(bytes.graph.codes[run_->code]);
    }
    if (decoder_.decode(bytes.stored, bytes.raw)) return {};
    return fail(ErrorCode::kInvalidModel, bytes.graph.name, "coded weights do not give as many values as they should");
  }

 private:
  const std::vector<CodedRun> runs_;
  const CodedRun* run_ = nullptr;  // whose table the decoder has
  coding::StretchDecoder decoder_;
};

}  // namespace

Status verify_checksum(const StretchBytes& bytes) noexcept {
  const model::Stretch& stretch = bytes.stretch();
  if (xxh3_64(bytes.stored) == stretch.xxh3) return {};
  return fail(checksum_error(bytes.graph.name, stretch.offset));
}

Result<Decoders> make_decoders(const model::Graph& graph) noexcept {
  Decoders decoders;
  std::unique_ptr<Decoder>& raw = decoders[index_of(model::StretchForm::kRaw)];
  raw.reset(new (std::nothrow) RawDecoder);
  if (!raw) return fail(ErrorCode::kOutOfMemory, graph.name, "no memory for what decodes weights");
  if (!graph.codes.empty()) {
    const Status made = or_out_of_memory(graph.name, [&]() -> Status {
      decoders[index_of(model::StretchForm::kCoded)] = std::make_unique<CodedDecoder>(coded_runs(graph));
      return {};
    });
    if (!made) return fail(made.error());
  }
  return decoders;
}

Bytes decoder_bytes(const model::Graph& graph) noexcept {
  if (graph.codes.empty()) return {};
  return Bytes(sizeof(CodedDecoder) + graph.weights.size() * sizeof(CodedRun));
}

}  // namespace sluice::executor
