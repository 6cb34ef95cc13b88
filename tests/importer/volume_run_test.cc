// Convolutions and pools of three spatial axes become those of images: the values of the plain operators, the same bits in every budget
// and on any number of threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/importer/made.h"

using namespace sluice;
using namespace sluice::test;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::int64_t any(std::int64_t least, std::int64_t most) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return least + static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(most - least + 1));
  }
  std::int64_t of(const Ints& values) { return values[static_cast<std::size_t>(any(0, static_cast<std::int64_t>(values.size()) - 1))]; }

 private:
  std::uint64_t state_;
};

struct Volume {
  Ints x;  // [N, C, D, H, W]
  Ints kernel, stride{1, 1, 1}, dilation{1, 1, 1}, pads{0, 0, 0, 0, 0, 0};

  bool fits() const {
    for (std::size_t a = 0; a < 3; ++a)
      if (x[a + 2] + pads[a] + pads[a + 3] < (kernel[a] - 1) * dilation[a] + 1) return false;
    return true;
  }
  std::vector<std::string> attributes(bool dilates = true) const {
    std::vector<std::string> all{attribute("kernel_shape", kernel), attribute("strides", stride), attribute("pads", pads)};
    if (dilates) all.push_back(attribute("dilations", dilation));
    return all;
  }
};

/// Kernels along all axes, along planes, along the depth.
Volume any_volume(Random& random, std::int64_t channels, bool dilates) {
  Volume v;
  v.x = {random.any(1, 2), channels, random.any(1, 7), random.any(1, 10), random.any(1, 10)};
  v.kernel = {random.any(1, 3), random.any(1, 3), random.any(1, 5)};
  const std::int64_t form = random.any(0, 3);
  if (form == 1) v.kernel[0] = 1;
  if (form == 2) v.kernel[1] = v.kernel[2] = 1;
  for (std::size_t a = 0; a < 3; ++a) {
    v.stride[a] = form == 2 && a > 0 ? 1 : random.of({1, 1, 2, 3});
    v.dilation[a] = dilates ? random.of({1, 1, 2}) : 1;
    const std::int64_t reach = (v.kernel[a] - 1) * v.dilation[a];
    v.pads[a] = random.any(0, reach);
    v.pads[a + 3] = random.any(0, reach);
  }
  return v;
}

Floats result(Made& made, std::size_t count) {
  made.set(0, DType::kF32, numbers(count));
  REQUIRE(made.session->run());
  return made.get<float>();
}

bool has_plain(const Made& made) {
  const auto& nodes = made.model->graph().nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const model::Node& n) { return n.op == model::OpKind::kPlain; });
}

/// Converts exactly and not, runs both, and the second one in the smallest budget and on two threads.
void check(const OnnxBuilder& onnx, std::size_t count, bool planes = true) {
  Made exact(onnx, {.exact = true}), made(onnx);
  for (const importer::Problem& problem : made.report.problems) UNSCOPED_INFO(problem.message);
  REQUIRE((exact.status && made.status));
  CHECK(has_plain(made) == !planes);
  const Floats wanted = result(exact, count), got = result(made, count);
  REQUIRE(got.size() == wanted.size());
  float most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) most = std::max(most, std::fabs(got[i] - wanted[i]) / (1.0f + std::fabs(wanted[i])));
  CHECK(most < 1e-5f);
  const SessionOptions options{.scope = BudgetScope::kLibrary, .threads = 2};
  const auto least = minimum_budget(*made.model, options);
  REQUIRE(least);
  auto small = Session::create(made.model, {.budget = *least, .scope = BudgetScope::kLibrary, .threads = 2});
  REQUIRE(small);
  made.session = std::move(*small);
  CHECK(result(made, count) == got);
}

std::size_t count_of(const Ints& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return static_cast<std::size_t>(count);
}

}  // namespace

TEST_CASE("convolutions of volumes are those of planes and columns") {
  Random random(1);
  for (int i = 0; i < 120; ++i) {
    const std::int64_t groups = random.of({1, 1, 2, 5});
    const std::int64_t channels = groups * (groups == 5 ? 1 : random.any(1, 9)), outputs = groups * (groups == 5 ? 1 : random.any(1, 9));
    const Volume v = any_volume(random, channels, true);
    if (!v.fits()) continue;
    CAPTURE(v.x, v.kernel, v.stride, v.dilation, v.pads, groups, outputs);
    std::vector<std::string> attributes = v.attributes();
    attributes.push_back(attribute("group", groups));
    OnnxBuilder b(13);
    b.input("x", v.x).weight("w", {outputs, channels / groups, v.kernel[0], v.kernel[1], v.kernel[2]}).weight("b", {outputs});
    check(b.node("Conv", {"x", "w", "b"}, {"y"}, attributes).output("y"), count_of(v.x));
  }
}

