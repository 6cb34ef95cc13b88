// Runs over a set of vector operations `V`: four vectors of reals at a time, whose results are packed to one of bytes; what is left goes
// through memory. Included once for each instruction set, in a namespace without external names and behind SLUICE_BEGIN_TARGET, after
// lanes-inl.h.

inline constexpr std::int64_t kChunk = V::kBytes;

/// Calls chunk(in, out) for each kChunk values; In is what they are made of.
template <class In, class Out, class Chunk>
SLUICE_INLINE void for_chunks(const In* in, Out* out, std::int64_t n, const Chunk& chunk) {
  std::int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) chunk(in + i, out + i);
  if (i == n) return;
  In first[kChunk] = {};
  Out results[kChunk];
  __builtin_memcpy(first, in + i, static_cast<std::size_t>(n - i) * sizeof(In));
  chunk(first, results);
  __builtin_memcpy(out + i, results, static_cast<std::size_t>(n - i) * sizeof(Out));
}

/// value - zero of vector `v` of a chunk.
SLUICE_INLINE V::Reals centred(const std::uint8_t* chunk, int v, V::Sums zero) {
  return V::reals(V::minus(V::load_bytes(chunk + v * V::kLanes, V::kLanes), zero));
}
/// (value - zero) * scale.
SLUICE_INLINE V::Reals real(const std::uint8_t* chunk, int v, V::Sums zero, V::Reals scale) {
  return V::times(centred(chunk, v, zero), scale);
}

void run_quantize(const operators::IntegerBorderParameters& p, const float* in, std::uint8_t* out, std::int64_t n) noexcept {
  const Divisor scale = divisor_of(p.scale);
  const V::PackedRange range = V::packed_range({.zero = p.zero});
  for_chunks(
      in, out, n, [&](const float* from, std::uint8_t* to) __attribute__((always_inline)) {
        V::Sums integers[4];
        SLUICE_UNROLL
        for (int v = 0; v < 4; ++v) integers[v] = V::packable(divide(V::load(from + v * V::kLanes), scale));
        V::store_vector(V::pack(integers[0], integers[1], integers[2], integers[3], range), to, kChunk);
      });
}

void run_dequantize(const operators::IntegerBorderParameters& p, const std::uint8_t* in, float* out, std::int64_t n) noexcept {
  const V::Sums zero = V::set_sum(p.zero);
  const V::Reals scale = V::set(p.scale);
  for_chunks(
      in, out, n, [&](const std::uint8_t* from, float* to) __attribute__((always_inline)) {
        SLUICE_UNROLL
        for (int v = 0; v < 4; ++v) V::store_reals(real(from, v, zero, scale), to + v * V::kLanes);
      });
}

/// What joins two operands that are neither added nor multiplied.
template <BinaryFunction kFunction>
SLUICE_INLINE V::Reals join(V::Reals a, V::Reals b) {
  switch (kFunction) {
    case BinaryFunction::kDiv:
      return V::divide(a, b);
    case BinaryFunction::kMax:
      return V::at_least(a, b);
    case BinaryFunction::kMin:
      return V::at_most(a, b);
    default:
      return V::minus(a, b);
  }
}

/// Two operands of one vector, as integers that packing bounds (IntegerBinaryParameters).
template <BinaryFunction kFunction>
struct Joined {
  static constexpr bool kAdds = kFunction == BinaryFunction::kAdd, kMultiplies = kFunction == BinaryFunction::kMul;
  V::Sums zero_a, zero_b;
  V::Reals scale_a, scale_b, zero, ratio;
  Divisor scale;
  Addition addition;
  V::PackedRange range;

