// Random numbers that are the same on every machine: the standard library's distributions are not. For generators, the simulator's noise
// and the search of plans; no secrets.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::scheduler {

class Random {  // splitmix64
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t bits() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) noexcept { return static_cast<std::size_t>(bits() % n); }
  /// [low, high], whole numbers.
  std::size_t between(std::size_t low, std::size_t high) noexcept { return low + below(high - low + 1); }
  /// [0, 1).
  double unit() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) noexcept { return low + (high - low) * unit(); }
  double log_uniform(double low, double high) noexcept { return low * std::exp(unit() * std::log(high / low)); }
  double exponential(double mean) noexcept { return -mean * std::log(1 - unit()); }
  /// exp of a normal variable with mean 0; the sum of twelve uniform ones is normal enough.
  double log_normal(double sigma) noexcept {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit();
    return std::exp(sigma * sum);
  }

 private:
  std::uint64_t state_;
};

}  // namespace sluice::scheduler
