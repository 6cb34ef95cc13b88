#include "sluice/planner/order/views.h"

#include <catch2/catch.hpp>

#include "sluice/planner/order/linearise.h"
#include "tests/planner/nets.h"

namespace sluice::planner {
namespace {

/// A kernel for every node that takes pitches and runs in place on whatever has the output's shape.
struct FakeKernels {
  kernels::KernelDescriptor free;
  kernels::KernelDescriptor rigid;  // takes no pitches, never in place
  std::vector<const kernels::KernelDescriptor*> choice;

  explicit FakeKernels(const model::Graph& graph) {
    free.in_place_inputs = [](const model::Graph&, const model::Node&) noexcept { return ~0u; };
    rigid.takes_pitches = false;
    choice.assign(graph.nodes.size(), &free);
  }
};

bool has_step(const Views& views, std::size_t node) {
  return std::find(views.order.begin(), views.order.end(), NodeId(node)) != views.order.end();
}

Views views_of(const model::Graph& graph, const FakeKernels& kernels, bool keep_inputs = false) {
  return assign_views(graph, KernelChoice(graph, kernels.choice), graph_order(graph), keep_inputs);
}

TEST_CASE("concatenations nest by placement") {
  NetBuilder net("nested");
  const TensorId x = net.input({1, 4, 4, 16});
  const TensorId a = net.conv(x, {.channels = 16});
  const TensorId b = net.conv(x, {.channels = 32});
  const TensorId inner = net.concat({a, b}, 3);
  const TensorId c = net.conv(x, {.channels = 48});
  const TensorId outer = net.concat({c, inner}, 3);
  net.output(net.conv(outer, {.channels = 16}));
  const model::Graph graph = net.finish();
  const Views views = views_of(graph, FakeKernels(graph));
  CHECK(views.order.size() == 4);
  const auto& at = views.tensors;
  CHECK(at[a.index()].buffer == at[outer.index()].buffer);
  CHECK(at[c.index()].offset == Bytes(0));
  CHECK(at[inner.index()].offset == Bytes(48 * 4));
  CHECK(at[b.index()].offset == Bytes((48 + 16) * 4));
  CHECK(at[b.index()].pixel_pitch == 96 * 4);
  CHECK(at[b.index()].row_pitch == 4 * 96 * 4);
}

TEST_CASE("rows a multiple of 4096 bytes apart get a line between them, unless their layout is somebody's") {
  NetBuilder net("aliasing");
  const TensorId x = net.input({7, 1024});
  const TensorId wide = net.dense(x, 1024);
  const TensorId odd = net.dense(wide, 1000);
  const TensorId flat = net.dense(odd, 1024);
  const TensorId split = net.reshape(flat, {7, 2, 512});
  net.output(net.dense(net.reshape(split, {7, 1024}), 1024));
  const model::Graph graph = net.finish();
  const Views views = views_of(graph, FakeKernels(graph));
  const auto& at = views.tensors;
  CHECK(at[x.index()].row_pitch == 4096);
  CHECK(at[wide.index()].row_pitch == 4096 + 64);
  CHECK(views.blocks[at[wide.index()].buffer.index()].bytes == 7 * (4096 + 64));
  CHECK(at[odd.index()].row_pitch == 4000);
  CHECK(at[flat.index()].row_pitch == 4096);
  CHECK(at[graph.outputs[0].tensor.index()].row_pitch == 4096);
}

TEST_CASE("concatenation along rows and pixels places runs of rows and of pixels") {
  for (const int axis : {1, 2}) {
    NetBuilder net("spatial");
    const TensorId x = net.input({1, 4, 4, 16});
    const TensorId a = net.relu(x);
    const TensorId b = net.conv(x, {.channels = 16});
    const TensorId whole = net.concat({a, b}, axis);
    net.output(net.conv(whole, {.channels = 16}));
    const model::Graph graph = net.finish();
    const Views views = views_of(graph, FakeKernels(graph));
    CHECK(views.order.size() == 3);
    CHECK(views.tensors[b.index()].offset == Bytes(axis == 1 ? 4 * 4 * 64 : 4 * 64));
    CHECK(views.tensors[b.index()].row_pitch == (axis == 1 ? 4 * 64 : 8 * 64));
  }
}

TEST_CASE("a concatenation copies when an input cannot lie in it") {
  const auto concat_has_step = [](auto build) {
    NetBuilder net("copies");
    const TensorId x = net.input({1, 4, 4, 16});
    const TensorId a = net.conv(x, {.channels = 16});
    build(net, x, a);
    const model::Graph graph = net.finish();
    FakeKernels kernels(graph);
    if (graph.name == "rigid") kernels.choice[0] = &kernels.rigid;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].op == model::OpKind::kConcat) return has_step(views_of(graph, kernels), n);
    return false;
  };
  CHECK(concat_has_step([](NetBuilder& net, TensorId x, TensorId a) { net.output(net.concat({x, a}, 3)); }));  // a graph input
  CHECK(concat_has_step([](NetBuilder& net, TensorId, TensorId a) { net.output(net.concat({a, a}, 3)); }));    // twice the same
  CHECK(concat_has_step([](NetBuilder& net, TensorId, TensorId a) {                                            // a graph output
    net.output(a);
    net.output(net.concat({net.relu(a), a}, 3));
  }));
  CHECK(concat_has_step([](NetBuilder& net, TensorId, TensorId a) { net.output(net.concat({a, net.constant({1, 4, 4, 16})}, 3)); }));
  CHECK_FALSE(concat_has_step([](NetBuilder& net, TensorId, TensorId a) { net.output(net.concat({a, net.relu(a)}, 3)); }));
}