TEST_CASE("pools of volumes are those of planes, then of columns") {
  Random random(2);
  for (int i = 0; i < 120; ++i) {
    const bool greatest = random.any(0, 1) == 0;
    const Volume v = any_volume(random, random.any(1, 9), greatest);
    if (!v.fits()) continue;
    CAPTURE(greatest, v.x, v.kernel, v.stride, v.dilation, v.pads);
    std::vector<std::string> attributes = v.attributes(greatest);
    if (!greatest) attributes.push_back(attribute("count_include_pad", random.any(0, 1)));
    OnnxBuilder b(13);
    const std::int64_t channels = v.x[1];
    b.input("x", v.x).weight("w", {channels, channels, 1, 1, 1}).node("Conv", {"x", "w"}, {"c"});
    check(b.node(greatest ? "MaxPool" : "AveragePool", {"c"}, {"y"}, attributes).output("y"), count_of(v.x));
  }
}

TEST_CASE("a net of volumes: activations and sums join the convolutions of planes") {
  for (const std::int64_t size : {1, 3, 8, 9}) {
    const Ints x{2, 5, 3, size, 7};
    OnnxBuilder b(13);
    b.input("x", x).weight("w", {6, 5, 3, 3, 3}).weight("v", {6, 6, 1, 3, 3}).weight("u", {6, 6, 3, 1, 1});
    for (const char* name : {"s", "m"}) b.weight(name, {6});
    const std::string around = attribute("pads", Ints{1, 1, 1, 1, 1, 1});
    b.node("Conv", {"x", "w"}, {"c"}, {around}).node("Relu", {"c"}, {"r"});
    b.node("Conv", {"r", "v"}, {"d"}, {attribute("pads", Ints{0, 1, 1, 0, 1, 1})})
        .node("Add", {"d", "r"}, {"a"})
        .node("Relu", {"a"}, {"e"});
    b.node("Conv", {"e", "u"}, {"f"}, {attribute("pads", Ints{1, 0, 0, 1, 0, 0})});
    b.node("GlobalAveragePool", {"f"}, {"g"}).node("Sigmoid", {"g"}, {"h"}).node("Mul", {"f", "h"}, {"i"});
    b.node("ReduceMean", {"i"}, {"y"}, {attribute("axes", Ints{2, 3, 4})}).output("y");
    check(b, count_of(x));
    Made made(b);
    const auto& nodes = made.model->graph().nodes;
    CHECK(std::none_of(nodes.begin(), nodes.end(), [](const model::Node& n) { return n.op == model::OpKind::kUnary && n.name == "r"; }));
    // The input comes with its channels last; nothing is turned.
    CHECK(std::none_of(nodes.begin(), nodes.end(), [](const model::Node& n) { return n.op == model::OpKind::kTranspose; }));
  }
}

TEST_CASE("the greatest values of images, over any axes, whatever order these lie in") {
  const Ints shape{2, 6, 3, 5};
  for (int set = 1; set < 16; ++set)
    for (const std::int64_t keeps : {0, 1}) {
      Ints axes;
      for (int axis = 0; axis < 4; ++axis)
        if ((set >> axis & 1) != 0) axes.push_back(axis % 2 == 0 ? axis : axis - 4);
      CAPTURE(axes, keeps);
      OnnxBuilder b(13);
      b.input("x", {2, 4, 3, 5}).weight("w", {6, 4, 3, 3}).node("Conv", {"x", "w"}, {"c"}, {attribute("pads", Ints{1, 1, 1, 1})});
      b.node("ReduceMax", {"c"}, {"r"}, {attribute("axes", axes), attribute("keepdims", keeps)}).node("Neg", {"r"}, {"y"});
      Made made(b.output("y").output("c"));
      REQUIRE(made.status);
      const Floats got = result(made, 120), all = made.get<float>(1);
      Floats wanted(got.size(), -HUGE_VALF);
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t to = 0;
        for (std::size_t axis = 0, step = all.size(); axis < 4; ++axis) {
          const auto extent = static_cast<std::size_t>(shape[axis]);
          step /= extent;
          if ((set >> axis & 1) == 0) to = to * extent + i / step % extent;
        }
        wanted[to] = std::max(wanted[to], all[i]);
      }
      bool same = true;
      for (std::size_t i = 0; i < got.size(); ++i) same = same && got[i] == -wanted[i];
      CHECK(same);
    }
}
