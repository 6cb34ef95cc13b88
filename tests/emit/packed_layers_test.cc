// Layers as a measurer unpacks them on a device have the parameters and the tensors that emitted tables would have.
#include "src/emit/packed_layers.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "sluice/emit/region_cost.h"
#include "src/emit/kernels.h"
#include "src/emit/parameters.h"
#include "src/emit/write.h"
#include "tests/emit/compiled_emission.h"
#include "tests/importer/qdq_builder.h"

using namespace sluice;
using namespace sluice::test;

namespace {

/// Convolutions that differ in all that they can, residuals, a pool, a product and layers of other kernels.
QdqBuilder network() {
  QdqBuilder b;
  const auto window = [](std::int64_t kernel, std::int64_t pad, std::int64_t stride, std::int64_t group) {
    return std::vector<std::string>{attribute("kernel_shape", Ints{kernel, kernel}), attribute("pads", Ints{pad, pad, pad, pad}),
                                    attribute("strides", Ints{stride, stride}), attribute("group", group)};
  };
  b.input("x", {1, 3, 21, 19}).output("y");
  b.node("Conv", {b.pair("x", {0.02f, 120}), b.float_weight("w0", {12, 3, 3, 3})}, {"c0"}, window(3, 1, 2, 1)).node("Relu", {"c0"}, {"r0"});
  const std::string stem = b.pair("r0", {0.02f, 0});
  b.node("Conv", {stem, b.float_weight("w1", {12, 1, 3, 3})}, {"c1"}, window(3, 1, 1, 12));
  b.node("Conv", {b.pair("c1", {0.01f, 128}), b.float_weight("w2", {12, 12, 1, 1})}, {"c2"}, window(1, 0, 1, 1));
  b.node("Add", {b.pair("c2", {0.03f, 100}), stem}, {"sum"});
  const std::string sum = b.pair("sum", {0.03f, 90});
  b.node("Conv", {sum, b.float_weight("w3", {21, 4, 3, 3})}, {"c3"}, window(3, 0, 1, 3)).node("Relu", {"c3"}, {"r3"});
  b.node("Conv", {sum, b.float_weight("w4", {12, 1, 5, 5})}, {"c4"}, window(5, 2, 2, 12));
  b.node("GlobalAveragePool", {b.pair("c4", {0.04f, 11})}, {"p"}).node("Flatten", {b.pair("p", {0.04f, 11})}, {"flat"});
  b.node("MatMul", {"flat", b.float_weight("w5", {12, 5})}, {"y"});
  return b;
}

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

/// Every layer behind the address 8, its tensors whole or in one pixel; their addresses are what `layers` and `plan` say.
void place(const emit::Network& network, bool in_one_pixel, std::vector<emit::Layer>& layers, emit::MemoryPlan& plan) {
  for (const emit::Stage& stage : network.stages) {
    std::uint64_t at = 2 * emit::kPlaceBytes;
    const auto add = [&](std::size_t storage, const RowExtents& view) {
      const std::uint64_t pixel = static_cast<std::uint64_t>(view.channels) * size_of(network.storages[storage].dtype);
      at = aligned(at + (in_one_pixel ? pixel : pixel * static_cast<std::uint64_t>(view.rows * view.pixels)));
    };
    for (const emit::StageInput& input : stage.inputs) add(input.storage, input.view);
    add(stage.storage, stage.out);
    layers.push_back({&stage, "", at, in_one_pixel, ""});
    plan.scratch.push_back(at);
    plan.kept.push_back(at);
  }
}

/// "if (it is not as it was) return LAYER;" for each number of a layer that takes time.
std::string comparison(const emit::Layer& layer, std::size_t number) {
  const std::string type = emit::code_of(layer.stage->kernel).type, name = "expected_" + std::to_string(number);
  if (type.empty()) return {};
  std::string text = "  {\n    static const " + type + " " + name + " = " + layer.parameters + ";\n    const " + type + "* made = (const " +
                     type + "*)stages[1].parameters;\n";
  for (const emit::Member& member : emit::members_of(type)) {
    const bool time = member.name.find("zero") == std::string::npos && !member.name.ends_with("low") && !member.name.ends_with("high");
    if (time && member.type != "float") text += "    if (made->" + member.name + " != " + name + "." + member.name + ") return LAYER;\n";
  }
  return text + "  }\n";
}

}  // namespace

