// What happens to sums before they are stored, over a set of vector operations `V`: the rule of rounding (operators/parameters/integer.h).
// Included once for each instruction set, in a namespace without external names and behind SLUICE_BEGIN_TARGET.

/// A range of u8 values, as vectors see it.
struct Range {
  V::Reals least, most;  // less the zero point
  V::Sums zero;
};
SLUICE_INLINE Range range_of(const IntegerRange& range) {
  return {V::set(static_cast<float>(range.low - range.zero)), V::set(static_cast<float>(range.high - range.zero)), V::set_sum(range.zero)};
}
/// Nothing but what is no number passes the first bound otherwise than by its value; that gives `least`.
SLUICE_INLINE V::Reals bounded(V::Reals value, const Range& range) { return V::at_most(V::at_least(value, range.least), range.most); }
SLUICE_INLINE V::Sums to_integers(V::Reals value, const Range& range) {
  return V::plus(V::rounded_integers(bounded(value, range)), range.zero);
}

/// What will be rounded to u8 is divided by scales. The quotient is the correctly rounded one where `inverse` is the correctly rounded
/// inverse of a divisor between 2^-60 and 2^60 and the value within 2^24 of them (Markstein); values beyond, which end at the bounds of u8,
/// are brought there, other divisors divided by. NaN stays NaN.
struct Divisor {
  V::Reals divisor, inverse, least, most;
  bool far = false;
};
SLUICE_INLINE Divisor divisor_of(float divisor) {
  const bool far = !(divisor > 0x1p-60f && divisor < 0x1p60f);
  return {V::set(divisor), V::set(far ? 0.0f : 1.0f / divisor), V::set(-0x1p24f * divisor), V::set(0x1p24f * divisor), far};
}
SLUICE_INLINE V::Reals divide(V::Reals value, const Divisor& by) {
  if (by.far) return V::divide(value, by.divisor);
  return V::quotient(V::at_least(by.least, V::at_most(by.most, value)), by.divisor, by.inverse);
}

/// What adds two tensors (operators::IntegerSum).
struct Addition {
  V::Reals ratio_a, ratio_b, constant;
  explicit SLUICE_INLINE Addition(const operators::IntegerSum& sum)
      : ratio_a(V::set(sum.ratio_a)), ratio_b(V::set(sum.ratio_b)), constant(V::set(sum.constant)) {}
  /// Of operands less the offset.
  SLUICE_INLINE V::Reals operator()(V::Reals a, V::Reals b) const { return V::fused(a, ratio_a, V::fused(b, ratio_b, constant)); }
};

/// A residual behind the sums.
struct Residual {
  Range sum_range;
  V::Reals sum_zero, offset;  // the sum's zero point, less the offset
  Addition addition;
  bool first = false;
  bool near = false;  // no sum of both is so far from the output's range that an integer does not hold it
};
SLUICE_INLINE Residual residual_of(const IntegerEpilogue& e) {
  const operators::IntegerSum& sum = e.addition;
  return {range_of({.zero = e.sum_zero}),
          V::set(static_cast<float>(e.sum_zero - sum.offset)),
          V::set(static_cast<float>(sum.offset)),
          Addition(sum),
          e.residual_first,
          sum.ratio_a + sum.ratio_b < 0x1p14f};
}
/// Both, in steps of the output, less the offset.
SLUICE_INLINE V::Reals with_residual(V::Reals value, const Residual& r, V::Sums residual) {
  const V::Reals sum = V::add(V::rounded(bounded(value, r.sum_range)), r.sum_zero);
  const V::Reals other = V::minus(V::reals(residual), r.offset);
  return r.first ? r.addition(other, sum) : r.addition(sum, other);
}

