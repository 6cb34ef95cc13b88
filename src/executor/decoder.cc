#include "sluice/executor/decoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/core/hash.h"
#include "sluice/core/sort.h"
#include "src/core/out_of_memory.h"
#include "src/core/wipe.h"
#include "src/executor/checksum_error.h"
#include "src/executor/coding/stretch_decoder.h"
#include "src/model/built_features.h"
#include "src/model/cipher.h"

namespace sluice::executor {
namespace {

/// Decoders are made of two parts: one that judges the stored bytes, and one that makes values of those it has passed.
template <class Judge, class Expand>
class JudgeAndExpand final : public Decoder {
 public:
  JudgeAndExpand(Judge judge, Expand expand) : judge_(std::move(judge)), expand_(std::move(expand)) {}
  Status decode(const StretchBytes& bytes) noexcept override {
    SLUICE_RETURN_IF_ERROR(judge_(bytes));
    return expand_(bytes);
  }

 private:
  Judge judge_;
  Expand expand_;
};

/// The stored bytes have the stretch's hash.
struct Checksum {
  Status operator()(const StretchBytes& bytes) const noexcept { return verify_checksum(bytes); }
};

/// They have its tag, and are decrypted where they lie.
class Decrypt {
 public:
  explicit Decrypt(model::Cipher cipher) noexcept : cipher_(std::move(cipher)) {}
  Status operator()(const StretchBytes& bytes) noexcept {
    const model::Stretch& stretch = bytes.stretch();
    if (model::open_stretch(cipher_, stretch, bytes.index, bytes.graph.tags[bytes.index], bytes.stored)) return {};
    wipe(bytes.stored);  // whatever it has become, it is nothing to be looked at
    return fail(checksum_error(bytes.graph.name, stretch.offset));
  }

 private:
  model::Cipher cipher_;
};

/// Stored as used. A raw stretch in a load of stretches that expand is moved to its place among them.
struct Move {
  Status operator()(const StretchBytes& bytes) const noexcept {
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
  sluice::sort(runs.begin(), runs.end(), [](const CodedRun& a, const CodedRun& b) { return a.first_stretch < b.first_stretch; });
  return runs;
}

/// Entropy-coded (model/code.h). A weight's stretches come one after the other, so that its table is made once for many.
class Uncode {
 public:
  explicit Uncode(std::vector<CodedRun> runs) : runs_(std::move(runs)), decoder_(std::make_unique<coding::StretchDecoder>()) {}

  Status operator()(const StretchBytes& bytes) noexcept {
    if (run_ == nullptr || bytes.index < run_->first_stretch || bytes.index >= run_->end) {
      const auto behind = [](std::uint32_t index, const CodedRun& run) { return index < run.first_stretch; };
      run_ = &*std::prev(std::upper_bound(runs_.begin(), runs_.end(), bytes.index, behind));  // G5: what is coded has a table
      decoder_->take(bytes.graph.codes[run_->code]);
    }
    if (decoder_->decode(bytes.stored, bytes.raw)) return {};
    return fail(ErrorCode::kInvalidModel, bytes.graph.name, "coded weights do not give as many values as they should");
  }

 private:
  std::vector<CodedRun> runs_;
  const CodedRun* run_ = nullptr;  // whose table the decoder has
  std::unique_ptr<coding::StretchDecoder> decoder_;
};

/// Fills in the decoders of raw and coded stretches, encrypted or not, that `graph` has; `judge()` makes the part that passes them.
template <class MakeJudge>
Result<Decoders> decoders_of(const model::Graph& graph, model::StretchForm encryption, const MakeJudge& make_judge) {
  Decoders decoders;
  const auto add = [&](model::StretchForm form, auto expand) -> Status {
    SLUICE_ASSIGN_OR_RETURN(auto judge, make_judge());
    using Made = JudgeAndExpand<decltype(judge), decltype(expand)>;
    decoders[index_of(form | encryption)] = std::make_unique<Made>(std::move(judge), std::move(expand));
    return {};
  };
  SLUICE_RETURN_IF_ERROR(add(model::StretchForm::kRaw, Move()));
  if (model::is_built(model::Feature::kCodedStretches) && !graph.codes.empty())
    SLUICE_RETURN_IF_ERROR(add(model::StretchForm::kCoded, Uncode(coded_runs(graph))));
  return decoders;
}

Result<Decoders> decoders_with(const model::Graph& graph, const model::FileKey& key) {
  return decoders_of(graph, model::StretchForm::kEncrypted, [&]() -> Result<Decrypt> {
    SLUICE_ASSIGN_OR_RETURN(model::Cipher cipher, model::Cipher::make(key, model::Direction::kDecrypt, graph.name));
    return Decrypt(std::move(cipher));
  });
}

Result<Decoders> decoders_without_key(const model::Graph& graph) {
  return decoders_of(graph, model::StretchForm::kRaw, []() -> Result<Checksum> { return Checksum(); });
}

}  // namespace

Status verify_checksum(const StretchBytes& bytes) noexcept {
  const model::Stretch& stretch = bytes.stretch();
  if (xxh3_64(bytes.stored) == stretch.xxh3) return {};
  return fail(checksum_error(bytes.graph.name, stretch.offset));
}

Result<Decoders> make_decoders(const model::Graph& graph, const model::FileKey* key) noexcept {
  return or_out_of_memory(graph.name, [&] {
    // Files with a key, or with codes, are refused when they are opened where a build has no code for them.
    return key == nullptr || !model::is_built(model::Feature::kEncryption) ? decoders_without_key(graph) : decoders_with(graph, *key);
  });
}

Bytes decoder_bytes(const model::Graph& graph) noexcept {
  constexpr std::uint64_t kCipher = 2048 + sizeof(model::WideGcm);  // OpenSSL's context, and the same once more in wide registers
  std::uint64_t bytes = graph.tags.empty() ? 0 : 2 * kCipher;
  if (!graph.codes.empty()) bytes += sizeof(coding::StretchDecoder) + graph.weights.size() * sizeof(CodedRun);
  return Bytes(bytes);
}

}  // namespace sluice::executor
