// Fourier transforms against their definition, of every kind of length; the same bits on every instruction set.
#include "src/kernels/plain/fourier.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

using namespace sluice;
using namespace sluice::kernels::plain;

namespace {

using Signals = std::vector<std::vector<Complex>>;

Signals random_signals(std::int64_t count, std::int64_t length, bool real) {
  std::mt19937 random(static_cast<unsigned>(length));
  std::uniform_real_distribution<double> value(-1, 1);
  Signals signals(static_cast<std::size_t>(count), std::vector<Complex>(static_cast<std::size_t>(length)));
  for (auto& signal : signals)
    for (Complex& x : signal) x = {value(random), real ? 0.0 : value(random)};
  return signals;
}

/// Scratch is as large as asked for and no larger.
Signals transformed(const Signals& signals, bool real, bool inverse, Isa isa) {
  const auto length = static_cast<std::int64_t>(signals[0].size());
  std::vector<std::byte> scratch(fourier_scratch(length));
  Signals made(signals.size(), std::vector<Complex>(signals[0].size()));
  FourierBatch batch(length, inverse, scratch.data());
  batch.run(
      static_cast<std::int64_t>(signals.size()), real, length,
      [&](std::int64_t s, std::int64_t n) { return signals[static_cast<std::size_t>(s)][static_cast<std::size_t>(n)]; },
      [&](std::int64_t s, std::int64_t k, Complex y) { made[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)] = y; }, isa);
  return made;
}

double worst_error(const std::vector<Complex>& signal, const std::vector<Complex>& made, bool inverse) {
  const std::size_t length = signal.size();
  double worst = 0;
  for (std::size_t k = 0; k < length; ++k) {
    long double re = 0, im = 0;
    for (std::size_t n = 0; n < length; ++n) {
      const long double angle = (inverse ? 2 : -2) * std::numbers::pi_v<long double> * static_cast<long double>(k * n % length) / length;
      re += signal[n].re * std::cos(angle) - signal[n].im * std::sin(angle);
      im += signal[n].re * std::sin(angle) + signal[n].im * std::cos(angle);
    }
    if (inverse) re /= length, im /= length;
    worst = std::max({worst, std::fabs(static_cast<double>(re - made[k].re)), std::fabs(static_cast<double>(im - made[k].im))});
  }
  return worst;
}

}  // namespace

TEST_CASE("transforms of every length agree with the definition") {
  std::vector<std::int64_t> lengths{64, 100, 101, 128, 169, 210, 243, 256, 400, 441, 509, 512};
  for (std::int64_t length = 1; length <= 50; ++length) lengths.push_back(length);
  for (const std::int64_t length : lengths)
    for (const bool real : {false, true})
      for (const bool inverse : {false, true}) {
        INFO("length " << length << (real ? " real" : " complex") << (inverse ? " inverse" : ""));
        const Signals signals = random_signals(length < 20 ? 11 : 3, length, real);
        const Signals made = transformed(signals, real, inverse, active_isa());
        for (std::size_t s = 0; s < signals.size(); ++s)
          CHECK(worst_error(signals[s], made[s], inverse) < 1e-14 * (10.0 + static_cast<double>(length)));
      }
}

TEST_CASE("transforms give the same bits on every instruction set") {
  for (const std::int64_t length : {1, 2, 3, 4, 5, 7, 30, 64, 77, 400, 1024}) {
    const Signals signals = random_signals(5, length, false);
    const Signals want = transformed(signals, false, false, Isa::kScalar);
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
      if (isa > active_isa()) continue;
      const Signals got = transformed(signals, false, false, isa);
      bool same = true;
      for (std::size_t s = 0; s < signals.size(); ++s)
        for (std::size_t k = 0; k < signals[s].size(); ++k) same = same && got[s][k].re == want[s][k].re && got[s][k].im == want[s][k].im;
      INFO("length " << length << ", isa " << static_cast<int>(isa));
      CHECK(same);
    }
  }
}
