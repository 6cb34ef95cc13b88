#include "sluice/profiler/net_type.h"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "sluice/kernels/registry.h"
#include "sluice/profiler/measure.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "src/profiler/typed_nodes.h"

namespace sluice::profiler {
namespace {

constexpr NetType kAll[] = {NetType::kF32, NetType::kBf16, NetType::kF16, NetType::kInt8, NetType::kInt4, NetType::kIntegers};

/// How many samples each kernel is to have, by its number, of all that a profile of one type measures.
std::map<KernelId, std::size_t> quotas_of(const SampledNets& nets, std::size_t most, const std::vector<KernelSample>& before = {}) {
  auto timer = StepTimer::create(1);
  REQUIRE(timer);
  const model::Graph graph = sample_graph(nets);
  MeasureOptions options;
  options.most = most;
  Measured measured;
  measured.samples = before;
  const Sampler sampler(options, {nets.type}, *timer, {}, candidates_of(graph, *timer), measured);
  std::map<KernelId, std::size_t> quotas;
  for (const auto& [kernel, quota] : sampler.quotas()) quotas[kernel.kernel] += quota;
  return quotas;
}

std::size_t sum_of(const std::map<KernelId, std::size_t>& quotas) {
  return std::accumulate(quotas.begin(), quotas.end(), std::size_t{0}, [](std::size_t sum, const auto& each) { return sum + each.second; });
}

TEST_CASE("types of nets have names, and no other word is one") {
  for (const NetType type : kAll) CHECK(net_type_of(name_of(type)) == type);
  CHECK_FALSE(net_type_of("int3"));
  CHECK_FALSE(net_type_of(""));
}

TEST_CASE("each node of the sampled nets of each type has a kernel that is no reference") {
  for (const NetType type : kAll) {
    const model::Graph graph = sample_graph({type, {}});
    for (const model::Node& node : graph.nodes) {
      INFO(name_of(type) << " " << node.name);
      const auto kernels = kernels::kernels_for(graph, node);
      REQUIRE_FALSE(kernels.empty());
      CHECK(may_have(type, type_of(graph, node)));
    }
  }
}

TEST_CASE("weights of sampled nets are stored as `convert --weights` stores them") {
  const model::Graph floats = sample_graph({NetType::kF32, {}}), graph = sample_graph({NetType::kInt8, {}});
  REQUIRE(graph.nodes.size() == floats.nodes.size());
  std::size_t narrow = 0, small = 0, halves = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].weights.empty()) continue;
    const model::Weight &stored = graph.weight(graph.nodes[n].weights[0]), &real = floats.weight(floats.nodes[n].weights[0]);
    INFO(graph.nodes[n].name);
    const NetType type = type_of(graph, graph.nodes[n]);
    const auto floats_bytes = static_cast<std::uint64_t>(real.shape.element_count()) * sizeof(float);
    narrow += type == NetType::kInt8 ? 1 : 0;
    halves += type == NetType::kBf16 ? 1 : 0;
    if (type == NetType::kF32) {
      CHECK(stored.bytes == real.bytes);
      small += real.panel_layout.layout != model::WeightLayout::kPlain ? 1 : 0;
    } else {
      CHECK(floats_bytes >= model::kAlwaysResidentBelow.count());
      CHECK(stored.bytes < real.bytes);
      CHECK(stored.panels == real.panels);
    }
  }
  CHECK(narrow > 300);
  CHECK(small > 50);
  CHECK(halves > 5);  // depthwise layers whose scales would take as much as they save
}

TEST_CASE("nets of integers have no layer of floats, and Winograd's sums are none of them") {
  const model::Graph graph = sample_graph({NetType::kIntegers, {}});
  std::size_t floats = 0, bytes = 0, borders = 0;
  for (const model::Node& node : graph.nodes) {
    CHECK(node.numeric != model::NumericClass::kWinograd4);
    if (node.op == model::OpKind::kConv || node.op == model::OpKind::kDense) CHECK(type_of(graph, node) == NetType::kIntegers);
    if (node.op == model::OpKind::kDense) ++(graph.tensor(node.outputs[0]).dtype == DType::kF32 ? floats : bytes);
    borders += node.op == model::OpKind::kQuantize ? 1 : 0;
  }
  CHECK(floats > 20);
  CHECK(bytes > 20);
  CHECK(borders > 20);
}

TEST_CASE("nets of f32 get the samples of a profile of f32, and layers of other types a few") {
  const auto quotas = quotas_of({}, 600);
  namespace id = kernels::kernel_id;
  CHECK(sum_of(quotas) == 600);
  CHECK(quotas.at(id::kConvDirect) > 30);
  CHECK(quotas.at(id::kDense) > 60);
  for (const KernelId few : {id::kDenseEightBits, id::kConvPointwiseEightBits, id::kConvDirectEightBits, id::kConvDirectBf16})
    CHECK(quotas.at(few) == 2);
}

TEST_CASE("nets of weights of 8 bits get as many, most of them for their own kernels") {
  namespace id = kernels::kernel_id;
  const std::vector<NetType> others{NetType::kInt4, NetType::kIntegers};
  const auto quotas = quotas_of({NetType::kInt8, others}, 600);
  CHECK(sum_of(quotas) == 600);
  for (const KernelId own : {id::kDenseEightBits, id::kConvPointwiseEightBits, id::kConvDirectEightBits, id::kConvWinogradEightBits})
    CHECK(quotas.at(own) > 30);
  CHECK(quotas.at(id::kConvDepthwiseEightBits) > 17);
  CHECK(quotas.at(id::kConvDepthwise) > 17);  // small layers stay f32
  CHECK(quotas.at(id::kPool) > 17);
  CHECK(quotas.at(id::kConvDirectFourBitsHalfScales) == 2);
  CHECK(quotas.at(id::kIntegerDirect) >= 2);
}

TEST_CASE("of kernels that nets of another type have told of, fewer samples are taken") {
  namespace id = kernels::kernel_id;
  std::vector<KernelSample> before(100);
  for (KernelSample& sample : before) sample.kernel = {id::kConvDepthwise, KernelUse::kRun, 0};
  const auto alone = quotas_of({NetType::kInt8, {}}, 600), after = quotas_of({NetType::kInt8, {}}, 600, before);
  CHECK(sum_of(after) == 600);
  CHECK(after.at(id::kConvDepthwise) == 0);
  CHECK(after.at(id::kConvDirectEightBits) >= alone.at(id::kConvDirectEightBits));
}

TEST_CASE("nets of integers get most samples for kernels of integers") {
  namespace id = kernels::kernel_id;
  const auto quotas = quotas_of({NetType::kIntegers, {}}, 600);
  CHECK(sum_of(quotas) == 600);
  for (const KernelId own : {id::kIntegerPointwise, id::kIntegerDirect, id::kIntegerDepthwise, id::kIntegerDense})
    CHECK(quotas.at(own) > 30);
  for (const KernelId own : {id::kIntegerPool, id::kIntegerBinary, id::kIntegerTable, id::kIntegerQuantize}) CHECK(quotas.at(own) >= 2);
  CHECK(quotas.at(id::kConcat) > 4);
  CHECK(quotas.at(id::kAttention) > 4);
  CHECK_FALSE(quotas.contains(id::kConvWinograd));
}

TEST_CASE("a profile of no type is refused") {
  MeasureOptions options;
  options.types.clear();
  const auto measured = measure_device(options);
  REQUIRE_FALSE(measured);
  CHECK(measured.error().code == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::profiler