/// Sums of whole panels with a residual; false: not `near`, or this instruction set has no code for them.
template <int kRows, int kVectors>
SLUICE_INLINE bool finish_near(const V::Sums (&sums)[kRows][kVectors], const TileRows& rows, const Finish& job, std::int64_t first) {
  const Residual residual = residual_of(*job.epilogue);
  if (!residual.near) return false;
  IntegerRange bytes = job.epilogue->range;
  bytes.zero = job.epilogue->addition.offset;  // the rest is in the value
  const auto vector = [&](int m, int v) __attribute__((always_inline)) {
    const std::int64_t channel = first + v * V::kLanes;
    const V::Reals value = V::times(V::reals(sums[m][v]), V::load(job.multipliers + channel));
    return V::rounded_integers(with_residual(value, residual, V::load_bytes(rows.residual[m] + channel)));
  };
  return V::template pack_whole<kRows, kVectors>(vector, rows, bytes, first);
}

/// What is rare among the ends of u8: a residual, or multipliers that are not `small`.
template <int kRows, int kVectors>
__attribute__((noinline)) void finish_bytes(const V::Sums* sums, const TileRows& rows, const Finish& job, std::int64_t first,
                                            std::int64_t left) {
  IntegerRange bytes = job.epilogue->range;
  if (job.epilogue->has_residual) bytes.zero = job.epilogue->addition.offset;  // the rest is in the value
  const Range range = range_of(bytes);
  const Residual residual = residual_of(*job.epilogue);
  for (int m = 0; m < kRows; ++m)
    for (int v = 0; v < kVectors; ++v) {
      const int live = static_cast<int>(left - v * V::kLanes);
      if (live <= 0) break;
      const std::int64_t channel = first + v * V::kLanes;
      V::Reals value = V::times(V::reals(sums[m * kVectors + v]), V::load(job.multipliers + channel));
      if (job.epilogue->has_residual) value = with_residual(value, residual, V::load_bytes(rows.residual[m] + channel, live));
      V::store_bytes(to_integers(value, range), reinterpret_cast<std::uint8_t*>(rows.out[m]) + channel, live);
    }
}

/// Sums as they are, or times the multiplier; activated later (matrix.cc).
template <int kRows, int kVectors>
__attribute__((noinline)) void finish_wide(const V::Sums* sums, const TileRows& rows, const Finish& job, std::int64_t first,
                                           std::int64_t left) {
  for (int m = 0; m < kRows; ++m)
    for (int v = 0; v < kVectors; ++v) {
      const int live = static_cast<int>(left - v * V::kLanes);
      if (live <= 0) break;
      const std::int64_t channel = first + v * V::kLanes;
      V::Sums value = sums[m * kVectors + v];
      if (job.out == DType::kF32) value = V::bits(V::times(V::reals(value), V::load(job.multipliers + channel)));
      V::store(value, reinterpret_cast<std::int32_t*>(rows.out[m]) + channel, live);
    }
}

/// Stores `left` outputs of each row, from channel `first` of the block on.
template <int kRows, int kVectors>
SLUICE_INLINE void finish(V::Sums (&sums)[kRows][kVectors], const TileRows& rows, const Finish& job, std::int64_t first,
                          std::int64_t left) {
  const bool bytes = job.out == DType::kU8;
  if (bytes && job.epilogue->has_residual && left == std::int64_t{kVectors} * V::kLanes &&
      finish_near<kRows, kVectors>(sums, rows, job, first))
    return;
  if (!bytes || job.epilogue->has_residual || !V::template small<kVectors>(job.multipliers + first)) {
    V::Sums copied[kRows * kVectors];  // the sums themselves stay in registers: nothing takes their address
    SLUICE_UNROLL
    for (int m = 0; m < kRows; ++m) {
      SLUICE_UNROLL
      for (int v = 0; v < kVectors; ++v) copied[m * kVectors + v] = sums[m][v];
    }
    return (bytes ? finish_bytes<kRows, kVectors> : finish_wide<kRows, kVectors>)(copied, rows, job, first, left);
  }
  V::pack_rows(sums, rows, job, first, left);
}
