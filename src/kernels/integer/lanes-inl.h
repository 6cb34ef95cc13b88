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

/// What a run gives: bytes, of multipliers that are `small` or of any; or sums as they are or times the multiplier.
enum class Results { kSmallBytes, kBytes, kWide };
template <Results kResults>
inline constexpr std::int64_t kOutBytes = kResults == Results::kWide ? 4 : 1;

/// The weights of a group and what becomes of its sums.
struct Group {
  const std::int8_t* weights;
  const std::byte* bias;
  const std::byte* multipliers;
  V::PackedRange range;

  Group(const LaneRun& run, const std::byte* prepared, std::int64_t fours)
      : weights(reinterpret_cast<const std::int8_t*>(prepared)),
        bias(prepared + fours * 4 * V::kBytes),
        multipliers(bias + 4 * V::kBytes),
        range(V::packed_range(run.range)) {}

  SLUICE_INLINE V::Sums start(int j) const { return V::load(reinterpret_cast<const std::int32_t*>(bias + j * V::kBytes)); }
  SLUICE_INLINE const float* multipliers_of(int j) const { return reinterpret_cast<const float*>(multipliers + j * V::kBytes); }
  SLUICE_INLINE void add(V::Sums (&sums)[4], const Quads& quads, std::int64_t four) const {
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j)
      sums[j] = V::dot_exact(sums[j], V::values_of(quads.quarter[j]), V::weights(weights + (four * 4 + j) * V::kBytes));
  }
  template <Results kResults>
  SLUICE_INLINE void store(V::Sums (&sums)[4], const LaneRun& run, std::byte* out, std::int64_t live) const {
    if constexpr (kResults == Results::kWide) {
      store_wide(sums, run, out, live);
    } else {
      SLUICE_UNROLL
      for (int j = 0; j < 4; ++j) {
        const V::Reals multiplier = V::load(multipliers_of(j));
        sums[j] = kResults == Results::kSmallBytes ? V::packable_small(sums[j], multiplier) : V::packable(sums[j], multiplier);
      }
      V::store_vector(V::pack_in_blocks(sums[0], sums[1], sums[2], sums[3], range), reinterpret_cast<std::uint8_t*>(out), live);
    }
  }
  /// Four neighbouring channels are 128 bits of a vector.
  SLUICE_INLINE void store_wide(V::Sums (&sums)[4], const LaneRun& run, std::byte* out, std::int64_t live) const {
    std::int32_t lanes[4][V::kLanes];
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (run.type == DType::kF32) sums[j] = V::bits(V::times(V::reals(sums[j]), V::load(multipliers_of(j))));
      V::store(sums[j], lanes[j], V::kLanes);
    }
    for (std::int64_t c = 0; c < live && c < V::kBytes; c += 4) {
      const std::int64_t bytes = (live - c < 4 ? live - c : 4) * 4;
      __builtin_memcpy(out + c * 4, lanes[c / 4 % 4] + c / 16 * 4, static_cast<std::size_t>(bytes));
    }
  }
};

/// One group of channels, all pixels, any taps.
template <Results kResults>
SLUICE_INLINE void group_run(const LaneRun& run, const Group& group, std::int64_t channel) {
  const std::uint8_t* taps[kMostLaneTaps];
  for (std::int64_t t = 0; t < run.fours * 4; ++t) taps[t] = run.taps[t] + channel;
  for (std::int64_t i = 0; i < run.count; ++i) {
    V::Sums sums[4] = {group.start(0), group.start(1), group.start(2), group.start(3)};
    for (std::int64_t four = 0; four < run.fours; ++four) {
      const auto tap = [&](std::int64_t t) __attribute__((always_inline)) {
        const V::ByteVector values = V::load_vector(taps[four * 4 + t]);
        taps[four * 4 + t] += run.steps[four * 4 + t];
        return values;
      };
      group.add(sums, interleaved(tap(0), tap(1), tap(2), tap(3)), four);
    }
    group.store<kResults>(sums, run, run.out + i * run.out_step + channel * kOutBytes<kResults>, run.channels - channel);
  }
}

/// Sums of nine taps in three rows, with weights that stay in registers where there are enough. Behind the ninth tap weights are zero, so
/// it stands for those that are not there.
struct NineTaps {
  V::Weights weights[3][4];

  explicit SLUICE_INLINE NineTaps(const Group& group) {
    SLUICE_UNROLL
    for (int i = 0; i < 12; ++i) weights[i / 4][i % 4] = V::weights(group.weights + i * V::kBytes);
  }
  SLUICE_INLINE void add(V::Sums (&sums)[4], const Quads& quads, int four) const {
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) sums[j] = V::dot_exact(sums[j], V::values_of(quads.quarter[j]), weights[four][j]);
  }
  SLUICE_INLINE void add(V::Sums (&sums)[4], const std::uint8_t* const (&rows)[3], const std::int64_t (&steps)[3]) const {
    const V::ByteVector a0 = V::load_vector(rows[0]), a1 = V::load_vector(rows[0] + steps[0]), a2 = V::load_vector(rows[0] + 2 * steps[0]);
    const V::ByteVector b0 = V::load_vector(rows[1]), b1 = V::load_vector(rows[1] + steps[1]), b2 = V::load_vector(rows[1] + 2 * steps[1]);
    const V::ByteVector c0 = V::load_vector(rows[2]), c1 = V::load_vector(rows[2] + steps[2]), c2 = V::load_vector(rows[2] + 2 * steps[2]);
    add(sums, interleaved(a0, a1, a2, b0), 0);
    add(sums, interleaved(b1, b2, c0, c1), 1);
    add(sums, interleaved(c2, c2, c2, c2), 2);
  }
};

/// As group_run, of `even_rows`: three pointers.
template <Results kResults>
SLUICE_INLINE void group_run_three(const LaneRun& run, const Group& group, std::int64_t channel) {
  const std::uint8_t* rows[3] = {run.taps[0] + channel, run.taps[3] + channel, run.taps[6] + channel};
  const std::int64_t column_steps[3] = {run.taps[1] - run.taps[0], run.taps[4] - run.taps[3], run.taps[7] - run.taps[6]};
  std::byte* out = run.out + channel * kOutBytes<kResults>;
  const NineTaps taps(group);
  for (std::int64_t i = 0; i < run.count; ++i, out += run.out_step) {
    V::Sums sums[4] = {group.start(0), group.start(1), group.start(2), group.start(3)};
    taps.add(sums, rows, column_steps);
    group.store<kResults>(sums, run, out, run.channels - channel);
    SLUICE_UNROLL
    for (int ky = 0; ky < 3; ++ky) rows[ky] += run.steps[3 * ky];
  }
}

template <Results kResults>
SLUICE_INLINE void group_run_of(const LaneRun& run, const Group& group, std::int64_t channel) {
  run.even_rows ? group_run_three<kResults>(run, group, channel) : group_run<kResults>(run, group, channel);
}

void run_lanes(const LaneRun& run) noexcept {
  const std::byte* prepared = run.prepared;
  for (std::int64_t channel = 0; channel < run.channels; channel += V::kBytes, prepared += (run.fours + 2) * 4 * V::kBytes) {
    const Group group(run, prepared, run.fours);
    if (run.type != DType::kU8)
      group_run_of<Results::kWide>(run, group, channel);
    else if (V::template small<4>(group.multipliers_of(0)))
      group_run_of<Results::kSmallBytes>(run, group, channel);
    else
      group_run_of<Results::kBytes>(run, group, channel);
  }
}