TEST_CASE("members of the portable structs are found in their order") {
  const std::vector<emit::Member> members = emit::members_of("sluice_conv_u8");
  REQUIRE(members.size() == 38);
  CHECK(members[0].name == "window.in_h");
  CHECK(members[0].type == "int16_t");
  CHECK(members[11].name == "window.pad_right");
  CHECK((members[12].name == "weights" && members[12].type.empty()));
  CHECK((members[13].name == "finish.bias" && members[13].type.empty()));
  CHECK((members[15].name == "finish.range.zero" && members[15].type == "uint8_t"));
  CHECK((members[34].name == "apply" && members[34].type.empty()));
  CHECK((members[37].name == "activation.b" && members[37].type == "float"));
  CHECK(emit::members_of("sluice_resize").size() == 4);
}

TEST_CASE("a device unpacks the parameters that were packed, whole and in one pixel") {
  const TemporaryFolder folder;
  importer::ConvertReport report;
  const auto model = convert_exactly(folder, network(), report);
  INFO((report.problems.empty() ? std::string() : report.problems[0].message));
  REQUIRE(model);
  emit::NetworkOptions options;
  options.input = emit::InputForm::kHeld;
  const auto made = emit::make_network((*model)->graph(), options);
  REQUIRE(made);
  for (const bool in_one_pixel : {false, true}) {
    std::vector<emit::Layer> layers;
    emit::MemoryPlan plan;
    plan.storages.resize(made->storages.size());
    place(*made, in_one_pixel, layers, plan);
    emit::ParameterWriter parameters((*model)->graph(), *made, plan);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const auto initialiser = parameters.initialiser(i);
      REQUIRE(initialiser);
      layers[i].parameters = *initialiser;
    }
    const emit::PackedLayers packed = emit::pack_layers(*made, layers);
    REQUIRE(packed.order.size() == layers.size());
    std::string text = emit::copied_headers(*made, "measure.h") + parameters.stand_ins() + parameters.text + packed.text;
    text +=
        "static sluice_stage stages[2];\nstatic sluice_input inputs[4];\nint main(void) {\n  const sluice_port* port = ports;\n"
        "  const sluice_layers* group = groups;\n  uint32_t number = 0;\n";
    for (std::size_t at = 0; at < layers.size(); ++at) {
      const emit::Layer& layer = layers[packed.order[at]];
      const std::string place = std::to_string(at + 1);
      std::string compared = "  port = sluice_set_layer(stages, inputs, group, number, extents, port);\n" + comparison(layer, at);
      const auto& out = layer.stage->out;
      const std::uint64_t pixel = static_cast<std::uint64_t>(out.channels) * size_of(made->storages[layer.stage->storage].dtype);
      compared += "  if (stages[1].run != " + std::string(emit::code_of(layer.stage->kernel).run) + ") return LAYER;\n";
      compared += "  if (stages[1].inputs_count != " + std::to_string(layer.stage->inputs.size()) + ") return LAYER;\n";
      compared += "  if (stages[1].rows != " + std::to_string(layer.stage->walked.rows) +
                  " || stages[1].pixels != " + std::to_string(layer.stage->walked.pixels) + ") return LAYER;\n";
      compared += "  if (stages[1].out.pixel_bytes != " + std::to_string(pixel) + " || stages[1].out.ring != " +
                  std::to_string(in_one_pixel ? pixel : pixel * static_cast<std::uint64_t>(out.rows * out.pixels)) + ") return LAYER;\n";
      compared += "  if (++number == group->count) ++group, number = 0;\n";
      for (std::size_t found = compared.find("LAYER"); found != std::string::npos; found = compared.find("LAYER"))
        compared.replace(found, 5, place);
      text += compared;
    }
    text += "  return group == groups + sizeof groups / sizeof *groups && port == ports + sizeof ports / sizeof *ports ? 0 : 255;\n}\n";
    write_text(folder.path("layers.c"), text);
    const std::string program = folder.path("layers");
    REQUIRE(std::system((std::string(SLUICE_C_COMPILER) + " -std=c99 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror " + program +
                         ".c -o " + program)
                            .c_str()) == 0);
    CHECK(std::system(program.c_str()) == 0);
    // Layers of a kernel share one struct: the convolutions theirs, the depthwise ones theirs.
    CHECK(text.find("set_0(const sluice_layer *layer)") != std::string::npos);
  }
}
