#include "sluice/profiler/latency.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <random>

#include "sluice/profiler/fit.h"
#include "sluice/profiler/work_prices.h"

namespace sluice::profiler {
namespace {

constexpr UsedKernel kKernel{KernelId{7}};

kernels::CostFeatures random_work(std::mt19937& random) {
  const auto any = [&](std::uint64_t most) { return 1000 + random() % most; };
  return {any(1'000'000'000), any(400'000), any(400'000), any(4'000'000)};
}

/// A device that keeps to the formula of the fit.
double true_seconds(const kernels::CostFeatures& w) {
  return 4e-6 + 6e-12 * static_cast<double>(w.flops) + 5e-11 * static_cast<double>(w.output_bytes) +
         7e-11 * static_cast<double>(w.weight_bytes);
}

DeviceProfile measured_profile() {
  std::mt19937 random(1);
  DeviceProfile profile;
  for (int i = 0; i < 40; ++i) {
    const kernels::CostFeatures work = random_work(random);
    profile.samples.push_back({kKernel, work, true_seconds(work)});
  }
  fit(profile);
  return profile;
}

TEST_CASE("what keeps to the formula is predicted, seen or not") {
  const DeviceProfile profile = measured_profile();
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    const kernels::CostFeatures work = random_work(random);
    const double seconds = step_seconds(profile, kKernel, {}, work) - profile.step_overhead_seconds;
    CHECK(seconds == Approx(true_seconds(work)).epsilon(0.05));
  }
  CHECK(profile.kernels.front().error < 0.05);
}

TEST_CASE("shapes that the fit misses pull what is near them, and nothing that is far") {
  DeviceProfile profile = measured_profile();
  const auto odd = [](std::uint64_t i) { return kernels::CostFeatures{50'000'000 + 3'000'000 * i, 100'000, 100'000, 1'000'000}; };
  for (std::uint64_t i = 0; i < 8; ++i)
    if (i != 3) profile.samples.push_back({kKernel, odd(i), 2 * true_seconds(odd(i))});
  fit(profile);
  const auto seconds = [&](const kernels::CostFeatures& work) {
    return step_seconds(profile, kKernel, {}, work) - profile.step_overhead_seconds;
  };
  CHECK(seconds(odd(3)) == Approx(2 * true_seconds(odd(3))).epsilon(0.15));  // the one that was left out
  const kernels::CostFeatures far{900'000'000, 9'000, 390'000, 9'000};
  CHECK(seconds(far) == Approx(true_seconds(far)).epsilon(0.25));
}

StepWork recurrent_work(std::uint32_t turns, std::uint32_t hidden) {
  constexpr std::uint64_t kGates = 3;
  const std::uint64_t products = kGates * hidden * hidden, state = std::uint64_t{turns} * kGates * hidden * sizeof(float);
  StepWork work(kernels::CostFeatures{2 * turns * products, state, state, turns * products * sizeof(float)});
  work.shape.rows = turns;
  work.shape.channels = static_cast<std::uint32_t>(kGates) * hidden;
  work.shape.depth = hidden;
  work.run_bytes = 8 << 20;
  return work;
}

TEST_CASE("steps are priced with what interrupts a long run, and a short run mostly meets nothing of it") {
  DeviceProfile profile = measured_profile();
  const kernels::CostFeatures work{50'000'000, 100'000, 100'000, 1'000'000};
  const auto seconds = [&] { return step_seconds(profile, kKernel, {}, work) - profile.step_overhead_seconds; };
  const double alone = seconds();
  CHECK(of_a_short_run(profile, 20e-6) == 1);
  const Interruptions all{0.08, {0.05, 0.25, 0.3, 0.5, 0.9}};
  profile.interruptions = all;
  CHECK(seconds() == Approx(1.08 * alone));
  CHECK(1.08 * of_a_short_run(profile, 4e-6) == Approx(1));
  CHECK(1.08 * of_a_short_run(profile, 40e-6) == Approx(1.02));
  CHECK(1.08 * of_a_short_run(profile, 4e-5 * std::sqrt(10.0)) == Approx(1.024));
  CHECK(1.08 * of_a_short_run(profile, 4e-4 * std::sqrt(10.0)) == Approx(1.072));
  CHECK(1.08 * of_a_short_run(profile, 4e-4 * std::pow(10.0, 0.25)) == Approx(1 + 0.08 * 0.7));
  CHECK(of_a_short_run(profile, 5e-3) == Approx(1));
  // The median of a long step has its share, that of a short one none.
  CHECK(detail::without_interruptions(all, 1.08 * 5e-3) == Approx(5e-3));
  CHECK(detail::without_interruptions(all, 1.04 * 4e-4) == Approx(4e-4).epsilon(0.002));
  CHECK(detail::without_interruptions(all, 3e-6) == Approx(3e-6));
}

TEST_CASE("a recurrent layer's first turn multiplies nothing, and many turns take what fewer took each") {
  constexpr UsedKernel kRecurrent{kernels::kernel_id::kRecurrent};
  const auto seconds = [](std::uint32_t turns, std::uint32_t hidden) {
    return 5e-7 + (turns - 1) * (2e-7 + 2e-11 * 2 * 3 * hidden * hidden);
  };
  DeviceProfile profile;
  for (const std::uint32_t hidden : {32, 64, 128, 256})
    for (const std::uint32_t turns : {1, 12, 16, 100})
      profile.samples.push_back({kRecurrent, recurrent_work(turns, hidden), seconds(turns, hidden)});
  fit(profile);
  profile.step_overhead_seconds = 0;
  for (const std::uint32_t turns : {50, 500, 2000})
    CHECK(step_seconds(profile, kRecurrent, {}, recurrent_work(turns, 128)) == Approx(seconds(turns, 128)).epsilon(0.1));
  // One turn from a state that is given multiplies; of four sequences beside one another each turn is one.
  StepWork given = recurrent_work(1, 512), four = recurrent_work(100, 64);
  given.shape.stride = 2;
  CHECK(detail::recurrent_terms(given)[1] == Approx(static_cast<double>(given.cost.flops)));
  CHECK(detail::recurrent_terms(recurrent_work(1, 512))[1] == 0);
  four.shape.rows *= 4;
  four.shape.taps = 4;
  CHECK(detail::recurrent_terms(four)[8] == 99);
}

TEST_CASE("one row of an image has the taps of a band of several") {
  StepWork work(kernels::CostFeatures{1000, 1000, 1000, 1000});
  work.shape = {.rows = 1, .columns = 7, .channels = 32, .taps = 49};
  const double one = detail::depthwise_terms(work)[1];
  work.shape.rows = 2;
  CHECK(detail::depthwise_terms(work)[1] == Approx(2 * one));
}

TEST_CASE("what caches lose of a norm by channels is what passes, not its few weights") {
  constexpr UsedKernel kAffine{kernels::kernel_id::kAffine};
  const auto work_of = [](std::uint32_t pixels, std::uint32_t channels, std::uint64_t run_bytes) {
    const std::uint64_t values = std::uint64_t{pixels} * channels, bytes = values * sizeof(float);
    StepWork work(kernels::CostFeatures{values, bytes, bytes, 2 * channels * sizeof(float)});
    work.shape.columns = pixels;
    work.shape.channels = channels;
    work.run_bytes = run_bytes;
    return work;
  };
  // Of a run that no cache keeps a byte takes 8e-11 s more.
  const auto seconds = [](const StepWork& work) {
    const auto bytes = static_cast<double>(work.cost.input_bytes + work.cost.output_bytes);
    return 2e-8 + 1e-11 * bytes + (work.run_bytes > 64 << 20 ? 8e-11 * bytes : 0);
  };
  DeviceProfile profile;
  for (const StepWork& work : {work_of(16384, 32, 93 << 20), work_of(675, 32, 4 << 20), work_of(144, 48, 600 << 10),
                               work_of(1, 4, 280 << 10), work_of(1, 1008, 280 << 10), work_of(1, 102, 670 << 10)})
    profile.samples.push_back({kAffine, work, seconds(work)});
  fit(profile);
  profile.step_overhead_seconds = 0;
  const StepWork deep = work_of(49, 1024, 90 << 20);
  CHECK(step_seconds(profile, kAffine, {}, deep) < 2 * seconds(deep));
}

TEST_CASE("windows at a map's border reach beyond it") {
  CHECK(detail::taps_inside(28, 1, 1) == 1);
  CHECK(detail::taps_inside(3, 3, 1) == Approx(7.0 / 9));
  CHECK(detail::taps_inside(4, 7, 1) == Approx(16.0 / 28));
  CHECK(detail::taps_inside(2, 3, 2) == Approx(5.0 / 6));
  CHECK(detail::taps_inside(100, 5, 1) == Approx(494.0 / 500));
  CHECK(detail::taps_inside(4'000'000'000, 4'000'000'000, 1) == 1);
}

TEST_CASE("a layer of emitted code takes what it took, in proportion to its rows and outputs") {
  DeviceProfile profile = measured_profile();
  const auto layer = [](std::uint32_t rows, std::uint32_t channels, std::uint32_t depth, std::uint64_t input_bytes) {
    return StepWork({2ull * rows * 6 * channels * depth, input_bytes, 100, 100},
                    {.rows = rows, .columns = 6, .channels = channels, .depth = depth}, 0);
  };
  // Far from the fit: 1 ms for each row and two outputs, and a third of that more where a residual is read.
  for (const auto& [work, seconds] : {std::pair{layer(4, 16, 8, 192), 32e-3}, std::pair{layer(4, 16, 8, 576), 40e-3},
                                      std::pair{layer(4, 16, 32, 768), 70e-3}, std::pair{layer(4, 32, 32, 768), 110e-3}})
    profile.samples.push_back({kKernel, work, seconds});
  fit(profile);
  profile.copies_views = true;
  const auto seconds = [&](const StepWork& work) { return step_seconds(profile, kKernel, {}, work) - profile.step_overhead_seconds; };
  CHECK(seconds(layer(4, 16, 8, 192)) == Approx(32e-3));
  CHECK(seconds(layer(4, 16, 8, 576)) == Approx(40e-3));
  CHECK(seconds(layer(1, 16, 8, 48)) == Approx(8e-3));
  CHECK(seconds(layer(3, 16, 8, 432)) == Approx(30e-3));
  CHECK(seconds(layer(2, 96, 32, 384)) == Approx((110e-3 + 4 * 40e-3) / 2));  // by what 16 outputs more took
  profile.copies_views = false;
  CHECK(seconds(layer(4, 16, 8, 192)) != Approx(32e-3));  // the engine's steps go by the fit
}

TEST_CASE("what is left to learn is nothing at a sample and all far from every one") {
  const DeviceProfile profile = measured_profile();
  const std::vector<StepWork> steps = {profile.samples.front().work, StepWork({1, 1, 1, 1})};
  const std::vector<double> unknown = uncertainty(profile.kernels.front(), profile.samples, steps, {});
  CHECK(unknown[0] < 0.1);
  CHECK(unknown[1] > unknown[0]);
}

TEST_CASE("a run's size is a feature where samples of several runs were measured, and none where they are of one") {
  const auto measured_in = [](std::uint64_t small, std::uint64_t large) {
    std::mt19937 random(6);
    DeviceProfile profile;
    for (int i = 0; i < 60; ++i) {
      StepWork work(random_work(random));
      work.run_bytes = i % 2 == 0 ? small : large;
      profile.samples.push_back({kKernel, work, true_seconds(work.cost) * (work.run_bytes > 1u << 20 ? 1.5 : 1.0)});
    }
    fit(profile);
    return profile;
  };
  const auto slower = [](const DeviceProfile& profile, std::uint64_t small, std::uint64_t large) {
    std::mt19937 random(7);
    double sum = 0;
    for (int i = 0; i < 20; ++i) {
      StepWork work(random_work(random));
      work.run_bytes = large;
      const double seconds = step_seconds(profile, kKernel, {}, work);
      work.run_bytes = small;
      sum += seconds / step_seconds(profile, kKernel, {}, work) / 20;
    }
    return sum;
  };
  constexpr std::uint64_t kSmall = 200'000, kLarge = 50'000'000;
  CHECK(slower(measured_in(kSmall, kLarge), kSmall, kLarge) == Approx(1.5).epsilon(0.1));
  const DeviceProfile of_one = measured_in(kLarge, kLarge);
  CHECK(of_one.kernels.front().scales[kRunFeature] == 0);
  CHECK(slower(of_one, kSmall, kLarge) == Approx(1));
  // What is beyond the largest that is measured counts as that.
  CHECK(slower(measured_in(kSmall, kLarge), kMostRunBytes, 10 * kMostRunBytes) == Approx(1));
}

TEST_CASE("of three samples the error says that they are few") {
  DeviceProfile profile;
  std::mt19937 random(5);
  for (int i = 0; i < 3; ++i) {
    const kernels::CostFeatures work = random_work(random);
    profile.samples.push_back({kKernel, work, true_seconds(work)});
  }
  fit(profile);
  CHECK(profile.kernels.front().error > 0.09);
  CHECK(relative_error(profile, kKernel, 0) == profile.kernels.front().error);
  CHECK(relative_error(profile, {KernelId{8}}, 0) == 0.5);
}

TEST_CASE("remembered prices are those of the latency model, also when nothing was measured and when what is remembered was given up") {
  const DeviceProfile measured = measured_profile();
  model::Node depthwise, bytes;
  model::ConvAttributes conv;
  conv.groups = conv.in_channels = conv.out_channels = 8;
  depthwise.attributes = conv;
  bytes.numeric = model::NumericClass::kInt8;
  constexpr KernelId kUnknown{8};
  for (const std::size_t most : {std::size_t{3}, std::size_t{1000}}) {
    WorkPrices prices(measured, most);
    std::mt19937 random(7);
    std::vector<StepWork> works;
    for (int i = 0; i < 10; ++i) {
      StepWork& work = works.emplace_back(random_work(random));
      work.shape.rows = static_cast<std::uint32_t>(1 + i / 2);
      work.variant = static_cast<std::uint16_t>(i % 3);
    }
    for (int again = 0; again < 2; ++again)
      for (const StepWork& work : works)
        for (const model::Node& node : {model::Node(), depthwise, bytes})
          for (const UsedKernel kernel : {kKernel, UsedKernel{kKernel.kernel, KernelUse::kPrepare}, UsedKernel{kUnknown}})
            CHECK(prices.seconds(kernel, node, work) == step_seconds(measured, kernel, node, work));
  }
}

TEST_CASE("samples that are compared abreast correct a step as the formula says, however many there are") {
  for (const int count : {1, 2, 7, 8, 9, 16, 40}) {
    INFO(count << " samples");
    std::mt19937 random(static_cast<unsigned>(count));
    const auto any = [&](std::uint32_t most) { return static_cast<std::uint32_t>(1 + random() % most); };
    const auto any_work = [&] {
      StepWork work(random_work(random));
      work.shape = {.rows = any(60), .columns = any(60), .channels = any(3000), .depth = any(500), .taps = any(9), .stride = any(2)};
      work.run_bytes = 1000 * std::uint64_t{any(500'000)};
      return work;
    };
    DeviceProfile profile;
    for (const UsedKernel kernel : {kKernel, UsedKernel{KernelId{8}}})
      for (int i = 0; i < count; ++i) {
        const StepWork work = any_work();
        profile.samples.push_back({kernel, work, true_seconds(work.cost) * (0.5 + 1e-6 * static_cast<double>(random() % 1'000'000))});
      }
    fit(profile);
    const detail::TileExtent tile = detail::tile_of(profile);
    for (const KernelRates& rates : profile.kernels)
      for (int i = 0; i < 20; ++i) {
        const StepWork work = i == 0 ? profile.samples.front().work : any_work();
        const Features place = detail::place_of(work, rates.scales, tile);
        double r = 0;
        for (const KernelSample& sample : detail::of_kernel(profile.samples, rates.kernel))
          r += sample.weight * detail::likeness(detail::place_of(sample.work, rates.scales, tile), place);
        const double abreast = detail::correction_at(detail::placed_samples(profile, rates), place);
        CHECK(abreast == Approx(std::clamp(r, -1.5, 1.5)).epsilon(1e-12).margin(1e-14));
      }
  }
}

TEST_CASE("a profile's weights and scales of any size give corrections that are numbers") {
  DeviceProfile profile = measured_profile();
  for (std::size_t i = 0; i < profile.samples.size(); ++i) profile.samples[i].weight = i % 2 == 0 ? 1e308 : -1e308;
  profile.kernels.front().scales.fill(3e38F);
  place_samples(profile);
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    const double seconds = step_seconds(profile, kKernel, {}, random_work(random));
    CHECK((std::isfinite(seconds) && seconds > 0));
  }
}

TEST_CASE("whole parts and logarithms are those of the standard library") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const auto amount = static_cast<double>(random() >> (1 + random() % 60)) / static_cast<double>(1 + random() % 20);
    CHECK(detail::ceil_of(amount) == std::ceil(amount));
    CHECK(detail::floor_of(amount) == std::floor(amount));
    const std::uint64_t whole = random() >> (random() % 64);
    CHECK(detail::Logarithms::get()(whole) == static_cast<float>(std::log(static_cast<double>(whole) + 1)));
    const double run = std::clamp(static_cast<double>(whole), detail::kNearKeeps, detail::kNearLost);
    CHECK(detail::lost(whole, detail::kNearKeeps, detail::kNearLost) ==
          Approx(std::log(run / detail::kNearKeeps) / std::log(detail::kNearLost / detail::kNearKeeps)).margin(1e-15));
  }
}

TEST_CASE("a variant that was not measured takes the rates of one that was") {
  DeviceProfile profile = measured_profile();
  StepWork work({1'000'000, 1000, 1000, 1000}, {}, 7);
  CHECK(step_seconds(profile, kKernel, {}, work) == step_seconds(profile, kKernel, {}, StepWork(work.cost)));
}

TEST_CASE("no rate could be changed for a better fit of errors in the given units") {
  std::mt19937 random(3);
  const auto share = [&] { return 0.5 + 1e-6 * static_cast<double>(random() % 1'000'000); };
  for (int count : {1, 3, 6, 30}) {
    std::vector<KernelSample> samples;
    std::vector<double> units;
    for (int i = 0; i < count; ++i) {
      const kernels::CostFeatures work = random_work(random);
      samples.push_back({kKernel, work, true_seconds(work) * share()});
      units.push_back(samples.back().seconds * share());
    }
    const detail::TileExtent tile;
    const KernelRates rates = closest_rates(samples, units, tile);
    for (std::size_t term = 0; term < kTerms; ++term) {
      // How fast the squared errors fall with this rate, in units of the lengths of term and errors.
      double slope = 0, length = 0, errors = 0;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const double row = detail::terms_of(kKernel.kernel, samples[i].work, tile)[term] / units[i];
        const double error = (samples[i].seconds - detail::fitted_seconds(rates, samples[i].work, tile)) / units[i];
        slope += row * error;
        length += row * row;
        errors += error * error;
      }
      if (length == 0) continue;
      INFO(count << " samples, term " << term);
      CHECK(slope <= 1e-9 * std::sqrt(length * std::max(errors, 1e-9)));
      if (rates.seconds_per[term] > 0) CHECK(slope >= -1e-9 * std::sqrt(length * std::max(errors, 1e-9)));
    }
  }
}

TEST_CASE("equal steps of different times are fitted by their mean, and one that is far too short weighs no more than others") {
  std::mt19937 random(2);
  const kernels::CostFeatures work = random_work(random);
  const auto fitted = [&](std::initializer_list<double> microseconds) {
    std::vector<KernelSample> samples;
    for (const double each : microseconds) samples.push_back({kKernel, work, each * 1e-6});
    return detail::fitted_seconds(fit_rates(samples, {}), work, {}) * 1e6;
  };
  CHECK(fitted({1, 2, 1, 2, 1, 2}) == Approx(1.5).epsilon(0.01));
  CHECK(fitted({1, 1, 1, 1, 1, 1, 1, 1, 0.05}) == Approx(8.05 / 9).epsilon(0.03));
}

TEST_CASE("a kernel of two samples takes time in proportion to what it does, whichever two these are") {
  const auto sample = [](KernelId kernel, std::uint64_t bytes, std::uint32_t rows, double seconds) {
    return KernelSample{{kernel}, {{0, bytes, bytes, 0}, {.rows = rows, .columns = 1, .channels = 16}, 0}, seconds};
  };
  DeviceProfile profile;
  profile.isa = "avx2";
  const KernelId slice = kernels::kernel_id::kSlice;
  profile.samples = {sample(slice, 64, 1, 1e-7), sample(slice, 4 << 20, 56, 2e-4)};
  fit(profile);
  StepWork many = sample(slice, 4 << 20, 46000, 0).work, one = sample(slice, 4 << 20, 1, 0).work;
  const auto seconds = [&](const StepWork& work) { return detail::full_speed_seconds(profile, {slice}, model::Node(), work); };
  // By rates through the two samples 56 rows took all of the time, and 46000 of them a fifth of a second.
  CHECK(seconds(many) < 4 * seconds(one));
  CHECK(seconds(one) > 0.2e-4);
  CHECK(seconds(many) > 0.5e-4);
}

TEST_CASE("a kernel over weights of another type that has two samples or none follows the kernel of f32") {
  const auto work = [](std::uint64_t flops) {
    return StepWork({flops, flops / 100, flops / 100, flops / 50}, {.rows = 14, .columns = 14, .channels = 64, .depth = 64}, 0);
  };
  using namespace kernels::kernel_id;
  DeviceProfile profile;
  profile.isa = "avx2";
  for (std::uint64_t i = 1; i <= 20; ++i) profile.samples.push_back({{kConvPointwise}, work(i * 1000000), 1e-5 * static_cast<double>(i)});
  for (const std::uint64_t i : {3, 9}) profile.samples.push_back({{kConvPointwiseF16}, work(i * 1000000), 1.5e-5 * static_cast<double>(i)});
  fit(profile);
  const auto seconds = [&](KernelId kernel, std::uint64_t flops) {
    return detail::full_speed_seconds(profile, {kernel}, model::Node(), work(flops)) - profile.step_overhead_seconds;
  };
  CHECK(seconds(kConvPointwiseF16, 16000000) == Approx(1.5 * seconds(kConvPointwise, 16000000)).epsilon(0.05));
  CHECK(seconds(kConvPointwiseBf16, 16000000) == Approx(seconds(kConvPointwise, 16000000)).epsilon(0.05));
}

TEST_CASE("powers take fifty times as long as sums and say nothing of them") {
  const auto sample = [](BinaryFunction function, std::uint64_t values, double seconds) {
    const auto variant = static_cast<std::uint16_t>(2 * static_cast<int>(function));
    return KernelSample{{kernels::kernel_id::kBinary, KernelUse::kRun, variant},
                        {{values, 8 * values, 4 * values, 0}, {.rows = 14, .columns = 14, .channels = 64}, variant},
                        seconds};
  };
  DeviceProfile sums, both;
  sums.isa = both.isa = "avx2";
  for (std::uint64_t i = 1; i <= 9; ++i) sums.samples.push_back(sample(BinaryFunction::kAdd, i << 12, 2e-7 * static_cast<double>(i)));
  both.samples = sums.samples;
  for (std::uint64_t i = 1; i <= 6; ++i) both.samples.push_back(sample(BinaryFunction::kPow, i << 12, 1e-5 * static_cast<double>(i)));
  fit(sums);
  fit(both);
  const auto seconds = [&](const DeviceProfile& profile, BinaryFunction function) {
    const KernelSample step = sample(function, 5 << 12, 0);
    return detail::full_speed_seconds(profile, step.kernel, model::Node(), step.work);
  };
  CHECK(seconds(both, BinaryFunction::kAdd) == seconds(sums, BinaryFunction::kAdd));
  CHECK(seconds(both, BinaryFunction::kPow) > 20 * seconds(both, BinaryFunction::kAdd));
}

TEST_CASE("a function without samples takes as long as one like it") {
  DeviceProfile profile;
  profile.isa = "avx2";
  const auto kernel = [](Function function) {
    return UsedKernel{kernels::kernel_id::kUnary, KernelUse::kRun, static_cast<std::uint16_t>(function)};
  };
  for (const auto& [function, each] : {std::pair{Function::kRelu, 1e-6}, {Function::kGelu, 9e-6}})
    for (std::uint64_t i = 1; i <= 20; ++i)
      profile.samples.push_back({kernel(function),
                                 {{0, i << 14, i << 14, 0}, {.rows = 7, .columns = 7, .channels = 64}, kernel(function).variant},
                                 each * static_cast<double>(i)});
  fit(profile);
  const auto seconds = [&](Function function) {
    const StepWork work({0, 10 << 14, 10 << 14, 0}, {.rows = 7, .columns = 7, .channels = 64}, kernel(function).variant);
    return detail::full_speed_seconds(profile, kernel(function), model::Node(), work);
  };
  CHECK(seconds(Function::kErf) == seconds(Function::kGelu));
  CHECK(seconds(Function::kAbs) == seconds(Function::kRelu));
  CHECK(seconds(Function::kGelu) > 5 * seconds(Function::kRelu));
}

TEST_CASE("a variant with few samples takes all variants' rates times the mean of what its samples take of them") {
  DeviceProfile profile = measured_profile();
  std::mt19937 random(4);
  for (const double times : {1.0, 3.0, 1.0, 3.0}) {
    StepWork work(random_work(random));
    work.variant = 1;
    profile.samples.push_back({{kKernel.kernel, kKernel.use, 1}, work, times * true_seconds(work.cost)});
  }
  fit(profile);
  REQUIRE(profile.kernels.size() == 2);
  const detail::TileExtent tile = detail::tile_of(profile);
  const KernelRates all = fit_rates(profile.samples, tile);
  const std::span<const KernelSample> few = detail::of_kernel(profile.samples, profile.kernels[1].kernel);
  REQUIRE(few.size() == 4);
  double sum = 0;
  for (const KernelSample& sample : few) sum += sample.seconds / detail::fitted_seconds(profile.kernels[1], sample.work, tile);
  CHECK(sum / 4 == Approx(1));
  const StepWork work(random_work(random));
  const auto times = [&](const StepWork& w) {
    return detail::fitted_seconds(profile.kernels[1], w, tile) / detail::fitted_seconds(all, w, tile);
  };
  CHECK(times(work) == Approx(times(few[0].work)));
}

TEST_CASE("no fitted rate is below zero") {
  for (const KernelRates& rates : measured_profile().kernels)
    for (const double rate : rates.seconds_per) CHECK(rate >= 0);
  // More bytes took less time here; the fit may not learn that.
  DeviceProfile profile;
  for (std::uint64_t i = 1; i < 9; ++i)
    profile.samples.push_back({kKernel, kernels::CostFeatures{1000 * i, 0, 0, 9'000'000 - 1'000'000 * i}, 1e-6 * static_cast<double>(i)});
  fit(profile);
  for (const double rate : profile.kernels.front().seconds_per) CHECK(rate >= 0);
}

TEST_CASE("uses of a kernel are apart, and one that was not measured has assumed rates") {
  DeviceProfile profile = measured_profile();
  const kernels::CostFeatures work{1'000'000, 1000, 1000, 1000};
  const double assumed = step_seconds(DeviceProfile(), {}, {}, work);
  CHECK(step_seconds(profile, {kKernel.kernel, KernelUse::kPrepare}, {}, work) == assumed);
  CHECK(step_seconds(profile, kKernel, {}, work) != assumed);
}

TEST_CASE("on a CPU emulated as slower, steps and what they wait for memory take so many times their time") {
  const DeviceProfile profile;
  DeviceProfile slower = profile;
  slower.compute_slowdown = 2.5;
  const kernels::CostFeatures work{.flops = 1'000'000, .input_bytes = 40'000, .output_bytes = 50'000, .weight_bytes = 60'000};
  CHECK(step_seconds(slower, {}, {}, work) == Approx(2.5 * step_seconds(profile, {}, {}, work)));
  CHECK(seconds_beyond_cache(slower, {}, {}, 1000) == Approx(2.5 * seconds_beyond_cache(profile, {}, {}, 1000)));
  CHECK(load_seconds(slower, Bytes(1 << 20)) == load_seconds(profile, Bytes(1 << 20)));
}

TEST_CASE("a step that threads save less of than sharing costs runs alone, on a slower CPU too") {
  for (const double slowdown : {1.0, 3.0}) {
    DeviceProfile profile;
    profile.share_seconds = 4e-6;
    profile.compute_slowdown = slowdown;
    profile.flops_per_second = 1e9;
    const auto alone = [&](std::uint64_t ns, int threads) {
      profile.threads = threads;
      const kernels::CostFeatures work{.flops = ns * static_cast<std::uint64_t>(threads)};  // of each thread so many
      return runs_alone(profile, {}, {}, work);
    };
    CHECK(alone(3900, 2));  // eight microseconds of one thread
    CHECK_FALSE(alone(4100, 2));
    CHECK(alone(1900, 3));
    CHECK_FALSE(alone(2100, 3));
    CHECK_FALSE(alone(0, 1));  // one thread has nobody to share with
  }
}

TEST_CASE("measured steps run alone, and are priced so, where sharing takes longer than what it saves") {
  DeviceProfile profile;
  profile.threads = 2;
  profile.isa = "avx2";
  profile.step_overhead_seconds = 0;
  profile.share_seconds = 1.3e-6;
  const UsedKernel bytes_pass{kernels::kernel_id::kIntegerQuantize};
  const auto of_bytes = [](std::uint64_t bytes) {
    return StepWork(kernels::CostFeatures{.flops = 0, .input_bytes = bytes, .output_bytes = bytes});
  };
  // 4 us to bring two threads together, which then go at 20 GB/s in all.
  for (std::uint64_t bytes = 1 << 10; bytes <= 1 << 18; bytes *= 2)
    for (const double more : {0.99, 1.01})
      profile.samples.push_back({bytes_pass, of_bytes(bytes), more * (4e-6 + 2 * static_cast<double>(bytes) / 20e9)});
  fit(profile);
  CHECK(runs_alone(profile, bytes_pass, {}, of_bytes(1 << 12)));
  CHECK(step_seconds(profile, bytes_pass, {}, of_bytes(1 << 12)) == Approx(2 * 4096 / 10e9).margin(0.3e-6));
  CHECK_FALSE(runs_alone(profile, bytes_pass, {}, of_bytes(1 << 18)));
  CHECK(step_seconds(profile, bytes_pass, {}, of_bytes(1 << 18)) == Approx(4e-6 + 2 * 262144 / 20e9).epsilon(0.05));
  SECTION("what sharing cannot have cost stays") {
    profile.share_seconds = 0.3e-6;
    CHECK(step_seconds(profile, bytes_pass, {}, of_bytes(1 << 12)) == Approx(4e-6 - 0.9e-6 + 2 * 4096 / 10e9).margin(0.1e-6));
  }
  profile.threads = 1;  // as if one thread took what was measured
  CHECK_FALSE(runs_alone(profile, bytes_pass, {}, of_bytes(1 << 12)));
  CHECK(step_seconds(profile, bytes_pass, {}, of_bytes(1 << 12)) > 4e-6);
}

TEST_CASE("loads take the measured rate of their pieces, a limit, and the checksums") {
  DeviceProfile profile;
  profile.reads = {{1, 1000, 1e6}, {1, 100'000, 1e7}, {4, 1000, 2e6}, {4, 100'000, 2e7}};
  profile.read_piece_bytes = 100'000;
  profile.verify_bytes_per_second = 1e9;
  profile.reads_in_flight = 4;
  CHECK(load_seconds(profile, Bytes(100'000)) == Approx(0.005));
  CHECK(load_seconds(profile, Bytes(300'000)) == Approx(0.015));  // three pieces
  CHECK(load_seconds(profile, Bytes(1000)) == Approx(0.0005));
  CHECK(load_seconds(profile, Bytes(100)) == Approx(0.0005));             // a small read is as long as the smallest measured
  CHECK(load_seconds(profile, Bytes(10'000)) == Approx(10'000 / 1.1e7));  // half way between, in the logarithm
  profile.reads_in_flight = 1;
  CHECK(load_seconds(profile, Bytes(100'000)) == Approx(0.01));
  profile.read_limit = 1e6;
  CHECK(load_seconds(profile, Bytes(100'000)) == Approx(0.1));
  profile.reads.clear();  // what is assumed is checked after it is read, not beside it
  CHECK(load_seconds(profile, Bytes(100'000)) == Approx(0.1001));
}

TEST_CASE("what others bring into shared caches passes beside a run, as long as it takes") {
  DeviceProfile profile;
  profile.flops_per_second = 100e9;
  profile.memory_bytes_per_second = 10e9;
  profile.threads = 2;
  const RunWork run{1000, 2e9, 20e6};
  StepWork work;
  set_run(profile, run, work);
  CHECK(work.run_bytes == 1000);
  CHECK(work.shared_bytes == 1000);
  profile.others_bytes_per_second = 5e9;
  set_run(profile, run, work);
  CHECK(work.run_bytes == 1000);
  CHECK(static_cast<double>(work.shared_bytes) == Approx(1000 + (0.01 + 0.002) * 5e9));
  profile.usual_flop_seconds = 8e-12;  // measured: at four fifths of it
  set_run(profile, run, work);
  CHECK(static_cast<double>(work.shared_bytes) == Approx(1000 + (0.02 + 0.002) * 5e9));
}

TEST_CASE("reads are those of the fastest with the fewest bytes in flight") {
  DeviceProfile profile;
  CHECK(best_reads(profile).depth == profile.reads_in_flight);
  CHECK(best_reads(profile).piece_bytes == profile.read_piece_bytes);
  profile.reads = {{1, 400, 0.9e6}, {4, 100, 0.99e6}, {4, 200, 1e6}, {8, 50, 0.99e6}, {8, 200, 1.01e6}};
  CHECK(best_reads(profile).depth == 4);
  CHECK(best_reads(profile).piece_bytes == 100);
  profile.reads[4].bytes_per_second = 2e6;
  CHECK(best_reads(profile).depth == 8);
  CHECK(best_reads(profile).piece_bytes == 200);
}

TEST_CASE("reading slows a run by its share of it") {
  CHECK(slowdown(1.2, 10, 0) == Approx(1));
  CHECK(slowdown(1.2, 10, 5) == Approx(1.1));
  CHECK(slowdown(1.2, 10, 50) == Approx(1.2));
}

TEST_CASE("larger pieces are read no more slowly than smaller ones, at each depth apart") {
  std::vector<ReadRate> rates{{1, 16, 1.0}, {1, 32, 3.0}, {1, 64, 2.0}, {1, 128, 2.5}, {2, 16, 5.0}, {2, 32, 3.0}, {2, 64, 1.0}};
  smooth_rates(rates);
  const double expected[] = {1.0, 2.5, 2.5, 2.5, 3.0, 3.0, 3.0};
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i].bytes_per_second == Approx(expected[i]));
}

}  // namespace
}  // namespace sluice::profiler
