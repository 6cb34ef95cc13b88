// Depthwise runs over a set of vector operations `V` (depthwise.h has the order of lanes). Included once for each instruction set, in a
// namespace without external names and behind SLUICE_BEGIN_TARGET.

/// Four taps, interleaved: dwords of vector j are channels 4 j and on of each 128-bit block.
struct Quads {
  V::ByteVector quarter[4];
};
SLUICE_INLINE Quads interleaved(V::ByteVector t0, V::ByteVector t1, V::ByteVector t2, V::ByteVector t3) {
  const V::ByteVector low01 = V::low_bytes(t0, t1), low23 = V::low_bytes(t2, t3);
  const V::ByteVector high01 = V::high_bytes(t0, t1), high23 = V::high_bytes(t2, t3);
  return {{V::low_pairs(low01, low23), V::high_pairs(low01, low23), V::low_pairs(high01, high23), V::high_pairs(high01, high23)}};
}

/// One group of channels, all pixels; kFours of 0: as many as the run says.
template <int kFours>
SLUICE_INLINE void group_run(const LaneRun& run, const std::byte* prepared, std::int64_t channel) {
  constexpr int kMost = kFours == 0 ? 16 : kFours;
  const std::int64_t fours = kFours == 0 ? run.fours : kFours;
  const auto* weights = reinterpret_cast<const std::int8_t*>(prepared);
  const std::byte* const bias = prepared + fours * 4 * V::kBytes;
  const std::byte* const multipliers = bias + 4 * V::kBytes;
  const V::PackedRange range = V::packed_range(run.range);
  const std::int64_t live = run.channels - channel;
  const std::uint8_t* taps[kMost * 4];
  for (std::int64_t t = 0; t < fours * 4; ++t) taps[t] = run.taps[t] + channel;
  for (std::int64_t i = 0; i < run.count; ++i) {
    V::Sums sums[4];
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) sums[j] = V::load(reinterpret_cast<const std::int32_t*>(bias + j * V::kBytes));
    const auto add_four = [&](std::int64_t four) __attribute__((always_inline)) {
      const auto tap = [&](std::int64_t t) __attribute__((always_inline)) {
        const V::ByteVector values = V::load_vector(taps[four * 4 + t]);
        taps[four * 4 + t] += run.steps[four * 4 + t];
        return values;
      };
      const Quads quads = interleaved(tap(0), tap(1), tap(2), tap(3));
      SLUICE_UNROLL
      for (int j = 0; j < 4; ++j)
        sums[j] = V::dot_exact(sums[j], V::values_of(quads.quarter[j]), V::weights(weights + (four * 4 + j) * V::kBytes));
    };
    if constexpr (kFours != 0) {
      SLUICE_UNROLL
      for (int four = 0; four < kFours; ++four) add_four(four);
    } else {
      for (std::int64_t four = 0; four < fours; ++four) add_four(four);
    }
    V::Sums integers[4];
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) integers[j] = V::packable(sums[j], V::load(reinterpret_cast<const float*>(multipliers + j * V::kBytes)));
    V::store_vector(V::pack_in_blocks(integers[0], integers[1], integers[2], integers[3], range), run.out + i * run.out_step + channel,
                    live);
  }
}

template <int kFours>
void lane_run_of(const LaneRun& run) {
  const std::int64_t fours = kFours == 0 ? run.fours : kFours;
  const std::byte* prepared = run.prepared;
  for (std::int64_t channel = 0; channel < run.channels; channel += V::kBytes, prepared += (fours + 2) * 4 * V::kBytes)
    group_run<kFours>(run, prepared, channel);
}

void run_lanes(const LaneRun& run) noexcept { run.fours == 3 ? lane_run_of<3>(run) : lane_run_of<0>(run); }
