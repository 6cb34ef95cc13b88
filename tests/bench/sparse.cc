// Sparse panels beside our own dense kernels, one thread, CPU time: from which share of zero blocks skipping them pays, and what it gains.
//
//     sluice-bench-sparse [NAME [ISA]]    layers whose name contains NAME, one instruction set
//
// Layers of one row use each weight once, and a net's come from memory: so do these, from as many copies of them as no cache holds.
//
// A dense and a sparse run take turns, so that a busy moment slows both, and of each the fastest fifth ends where it counts: noise mostly
// adds, but clocks of virtual machines jump back now and then. `even` is the share of zero blocks from which the sparse kernel is the
// faster one, interpolated; each column is dense time / sparse time at a share of zeros. The last two columns are bounds of it: what it
// would be at 70 % and 90 % if the products that are left went at the machine's peak or, if that takes longer, lines of the operands came
// and went as fast as a loop that does nothing else has them.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/kernels/registry.h"
#include "tests/bench/peak.h"
#include "tests/kernels/weighted_harness.h"

namespace sluice::bench {
namespace {

namespace test = kernels::test;

struct Layer {
  const char* name;
  test::Problem problem;
};

std::vector<Layer> layers() {
  using test::convolution, test::dense;
  return {
      {"mobilenet_v2 56x56 24-144", convolution(56, 56, 24, 144, 1, 1, 0)},
      {"mobilenet_v2 28x28 192-32", convolution(28, 28, 192, 32, 1, 1, 0)},
      {"mobilenet_v2 14x14 96-576", convolution(14, 14, 96, 576, 1, 1, 0)},
      {"mobilenet_v2 14x14 576-96", convolution(14, 14, 576, 96, 1, 1, 0)},
      {"mobilenet_v2 7x7 160-960", convolution(7, 7, 160, 960, 1, 1, 0)},
      {"mobilenet_v2 7x7 960-320", convolution(7, 7, 960, 320, 1, 1, 0)},
      {"mobilenet_v2 1280-1000", dense(1, 1280, 1000)},
      {"resnet50 56x56 256-64", convolution(56, 56, 256, 64, 1, 1, 0)},
      {"resnet50 28x28 512-128", convolution(28, 28, 512, 128, 1, 1, 0)},
      {"resnet50 14x14 1024-256", convolution(14, 14, 1024, 256, 1, 1, 0)},
      {"resnet50 14x14 256-1024", convolution(14, 14, 256, 1024, 1, 1, 0)},
      {"resnet50 7x7 2048-512", convolution(7, 7, 2048, 512, 1, 1, 0)},
      {"resnet50 7x7 512-2048", convolution(7, 7, 512, 2048, 1, 1, 0)},
      {"resnet50 2048-1000", dense(1, 2048, 1000)},
      {"gpt2 1 token 768-2304", dense(1, 768, 2304)},
      {"gpt2 1 token 3072-768", dense(1, 3072, 768)},
      {"gpt2 64 tokens 768-3072", dense(64, 768, 3072)},
      {"gpt2 64 tokens 3072-768", dense(64, 3072, 768)},
      {"3x3 28x28 128-128 (dense: direct)", convolution(28, 28, 128, 128, 3, 1, 1)},
  };
}

/// A layer with its operands, on one instruction set.
class Step {
 public:
  Step(const test::Problem& problem, Isa isa) : case_(problem), prepared_(case_, {0, problem.conv.out_channels}) {
    constexpr std::uint64_t kBeyondCaches = std::uint64_t{128} << 20;
    const std::uint64_t bytes = case_.graph().weights[0].bytes.count();
    const std::uint64_t copies = case_.out_rows() == 1 ? (kBeyondCaches + bytes - 1) / bytes : 1;
    const kernels::KernelDescriptor& kernel = *kernels::kernels_for(case_.graph(), case_.node()).front();
    resolved_ = kernel.resolve(case_.graph(), case_.node(), isa);
    in_ = std::make_unique<test::Placed>(case_.in_shape(), test::Form{}, 0, 0.5f);
    out_ = std::make_unique<test::Placed>(case_.out_shape(), test::Form{}, 0, 0.0f);
    operands_ = {in_->operand(), out_->operand()};
    const RowRange rows{0, case_.out_rows()};
    const ChannelRange channels{0, problem.conv.out_channels};
    const Bytes workspace = kernel.workspace == nullptr ? Bytes() : kernel.workspace(resolved_.parameters, {rows, channels, 1});
    const std::uint64_t in_bytes = in_->buffer->size() * sizeof(float), out_bytes = out_->buffer->size() * sizeof(float);
    arena_ = Arena::reserve(Bytes(std::max<std::uint64_t>(copies * (bytes + 128) + in_bytes + out_bytes + workspace.count() + 512,
                                                          std::uint64_t{4} << 20)))
                 .value();
    static_cast<void>(arena_.commit(arena_.reserved()));
    for (std::uint64_t i = 0; i < copies; ++i) {
      weights_.emplace_back(prepared_.operands().begin(), prepared_.operands().end());
      weights_.back()[0].data = place(weights_.back()[0].data, bytes);
    }
    operands_[0].view.data = place(in_->buffer->bytes(), in_bytes);
    operands_[1].view.data = place(out_->buffer->bytes(), out_bytes);
    std::byte* const scratch = place(nullptr, workspace.count());
    call_ = {.parameter_data = resolved_.parameters.data(),
             .inputs = std::span(operands_).first(1),
             .outputs = std::span(operands_).last(1),
             .rows = rows,
             .channels = channels,
             .workspace = scratch};
  }
  Step(const Step&) = delete;

