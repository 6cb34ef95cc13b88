#include "sluice/plan/picture.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace sluice::plan {
namespace {

model::Graph graph() {
  model::Graph graph;
  graph.name = "a <small> & odd\xff net";
  graph.tensors = {{"image", DType::kF32, {1, 8}, {}}, {"sum", DType::kF32, {1, 8}, {}}};
  graph.weights.resize(1);
  graph.weights[0].name = "w<0>";
  graph.nodes.resize(2);
  graph.nodes[0].name = "first";
  graph.nodes[1].name = "second";
  return graph;
}

/// Two steps; a streamed weight whose gate lies in the run before.
Plan plan() {
  Plan plan;
  plan.policy = "sluice";
  plan.arena_bytes = Bytes(20480);
  plan.buffers = {{BufferKind::kInput, Bytes(64), 64, Bytes(0), {0, 1}, true},
                  {BufferKind::kActivation, Bytes(64), 64, Bytes(64), {0, 2}, false},
                  {BufferKind::kWeight, Bytes(4096), 4096, Bytes(4096), {-1, 2}, false},
                  {BufferKind::kWeight, Bytes(4096), 4096, Bytes(8192), {0, 2}, true},
                  {BufferKind::kWorkspace, Bytes(1024), 64, Bytes(12288), {1, 2}, false}};
  plan.tensors = {{BufferId(0), Bytes(0), 32, 32, 0}, {BufferId(1), Bytes(0), 32, 32, 0}};
  plan.steps.resize(2);
  plan.steps[0].node = NodeId(0);
  plan.steps[1].node = NodeId(1);
  plan.steps[1].workspace = BufferId(4);
  plan.operands = {{WeightId(0), {0, 1}, LoadId(0)}};
  plan.loads = {{{Bytes(0), Bytes(4096)}, BufferId(2), 0, 1, false, -1, {1, 2}},
                {{Bytes(4096), Bytes(4096)}, BufferId(3), 1, 1, true, 0, {1, 2}}};
  return plan;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Every element that is opened is closed, in order.
bool well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with("?") || tag.ends_with("/")) continue;
    const std::string name = tag.substr(tag.starts_with("/") ? 1 : 0, tag.find(' ') - (tag.starts_with("/") ? 1 : 0));
    if (!tag.starts_with("/")) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

TEST_CASE("every buffer and load is drawn, and what wraps is drawn at both ends") {
  const std::string svg = picture_of(plan(), graph());
  CHECK(well_formed(svg));
  CHECK(count(svg, "image (input): 64 bytes at 0,") == 1);
  CHECK(count(svg, "sum (activation)") == 1);
  CHECK(count(svg, "w&lt;0>") == 3);  // before the run, waiting, in use
  CHECK(count(svg, "second (workspace)") == 1);
  CHECK(count(svg, "<title>load 0: 4096 bytes") == 2);
  CHECK(count(svg, "<title>load 1") == 0);  // resident: it has no place in a period
}

TEST_CASE("names from files do no harm") {
  const std::string svg = picture_of(plan(), graph());
  CHECK(svg.find("a &lt;small> &amp; odd? net") != std::string::npos);
}

TEST_CASE("a plan of nothing has a picture too") { CHECK(well_formed(picture_of(Plan(), model::Graph()))); }

}  // namespace
}  // namespace sluice::plan