TEST_CASE("a kernel that takes no pitches keeps its tensors dense") {
  NetBuilder net("rigid");
  const TensorId x = net.input({1, 4, 4, 16});
  const TensorId a = net.conv(x, {.channels = 16});
  const TensorId b = net.conv(x, {.channels = 16});
  net.output(net.relu(net.concat({a, b}, 3)));
  const model::Graph graph = net.finish();
  FakeKernels kernels(graph);
  kernels.choice[0] = &kernels.rigid;
  const Views views = views_of(graph, kernels);
  CHECK(has_step(views, 2));
  CHECK(views.tensors[a.index()].pixel_pitch == 64);
}

TEST_CASE("a slice is a view unless its consumers want it dense") {
  NetBuilder net("split");
  const TensorId x = net.input({1, 4, 4, 32});
  const TensorId a = net.conv(x, {.channels = 32});
  const TensorId left = net.slice(a, 3, 0, 16);
  const TensorId right = net.slice(a, 3, 16, 16);
  net.output(net.conv(left, {.channels = 16}));
  net.output(net.conv(right, {.channels = 16}));
  const model::Graph graph = net.finish();
  FakeKernels kernels(graph);
  const Views free = views_of(graph, kernels);
  CHECK(free.order.size() == 3);
  CHECK(free.tensors[right.index()].offset == Bytes(64));
  CHECK(free.tensors[right.index()].pixel_pitch == 128);
  kernels.choice[4] = &kernels.rigid;
  CHECK(has_step(views_of(graph, kernels), 2));
}

TEST_CASE("a result replaces an input only when nobody else needs the bytes") {
  NetBuilder net("in place");
  const TensorId x = net.input({1, 4, 4, 16});
  const TensorId a = net.conv(x, {.channels = 16});
  const TensorId r = net.relu(a);                                                // a is read again below
  const TensorId s = net.binary(r, a);                                           // r and a die here: takes the first
  const TensorId t = net.conv(s, {.channels = 16, .kernel = 3, .residual = s});  // reads s round about, and as the residual
  const TensorId u = net.conv(t, {.channels = 16, .residual = x});               // the residual is a graph input
  net.output(u);
  const model::Graph graph = net.finish();
  const FakeKernels kernels(graph);
  const auto block = [](const Views& v, TensorId id) { return v.tensors[id.index()].buffer; };
  const Views given = views_of(graph, kernels, false);
  CHECK(block(given, r) != block(given, a));
  CHECK(block(given, s) == block(given, r));
  CHECK(block(given, t) != block(given, s));
  CHECK(block(given, u) == block(given, x));
  const Views kept = views_of(graph, kernels, true);
  CHECK(block(kept, u) != block(kept, x));
}