  explicit SLUICE_INLINE Joined(const operators::IntegerBinaryParameters& p)
      : zero_a(V::set_sum(kAdds ? p.addition.offset : p.zero_a)),
        zero_b(V::set_sum(kAdds ? p.addition.offset : p.zero_b)),
        scale_a(V::set(p.scale_a)),
        scale_b(V::set(p.scale_b)),
        zero(V::set(static_cast<float>(p.range.zero))),
        ratio(V::set(p.scale_a * p.scale_b / p.scale)),
        scale(divisor_of(p.scale)),
        addition(p.addition),
        range(V::packed_range({.zero = kAdds         ? p.addition.offset
                                       : kMultiplies ? std::uint8_t{0}
                                                     : p.range.zero,
                               .low = p.range.low,
                               .high = p.range.high})) {}

  SLUICE_INLINE V::Sums integers(const std::uint8_t* a, const std::uint8_t* b, int v) const {
    if constexpr (kAdds) {
      return V::packable(addition(centred(a, v, zero_a), centred(b, v, zero_b)));
    } else if constexpr (kMultiplies) {
      return V::packable(V::add(V::times(V::times(centred(a, v, zero_a), centred(b, v, zero_b)), ratio), zero));
    } else {
      return V::packable(divide(join<kFunction>(real(a, v, zero_a, scale_a), real(b, v, zero_b, scale_b)), scale));
    }
  }
};

template <BinaryFunction kFunction>
void binary_of(const operators::IntegerBinaryParameters& p, ByteStream a, ByteStream b, std::uint8_t* out, std::int64_t n) noexcept {
  const Joined<kFunction> joined(p);
  // A repeated value becomes a chunk of itself.
  std::uint8_t same_a[kChunk], same_b[kChunk];
  __builtin_memset(same_a, *a.values, sizeof same_a);
  __builtin_memset(same_b, *b.values, sizeof same_b);
  const auto chunk = [&](const std::uint8_t* from_a, const std::uint8_t* from_b, std::uint8_t* to) __attribute__((always_inline)) {
    V::Sums integers[4];
    SLUICE_UNROLL
    for (int v = 0; v < 4; ++v) integers[v] = joined.integers(from_a, from_b, v);
    V::store_vector(V::pack(integers[0], integers[1], integers[2], integers[3], joined.range), to, kChunk);
  };
  std::int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) chunk(a.step == 0 ? same_a : a.values + i, b.step == 0 ? same_b : b.values + i, out + i);
  if (i == n) return;
  std::uint8_t results[kChunk];
  if (a.step != 0) __builtin_memcpy(same_a, a.values + i, static_cast<std::size_t>(n - i));
  if (b.step != 0) __builtin_memcpy(same_b, b.values + i, static_cast<std::size_t>(n - i));
  chunk(same_a, same_b, results);
  __builtin_memcpy(out + i, results, static_cast<std::size_t>(n - i));
}

void run_binary(const operators::IntegerBinaryParameters& p, ByteStream a, ByteStream b, std::uint8_t* out, std::int64_t n) noexcept {
  switch (p.function) {
    case BinaryFunction::kSub:
      return binary_of<BinaryFunction::kSub>(p, a, b, out, n);
    case BinaryFunction::kMul:
      return binary_of<BinaryFunction::kMul>(p, a, b, out, n);
    case BinaryFunction::kDiv:
      return binary_of<BinaryFunction::kDiv>(p, a, b, out, n);
    case BinaryFunction::kMax:
      return binary_of<BinaryFunction::kMax>(p, a, b, out, n);
    case BinaryFunction::kMin:
      return binary_of<BinaryFunction::kMin>(p, a, b, out, n);
    default:
      return binary_of<BinaryFunction::kAdd>(p, a, b, out, n);
  }
}

/// What joins four neighbours.
struct Blend {
  V::Sums zero;
  V::Reals scale_in;
  Divisor scale;
  V::PackedRange range;

  explicit SLUICE_INLINE Blend(const operators::IntegerResizeParameters& p)
      : zero(V::set_sum(p.zero_in)), scale_in(V::set(p.scale_in)), scale(divisor_of(p.scale)), range(V::packed_range(p.range)) {}

