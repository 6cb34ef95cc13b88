#include <bit>
#include <cstring>

#include "sluice/model/code.h"
#include "src/executor/coding/rounds.h"
#include "src/executor/coding/step.h"

namespace sluice::executor::coding {
namespace {

template <model::CodePlane kPlane>
const std::uint8_t* run(const Rounds& rounds) noexcept {
  constexpr std::size_t kValueBytes = model::value_bytes_of(kPlane);
  const std::uint8_t* words = rounds.words;
  const std::uint8_t* other = rounds.other;
  std::uint8_t* out = rounds.out;
  for (std::size_t round = 0; round < rounds.count; ++round) {
    for (std::size_t lane = 0; lane < model::kCodeLanes; ++lane) {
      const std::uint8_t symbol = take_step(rounds.table, rounds.states[lane], words);
      put_value<kPlane>(symbol, other, out);
      other += kValueBytes - 1;
      out += kValueBytes;
    }
    if (words > rounds.words_end) return nullptr;
  }
  return words;
}

}  // namespace

extern const RoundsTable kScalarRounds = {&run<model::CodePlane::kBytes>, &run<model::CodePlane::kRotated16>,
                                          &run<model::CodePlane::kRotated32>};

}  // namespace sluice::executor::coding