TEST_CASE("a view of a tensor keeps it alive and unreplaced") {
  NetBuilder net("alias");
  const TensorId x = net.input({1, 4, 4, 16});
  const TensorId a = net.conv(x, {.channels = 16});
  const TensorId flat = net.reshape(a, {1, 256});
  const TensorId r = net.relu(a);
  net.output(r);
  net.output(net.dense(flat, 16));
  const model::Graph graph = net.finish();
  const Views views = views_of(graph, FakeKernels(graph));
  CHECK(views.tensors[flat.index()].buffer == views.tensors[a.index()].buffer);
  CHECK(views.tensors[r.index()].buffer != views.tensors[a.index()].buffer);
  CHECK(views.blocks[views.tensors[a.index()].buffer.index()].last == 2);
}

TEST_CASE("parts of rows fold only when they are boxes") {
  CHECK(fold_box({2, 4, 4, 8}, {0, 2, 0, 0}, {1, 2, 4, 8})->row == 2);
  CHECK(fold_box({2, 4, 4, 8}, {1, 0, 0, 0}, {1, 4, 4, 8})->row == 4);
  CHECK_FALSE(fold_box({2, 4, 4, 8}, {0, 2, 0, 0}, {2, 2, 4, 8}).has_value());  // rows of two images are not adjacent
  CHECK(fold_box({3, 5, 7}, {1, 0, 2}, {2, 5, 4})->row == 5);
  CHECK(fold_box({3, 5, 7}, {1, 0, 2}, {2, 5, 4})->channel == 2);
  CHECK_FALSE(fold_box({3, 5, 7}, {0, 0, 0}, {5, 7}).has_value());
}

TEST_CASE("the greedy order is topological and complete") {
  const model::Graph graph = resnet50();
  std::vector<bool> made(graph.tensors.size(), false);
  for (const model::Port& port : graph.inputs) made[port.tensor.index()] = true;
  const std::vector<NodeId> order = greedy_order(graph);
  CHECK(order.size() == graph.nodes.size());
  for (NodeId id : order) {
    for (TensorId in : graph.node(id).inputs) REQUIRE(made[in.index()]);
    made[graph.node(id).outputs[0].index()] = true;
  }
}

TEST_CASE("the greedy order has a condition before what it guards") {
  // Of what is ready the greedy order takes what ends with least: without the guards the condition, which is made of much, would come late.
  NetBuilder net("choice");
  const TensorId x = net.input({1, 8, 8, 16});
  const TensorId much = net.conv(x, {.channels = 256});
  const TensorId yes = net.conv(x, {.channels = 16}), no = net.conv(x, {.channels = 16});
  net.output(net.binary(yes, no));
  model::Graph graph = net.finish();
  model::Tensor truth;
  truth.name = "truth";
  truth.dtype = DType::kBool;
  truth.shape = Shape{1};
  graph.tensors.push_back(truth);
  const TensorId condition(graph.tensors.size() - 1);
  model::Node decide, choose = graph.nodes.back();
  decide.op = choose.op = model::OpKind::kPlain;
  decide.attributes = model::PlainAttributes{1, 0, 1, {}};
  decide.inputs = {much};
  decide.outputs = {condition};
  choose.attributes = model::PlainAttributes{operators::kChoose, 0, 7, {}};
  choose.inputs = {condition, yes, no};
  graph.nodes.back() = choose;
  graph.nodes.insert(graph.nodes.begin() + 1, decide);
  const std::vector<NodeId> order = greedy_order(graph);
  REQUIRE(order.size() == graph.nodes.size());
  const auto place = [&](std::size_t node) { return std::find(order.begin(), order.end(), NodeId(node)) - order.begin(); };
  CHECK(place(1) < place(2));
  CHECK(place(1) < place(3));
  CHECK(place(3) < place(4));
}

TEST_CASE("the greedy order finishes one branch before it begins the next") {
  // Two branches that widen and narrow again, their nodes interleaved in the graph.
  NetBuilder net("branches");
  const TensorId x = net.input({1, 8, 8, 16});
  const TensorId wide_a = net.conv(x, {.channels = 256});
  const TensorId wide_b = net.conv(x, {.channels = 256});
  const TensorId a = net.conv(wide_a, {.channels = 16});
  const TensorId b = net.conv(wide_b, {.channels = 16});
  net.output(net.binary(a, b));
  const model::Graph graph = net.finish();
  const FakeKernels kernels(graph);
  CHECK(live_peak(assign_views(graph, KernelChoice(graph, kernels.choice), greedy_order(graph), false)) <
        live_peak(assign_views(graph, KernelChoice(graph, kernels.choice), graph_order(graph), false)));
}

}  // namespace
}  // namespace sluice::planner