  double seconds() {
    call_.weights = next_weights();
    const double start = thread_seconds();
    resolved_.run(call_);
    return thread_seconds() - start;
  }

  /// Of reading what a run must read and writing what it must write, once each: a word of each line, as fast as lines come.
  double touching_seconds() {
    const auto read = [](std::span<const std::byte> bytes) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i + 64 <= bytes.size(); i += 64) {
        __builtin_prefetch(bytes.data() + i + 1024);
        sum += std::to_integer<std::uint64_t>(bytes[i]);
      }
      return sum;
    };
    const auto tensor = [](const test::Placed& placed, const kernels::Operand& operand) {
      return std::span(operand.view.data, placed.buffer->size() * sizeof(float));
    };
    const std::vector<kernels::WeightOperand>& weights = next_weights();
    const double start = thread_seconds();
    [[maybe_unused]] volatile const std::uint64_t sum =
        read({weights[0].data, case_.graph().weights[0].bytes.count()}) + read(tensor(*in_, operands_[0]));
    const auto out = tensor(*out_, operands_[1]);
    std::memset(out.data(), 0, out.size());
    return thread_seconds() - start;
  }

  double products() const {
    const test::Problem& problem = case_.problem();
    const auto& window = problem.conv.window;
    const double pixels =
        static_cast<double>(case_.out_rows()) * static_cast<double>(problem.op == model::OpKind::kDense ? 1 : window.out_w);
    return pixels * static_cast<double>(case_.depth() * window.taps() * problem.conv.out_channels);
  }

 private:
  const std::vector<kernels::WeightOperand>& next_weights() { return weights_[turn_ = (turn_ + 1) % weights_.size()]; }

  /// A session has all of these in its arena, with huge pages where the system has them. So do these.
  std::byte* place(const std::byte* from, std::uint64_t bytes) {
    std::byte* const at = arena_.data() + taken_;
    if (from != nullptr) std::memcpy(at, from, bytes);
    taken_ += align_up(bytes, 64) + 64;  // kernels may read a vector beyond
    return at;
  }

