// How many instructions the long tail of operators takes an element, each beside its limit: a guard against cliffs that needs no clock.
//
//     sluice-bench-instructions                  lists the cases: name, elements, limit
//     sluice-bench-instructions CASE             runs one; callgrind counts what happens in `sluice_measured` (scripts/bench instructions)
//
// Limits are of AVX2, which callgrind emulates, about a quarter above what was counted when they were written: a scalar loop in place of a
// vector one, or a walk over indices in place of one over lines, exceeds them several times.
#include <bit>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/model/attributes.h"
#include "src/kernels/plain/elements.h"

using namespace sluice;
using namespace sluice::kernels;

namespace {

struct Input {
  DType dtype;
  Shape shape;
};

struct Case {
  std::string_view name;
  std::string_view op;
  std::vector<Input> inputs;
  std::vector<std::vector<std::int64_t>> arguments;
  int result;
  double limit;              // instructions an element of the largest operand
  std::int64_t outputs = 0;  // where the result is the largest
};

constexpr DType F = DType::kF32, I = DType::kI64, B = DType::kBool, U8 = DType::kU8;

std::int64_t bits(double x) { return std::bit_cast<std::int64_t>(x); }

std::vector<Case> cases() {
  const Shape map{1, 32, 64, 64}, rows{1000, 85};
  return {
      {"sum_of_a_row", "ReduceSum", {{F, Shape{1, 131072}}}, {{1}, {1}, {0}}, 0, 1.2},
      {"sum_of_85", "ReduceSum", {{F, rows}}, {{1}, {1}, {0}}, 0, 5.0},
      {"sum_of_columns", "ReduceSum", {{F, rows}}, {{0}, {1}, {0}}, 0, 3.1},
      {"max_of_85", "ReduceMax", {{F, rows}}, {{1}, {1}, {0}}, 0, 3.0},
      {"argmax_of_85", "ArgMax", {{F, rows}}, {{1}, {1}, {0}}, 0, 2.4},
      {"argmax_of_channels", "ArgMax", {{F, map}}, {{1}, {1}, {0}}, 0, 0.9},
      {"topk_of_a_row", "TopK", {{F, Shape{1, 25200}}}, {{100}, {-1}, {1}, {1}}, 0, 7.3},
      {"topk_of_rows", "TopK", {{F, Shape{1000, 64}}}, {{5}, {-1}, {1}, {1}}, 1, 12.5},
      {"instance_norm", "InstanceNormalization", {{F, map}, {F, Shape{32}}, {F, Shape{32}}}, {{bits(1e-5)}, {}}, 0, 6.3},
      {"layer_norm", "LayerNormalization", {{F, rows}, {F, Shape{85}}, {F, Shape{85}}}, {{-1}, {bits(1e-5)}, {1}}, 0, 90.0},
      {"grid_sample", "GridSample", {{F, Shape{1, 32, 40, 40}}, {F, Shape{1, 40, 40, 2}}}, {{0}, {3}, {0}}, 0, 44.0},
      {"greater", "Greater", {{F, map}, {F, map}}, {}, 0, 2.9},
      {"less_than_one", "Less", {{F, map}, {F, Shape{1}}}, {}, 0, 2.7},
      {"equal_bytes", "Equal", {{U8, map}, {U8, map}}, {}, 0, 0.65},
      {"and", "And", {{B, map}, {B, map}}, {}, 0, 0.95},
      {"not", "Not", {{B, map}}, {}, 0, 0.55},
      {"sine", "Sin", {{F, map}}, {}, 0, 10.4},
      {"round", "Round", {{F, map}}, {}, 0, 6.0},
      {"cast_to_truths", "Cast", {{F, map}}, {{9}}, 0, 2.7},
      {"running_sum", "CumSum", {{F, map}}, {{1}, {0}, {0}}, 0, 5.5},
      {"max_pool_of_cubes", "MaxPool", {{F, Shape{1, 16, 8, 28, 28}}}, {{2, 2, 2}, {2, 2, 2}, {}, {}, {0}, {0}, {0}}, 0, 14.3},
      {"conv_of_cubes",
       "Conv",
       {{F, Shape{1, 8, 4, 28, 28}}, {F, Shape{16, 8, 3, 3, 3}}},
       {{}, {}, {}, {1, 1, 1, 1, 1, 1}, {0}, {0}, {1}},
       0,
       206.0},
      {"correlation", "Conv", {{F, Shape{1, 32, 20, 20}}, {F, Shape{32, 1, 8, 8}}}, {{}, {}, {}, {}, {0}, {0}, {32}}, 0, 149.0},
      {"where", "Where", {{B, map}, {F, map}, {F, map}}, {}, 0, 3.5},
      {"gather_elements", "GatherElements", {{F, Shape{64, 1000}}, {I, Shape{64, 1000}}}, {{1}}, 0, 16.5},
      {"gather_rows", "Gather", {{F, Shape{100, 64}}, {I, Shape{2000}}}, {{0}}, 0, 2.1, 128000},
      {"transpose", "Transpose", {{F, Shape{256, 256}}}, {{1, 0}}, 0, 1.9},
      {"transpose_bytes", "Transpose", {{U8, Shape{256, 256}}}, {{1, 0}}, 0, 0.5},
      {"channel_out", "Slice", {{F, Shape{10000, 85}}}, {{4}, {5}, {1}, {1}}, 0, 0.12},
      {"concat_of_few", "Concat", {{F, Shape{20000, 4}}, {F, Shape{20000, 1}}}, {{1}}, 0, 5.1},
  };
}

void fill(const PlainTensor& tensor, std::mt19937& random) {
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (tensor.dtype == DType::kF32)
      tensor.as<float>()[i] = static_cast<float>(random() % 65536) / 32768.0f - 1.0f;
    else
      plain::set_integer(tensor, i, static_cast<std::int64_t>(random() % 2));
  }
}

}  // namespace