  SLUICE_INLINE V::Sums integers(const std::uint8_t* const (&from)[4], const V::Reals (&weights)[4], int count) const {
    const auto weighted = [&](int i) __attribute__((always_inline)) {
      return V::times(weights[i], V::times(V::reals(V::minus(V::load_bytes(from[i], count), zero)), scale_in));
    };
    V::Reals sum = weighted(0);
    SLUICE_UNROLL
    for (int i = 1; i < 4; ++i) sum = V::add(sum, weighted(i));
    return V::packable(divide(sum, scale));
  }
};

/// `lanes` in place of the row's columns.
void run_blend_lanes(const operators::IntegerResizeParameters& p, const BlendRow& row, const BlendLanes& lanes) noexcept {
  const Blend blend(p);
  const V::Reals above = V::set(row.weights[0]), below = V::set(row.weights[1]);
  const V::Sums none = V::set_sum(0);
  for (int lane = 0; lane < lanes.count; lane += V::kLanes) {
    const V::Reals left = V::load(lanes.weights[0] + lane), right = V::load(lanes.weights[1] + lane);
    const V::Sums sums =
        blend.integers({lanes.bytes[0] + lane, lanes.bytes[1] + lane, lanes.bytes[2] + lane, lanes.bytes[3] + lane},
                       {V::times(left, above), V::times(right, above), V::times(left, below), V::times(right, below)}, V::kLanes);
    V::store_vector(V::pack(sums, none, none, none, blend.range), row.out + lane,
                    lanes.count - lane < V::kLanes ? lanes.count - lane : V::kLanes);
  }
}

void run_blend(const operators::IntegerResizeParameters& p, const BlendRow& row) noexcept {
  const Blend blend(p);
  for (std::int64_t x = 0; x < row.pixels; ++x) {
    const BlendColumn& column = row.columns[x];
    const std::uint8_t* from[4];
    V::Reals weights[4];
    for (int i = 0; i < 4; ++i) {
      from[i] = row.rows[i / 2] + column.from[i % 2];
      weights[i] = V::set(column.weights[i % 2] * row.weights[i / 2]);
    }
    const auto sums_at = [&](std::int64_t c, int count) __attribute__((always_inline)) {
      return blend.integers({from[0] + c, from[1] + c, from[2] + c, from[3] + c}, weights, count);
    };
    std::uint8_t* const out = row.out + x * row.pitch;
    for (std::int64_t c = 0; c < row.channels; c += kChunk) {
      const std::int64_t live = row.channels - c;
      V::Sums sums[4] = {V::set_sum(0), V::set_sum(0), V::set_sum(0), V::set_sum(0)};
      SLUICE_UNROLL
      for (int v = 0; v < 4; ++v) {
        const std::int64_t left = live - v * V::kLanes;
        if (left > 0) sums[v] = sums_at(c + v * V::kLanes, left < V::kLanes ? static_cast<int>(left) : V::kLanes);
      }
      V::store_vector(V::pack(sums[0], sums[1], sums[2], sums[3], blend.range), out + c, live);
    }
  }
}

void run_look_up(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = table[in[i]];
}

void run_largest(const WindowRun& run, std::uint8_t* out) noexcept {
  const V::ByteVector low = V::set_bytes(run.range.low), high = V::set_bytes(run.range.high);
  for (std::int64_t c = 0; c < run.values; c += kChunk) {
    V::ByteVector most = low;  // nothing is less in the end
    for (std::int64_t row = 0; row < run.row_count; ++row) {
      const std::uint8_t* from = run.rows[row] + c;
      for (std::int64_t x = 0; x < run.columns; ++x, from += run.column_step) most = V::larger(most, V::load_vector(from));
    }
    V::store_vector(V::smaller(most, high), out + c, run.values - c);
  }
}

/// Adds what the bytes stand for.
struct MeanOfReals {
  const WindowRun& run;
  V::Sums zero;
  V::Reals scale_in, count, zero_out;
  Divisor scale;
  V::PackedRange range;