  test::Case case_;
  test::PreparedWeights prepared_;
  Arena arena_;
  std::uint64_t taken_ = 0;
  std::deque<std::vector<kernels::WeightOperand>> weights_;
  std::size_t turn_ = 0;
  kernels::ResolvedCall resolved_;
  std::unique_ptr<test::Placed> in_, out_;
  std::array<kernels::Operand, 2> operands_;
  kernels::KernelCall call_;
};

/// A fifth of the times are less.
double fast_of(std::vector<double>& times) {
  const auto fast = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 5);
  std::nth_element(times.begin(), fast, times.end());
  return *fast;
}

struct Speedup {
  double measured = 0;  // dense time / sparse time
  double at_most = 0;   // if the products that are left took no longer than at the machine's peak, nor what is touched than touching it
  double dense_seconds = 0;
  double dense_share = 0;  // of the machine's peak
};

/// A run is repeated until all have taken `kSeconds` or so.
Speedup speedup(const test::Problem& problem, double zeros, Isa isa) {
  constexpr double kSeconds = 0.1;
  test::Problem sparse = problem;
  sparse.zeros = zeros;
  Step dense_step(problem, isa), sparse_step(sparse, isa);
  std::vector<double> dense_times, sparse_times, touching_times;
  for (double spent = 0; dense_times.size() < 5 || spent < kSeconds; spent += dense_times.back() + sparse_times.back()) {
    dense_times.push_back(dense_step.seconds());
    sparse_times.push_back(sparse_step.seconds());
    touching_times.push_back(sparse_step.touching_seconds());
  }
  const double dense = fast_of(dense_times), at_peak = dense_step.products() * 2e-9 / fma_peak(isa);
  return {.measured = dense / fast_of(sparse_times),
          .at_most = dense / std::max(at_peak * (1 - zeros), fast_of(touching_times)),
          .dense_seconds = dense,
          .dense_share = at_peak / dense};
}

constexpr std::array kZeros{0.1, 0.25, 0.5, 0.7, 0.9};

/// Where the speedup passes 1, between two shares that were measured; NaN: at none of them.
double break_even(const std::array<Speedup, kZeros.size()>& speedups) {
  if (speedups[0].measured >= 1) return kZeros[0];
  for (std::size_t i = 1; i < kZeros.size(); ++i) {
    const double before = speedups[i - 1].measured, after = speedups[i].measured;
    if (after >= 1) return kZeros[i - 1] + (kZeros[i] - kZeros[i - 1]) * (1 - before) / (after - before);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void print(const Layer& layer, Isa isa) {
  test::Problem problem = layer.problem;
  problem.bias = true;
  problem.activation = {model::Function::kRelu};
  std::array<Speedup, kZeros.size()> speedups{};
  for (std::size_t i = 0; i < kZeros.size(); ++i) speedups[i] = speedup(problem, kZeros[i], isa);
  std::printf("%-34s %-7s", layer.name, std::string(name_of(isa)).c_str());
  for (const Speedup& s : speedups) std::printf(" %6.2f", s.measured);
  std::printf(" %5.0f %%", break_even(speedups) * 100);
  std::printf("  %8.1f us %3.0f %%  %6.2f %6.2f\n", speedups[0].dense_seconds * 1e6, speedups[0].dense_share * 100, speedups[3].at_most,
              speedups[4].at_most);
  std::fflush(stdout);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice;
  std::printf("%-34s %-7s", "layer", "isa");
  for (const double zeros : bench::kZeros) std::printf(" %5.0f%%", zeros * 100);
  std::printf("    even  dense, of peak   70%%<=  90%%<=\n");
  for (const bench::Layer& layer : bench::layers()) {
    if (argc > 1 && std::strstr(layer.name, argv[1]) == nullptr) continue;
    for (const Isa isa : kernels::test::instruction_sets())
      if (isa != Isa::kScalar && (argc < 3 || name_of(isa) == argv[2])) bench::print(layer, isa);
  }
  return 0;
}