/// What callgrind counts.
extern "C" __attribute__((noinline)) const char* sluice_measured(const PlainNode* node, const PlainTensor* out, std::byte* scratch) {
  return generic_kernel(node->op()).run(*node, *out, scratch);
}

namespace {

std::int64_t elements_of(const Case& c) {
  std::int64_t most = c.outputs;
  for (const Input& input : c.inputs) most = std::max(most, input.shape.element_count());
  return most;
}

int run(const Case& c) {
  const PlainOperator* op = find_plain(c.op);
  if (op == nullptr) return 1;
  model::PlainAttributes attributes;
  attributes.op = op->number;
  attributes.result = static_cast<std::uint8_t>(c.result);
  attributes.present = (1u << c.inputs.size()) - 1u;
  for (const auto& list : c.arguments) {
    attributes.arguments.push_back(static_cast<std::int64_t>(list.size()));
    attributes.arguments.insert(attributes.arguments.end(), list.begin(), list.end());
  }
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> memory;
  std::vector<PlainTensor> tensors;
  for (const Input& input : c.inputs) {
    memory.emplace_back(static_cast<std::size_t>(input.shape.element_count()) * size_of(input.dtype));
    tensors.push_back({input.dtype, input.shape, memory.back().data()});
    fill(tensors.back(), random);
  }
  const PlainNode node(*op, form_of(attributes), tensors);
  PlainTensor out;
  const char* refusal = infer_plain(node, out);
  if (refusal == nullptr) {
    std::vector<std::byte> result(static_cast<std::size_t>(out.count()) * size_of(out.dtype));
    const GenericKernel& kernel = generic_kernel(*op);
    std::vector<std::byte> scratch(kernel.scratch == nullptr ? 0 : kernel.scratch(node));
    out.data = result.data();
    refusal = sluice_measured(&node, &out, scratch.data());
  }
  if (refusal != nullptr) std::fprintf(stderr, "%s: %s\n", c.name.data(), refusal);
  return refusal == nullptr ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& c : cases()) {
    if (argc < 2)
      std::printf("%s %lld %g\n", c.name.data(), static_cast<long long>(elements_of(c)), c.limit);
    else if (c.name == argv[1])
      return run(c);
  }
  return argc < 2 ? 0 : 1;
}