  explicit MeanOfReals(const WindowRun& of)
      : run(of),
        zero(V::set_sum(of.zero_in)),
        scale_in(V::set(of.scale_in)),
        count(V::set(of.count)),
        zero_out(V::set(static_cast<float>(of.range.zero - of.offset))),
        scale(divisor_of(of.scale)),
        range(V::packed_range({.zero = of.offset, .low = of.range.low, .high = of.range.high})) {}

  /// The first kVectors vectors of the chunk at value `c`.
  template <int kVectors>
  SLUICE_INLINE void chunk(std::int64_t c, std::uint8_t* out) const {
    V::Reals sums[kVectors];
    for (auto& sum : sums) sum = V::set(0.0f);
    for (std::int64_t row = 0; row < run.row_count; ++row) {
      const std::uint8_t* from = run.rows[row] + c;
      for (std::int64_t x = 0; x < run.columns; ++x, from += run.column_step) {
        SLUICE_UNROLL
        for (int v = 0; v < kVectors; ++v) sums[v] = V::add(sums[v], real(from, v, zero, scale_in));
      }
    }
    V::Sums integers[4] = {V::set_sum(0), V::set_sum(0), V::set_sum(0), V::set_sum(0)};
    SLUICE_UNROLL
    for (int v = 0; v < kVectors; ++v) integers[v] = V::packable(V::add(divide(V::divide(sums[v], count), scale), zero_out));
    V::store_vector(V::pack(integers[0], integers[1], integers[2], integers[3], range), out + c, run.values - c);
  }
};

void run_mean_of_reals(const WindowRun& run, std::uint8_t* out) noexcept {
  const MeanOfReals mean(run);
  std::int64_t c = 0;
  for (; c + 3 * V::kLanes < run.values; c += kChunk) mean.chunk<4>(c, out);
  const std::int64_t left = run.values - c;
  if (left > 2 * V::kLanes) return mean.chunk<3>(c, out);
  if (left > V::kLanes) return mean.chunk<2>(c, out);
  if (left > 0) mean.chunk<1>(c, out);
}

/// Sums of a whole image as those of a depthwise convolution whose weights are 1.
void run_mean(const WindowRun& run, std::uint8_t* out) noexcept {
  if (!run.whole) return run_mean_of_reals(run, out);
  std::int8_t one[kChunk];
  __builtin_memset(one, 1, sizeof one);
  const V::Weights ones = V::weights(one);
  const V::PackedRange range = V::packed_range(run.range);
  const V::Reals multiplier = V::set(run.multiplier);
  const V::ByteVector none = V::set_bytes(0);
  const V::Sums zero = V::set_sum(static_cast<std::int32_t>(0u - run.zero_in * static_cast<std::uint32_t>(run.row_count * run.columns)));
  for (std::int64_t c = 0; c < run.values; c += kChunk) {
    V::Sums sums[4] = {zero, zero, zero, zero};
    for (std::int64_t row = 0; row < run.row_count; ++row) {
      const std::uint8_t* from = run.rows[row] + c;
      for (std::int64_t x = 0; x < run.columns; x += 4, from += 4 * run.column_step) {
        const auto tap = [&](std::int64_t i) __attribute__((always_inline)) {
          return x + i < run.columns ? V::load_vector(from + i * run.column_step) : none;
        };
        const Quads quads = interleaved(tap(0), tap(1), tap(2), tap(3));
        SLUICE_UNROLL
        for (int j = 0; j < 4; ++j) sums[j] = V::dot_exact(sums[j], V::values_of(quads.quarter[j]), ones);
      }
    }
    SLUICE_UNROLL
    for (int j = 0; j < 4; ++j) sums[j] = V::packable(sums[j], multiplier);
    V::store_vector(V::pack_in_blocks(sums[0], sums[1], sums[2], sums[3], range), out + c, run.values - c);
  }
}
