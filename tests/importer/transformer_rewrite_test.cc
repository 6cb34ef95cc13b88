// The patterns of transformers become one node each, and what comes close to a pattern does not.
#include "src/importer/rewrite/rewrite.h"
#include "tests/importer/draft_of.h"
#include "tests/importer/transformer_builder.h"

using namespace sluice;
using namespace sluice::importer;
using namespace sluice::test;
using model::Function;

namespace {

const DraftNode& last(const Draft& draft) { return draft.nodes.back(); }

Lowered rewritten_to(OnnxBuilder& b, const std::string& value, bool fuse = true) {
  b.node("Identity", {value}, {"y"}).output("y");
  return rewritten(b, fuse);
}

/// q, k, v of [heads, rows, depth] without a batch, from a value [rows, 1, 3 * heads * depth] as torch's encoder packs them.
std::string encoder_attention(TransformerBuilder& t, const std::string& packed, std::int64_t rows, std::int64_t heads, std::int64_t depth) {
  const auto part = [&](std::int64_t i, const Ints& perm) {
    const std::int64_t channels = heads * depth;
    const std::string slice = t.node("Slice", {packed, t.ints({i * channels}), t.ints({(i + 1) * channels}), t.ints({-1})});
    return t.node("Transpose", {t.node("Reshape", {slice, t.ints({rows, heads, depth})})}, {attribute("perm", perm)});
  };
  const std::string q = t.node("Div", {part(0, {1, 0, 2}), t.scalar(4.0f)});
  const std::string weights = t.node("Softmax", {t.node("MatMul", {q, part(1, {1, 2, 0})})}, {attribute("axis", std::int64_t{-1})});
  const std::string mixed = t.node("MatMul", {weights, part(2, {1, 0, 2})});
  return t.node("Reshape", {t.node("Transpose", {mixed}, {attribute("perm", Ints{1, 0, 2})}), t.ints({rows, heads * depth})});
}

}  // namespace

TEST_CASE("a layer norm written out becomes one node with its scale and shift") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 5, 8});
  const Lowered result = rewritten_to(b, t.layer_norm("x", 8, 0.25f));
  REQUIRE(operators_of(result.draft) == "layer_norm");
  const DraftNode& node = last(result.draft);
  CHECK(std::get<model::LayerNormAttributes>(node.attributes).epsilon == 0.25f);
  CHECK(node.scale == ramp(8, 0.1f));
  CHECK(node.bias == ramp(8));
}

TEST_CASE("a variance of something else is no layer norm") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 5, 8}).input("z", {1, 5, 8});
  const std::vector<std::string> axes{attribute("axes", Ints{-1})};
  const std::string difference = t.node("Sub", {"x", t.node("ReduceMean", {"x"}, axes)});
  const std::string variance = t.node("ReduceMean", {t.node("Mul", {"z", "z"})}, axes);
  const std::string root = t.node("Sqrt", {t.node("Add", {variance, t.scalar(1e-5f)})});
  CHECK(operators_of(rewritten_to(b, t.node("Div", {difference, root})).draft).find("layer_norm") == std::string::npos);
}

TEST_CASE("LayerNormalization over several axes is one over their product") {
  OnnxBuilder b(17);
  b.input("x", {2, 3, 4}).weight("scale", {3, 4}).node("LayerNormalization", {"x", "scale"}, {"y"}, {attribute("axis", std::int64_t{1})});
  b.output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "reshape layer_norm reshape");
  CHECK(result.draft.value(result.draft.nodes[1].output).shape == Shape{2, 12});
  CHECK(result.draft.nodes[1].scale == ramp(12));
}

TEST_CASE("gelus in both forms join the dense layer before them") {
  for (const bool tangent : {false, true}) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("x", {1, 5, 8});
    const std::string wide = t.dense("x", 8, 16);
    const Lowered result = rewritten_to(b, tangent ? t.gelu_tanh(wide) : t.gelu_erf(wide));
    REQUIRE(operators_of(result.draft) == "dense");
    CHECK(last(result.draft).epilogue.activation.function == (tangent ? Function::kGeluTanh : Function::kGelu));
  }
}

TEST_CASE("the cubic of a tangent gelu may be written as a power; another factor is none") {
  for (const float factor : {0.044715f, 0.05f}) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("x", {1, 5, 8});
    const std::string cube = t.node("Mul", {t.scalar(factor), t.node("Pow", {"x", t.scalar(3.0f)})});
    const std::string tangent = t.node("Tanh", {t.node("Mul", {t.scalar(0.7978845608f), t.node("Add", {"x", cube})})});
    const std::string product = t.node("Mul", {"x", t.node("Add", {t.scalar(1.0f), tangent})});
    const Lowered result = rewritten_to(b, t.node("Mul", {t.scalar(0.5f), product}));
    CHECK((operators_of(result.draft) == "unary") == (factor == 0.044715f));
  }
}

TEST_CASE("causal attention of packed queries, keys and values: no transpose, no reshape; parts of half a panel stay slices") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 6, 8});
  const Lowered result = rewritten_to(b, t.dense(t.attention("x", 6, 2, 4), 8, 8));
  REQUIRE(operators_of(result.draft) == "dense slice slice slice attention dense");
  const auto& attributes = std::get<model::AttentionAttributes>(result.draft.nodes[4].attributes);
  CHECK((attributes.heads == 2 && attributes.causal && attributes.scale == 0.5f));
}

TEST_CASE("the encoder's attention, sequence first, and the residual behind its transposes") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 6, 32});
  const std::string first = t.node("Transpose", {"x"}, {attribute("perm", Ints{1, 0, 2})});
  const std::string mixed = encoder_attention(t, t.dense(first, 32, 96), 6, 2, 16);
  const std::string out = t.node("Gemm", {mixed, t.weight({32, 32}), t.weight({32})}, {attribute("transB", std::int64_t{1})});
  const std::string back = t.node("Transpose", {t.node("Reshape", {out, t.ints({6, 1, 32})})}, {attribute("perm", Ints{1, 0, 2})});
  const Lowered result = rewritten_to(b, t.node("Add", {back, "x"}));
  std::string steps;
  for (const DraftNode& node : result.draft.nodes)
    if (node.op != model::OpKind::kReshape) steps += std::string(name_of(node.op)) + " ";
  REQUIRE(steps == "dense dense dense attention dense dense dense attention dense dense ");
  for (const DraftNode& node : result.draft.nodes)
    if (node.op == model::OpKind::kAttention) CHECK(std::get<model::AttentionAttributes>(node.attributes).scale == 0.25f);
  CHECK(std::any_of(result.draft.nodes.begin(), result.draft.nodes.end(),
                    [](const DraftNode& node) { return node.op == model::OpKind::kDense && node.epilogue.has_residual; }));
}

TEST_CASE(
    "queries, keys and values made at once are made apart, each with its columns, and the norm before them once more for the queries") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 6, 32});
  const Lowered result = rewritten_to(b, t.dense(t.attention(t.layer_norm("x", 32), 6, 2, 16), 32, 32));
  REQUIRE(operators_of(result.draft) == "layer_norm dense dense layer_norm dense attention dense");
  const auto& nodes = result.draft.nodes;
  const DraftNode &keys = nodes[1], &values = nodes[2], &queries = nodes[4], &attention = nodes[5];
  CHECK(attention.inputs == std::vector<ValueId>{queries.output, keys.output, values.output});
  CHECK((keys.inputs[0] == nodes[0].output && values.inputs[0] == nodes[0].output && queries.inputs[0] == nodes[3].output));
  CHECK((nodes[0].inputs == nodes[3].inputs && nodes[0].scale == nodes[3].scale && nodes[0].bias == nodes[3].bias));
  // The weight of 32 x 96 has its columns in rows of 96: q, k, v.
  const std::vector<float> all = ramp(32 * 96, 0.02f), bias = ramp(96);
  std::int64_t first = 0;
  for (const DraftNode* part : {&queries, &keys, &values}) {
    const std::vector<float> made = floats(part->panels->values);
    REQUIRE(made.size() == 32u * 32u);
    for (std::int64_t n = 0; n < 32; ++n)
      for (std::int64_t k = 0; k < 32; ++k) {
        CHECK(made[static_cast<std::size_t>(n * 32 + k)] == all[static_cast<std::size_t>(k * 96 + first + n)]);
      }
    CHECK(part->bias == std::vector<float>(bias.begin() + first, bias.begin() + first + 32));
    first += 32;
  }
}

TEST_CASE("heads that see all keys go in groups, each with its columns of queries, keys and values and norms of its own") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 6, 128});
  const Lowered result = rewritten_to(b, t.dense(t.attention(t.layer_norm("x", 128), 6, 8, 16, false), 128, 128));
  std::string steps;
  for (int group = 0; group < 4; ++group) steps += "layer_norm dense dense layer_norm dense attention ";
  REQUIRE(operators_of(result.draft) == steps + "concat dense");
  const auto& nodes = result.draft.nodes;
  // The weight of 128 x 384 has its columns in rows of 384: q, k, v, of 8 heads each.
  const std::vector<float> all = ramp(128 * 384, 0.02f), bias = ramp(384);
  for (std::size_t group = 0; group < 4; ++group) {
    const DraftNode* const of_group = &nodes[6 * group];
    const DraftNode &keys = of_group[1], &values = of_group[2], &queries = of_group[4], &attention = of_group[5];
    CHECK(std::get<model::AttentionAttributes>(attention.attributes).heads == 2);
    CHECK(attention.inputs == std::vector<ValueId>{queries.output, keys.output, values.output});
    CHECK((keys.inputs[0] == of_group[0].output && values.inputs[0] == of_group[0].output && queries.inputs[0] == of_group[3].output));
    CHECK((of_group[0].inputs == nodes[0].inputs && of_group[3].scale == nodes[0].scale && of_group[3].bias == nodes[0].bias));
    CHECK(nodes[24].inputs[group] == attention.output);
    std::size_t first = group * 32;
    for (const DraftNode* part : {&queries, &keys, &values}) {
      const std::vector<float> made = floats(part->panels->values);
      REQUIRE(made.size() == 32u * 128u);
      CHECK((made[0] == all[first] && made[31 * 128 + 127] == all[127 * 384 + first + 31]));
      CHECK(part->bias ==
            std::vector<float>(bias.begin() + static_cast<std::ptrdiff_t>(first), bias.begin() + static_cast<std::ptrdiff_t>(first) + 32));
      first += 128;
    }
  }
}

TEST_CASE("where what the heads read is added to their projection, the last group is projected for itself") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {1, 6, 128});
  const std::string projected = t.dense(t.attention("x", 6, 8, 16, false), 128, 128);
  const Lowered result = rewritten_to(b, t.layer_norm(t.node("Add", {"x", projected}), 128));
  std::string steps;
  for (int group = 0; group < 4; ++group) steps += "dense dense dense attention ";
  REQUIRE(operators_of(result.draft) == steps + "concat dense dense layer_norm");
  const auto& nodes = result.draft.nodes;
  const DraftNode &concat = nodes[16], &rest = nodes[17], &last = nodes[18];
  CHECK(concat.inputs == std::vector<ValueId>{nodes[3].output, nodes[7].output, nodes[11].output});
  CHECK(rest.inputs == std::vector<ValueId>{concat.output, nodes[0].inputs[0]});
  CHECK(last.inputs == std::vector<ValueId>{nodes[15].output, rest.output});
  CHECK((rest.epilogue.has_residual && last.epilogue.has_residual && rest.bias.size() == 128 && last.bias.empty()));
  const std::vector<float> all = ramp(128 * 128, 0.02f), first = floats(rest.panels->values), second = floats(last.panels->values);
  REQUIRE((first.size() == 128u * 96u && second.size() == 128u * 32u));
  for (const std::size_t n : {0u, 1u, 127u}) {
    CHECK((first[n * 96] == all[n] && first[n * 96 + 95] == all[95 * 128 + n]));
    CHECK((second[n * 32] == all[96 * 128 + n] && second[n * 32 + 31] == all[127 * 128 + n]));
  }
}

TEST_CASE("heads stay together if they are causal, if a part is no whole panels, and if somebody else reads keys") {
  const auto attentions = [](std::int64_t depth, bool causal, bool seen) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("x", {1, 6, 4 * depth});
    const std::string mixed = t.attention("x", 6, 4, depth, causal);
    if (seen) b.output("k_5");
    const Lowered result = rewritten_to(b, t.dense(mixed, 4 * depth, 32));
    return std::count_if(result.draft.nodes.begin(), result.draft.nodes.end(),
                         [](const DraftNode& n) { return n.op == model::OpKind::kAttention; });
  };
  CHECK(attentions(16, false, false) == 4);
  CHECK(attentions(8, false, false) == 2);
  CHECK(attentions(12, false, false) == 1);
  CHECK(attentions(16, true, false) == 1);
  CHECK(attentions(16, false, true) == 1);
}

TEST_CASE("a norm that others read too is not made once more, and a part that somebody else reads keeps all of them together") {
  for (const bool norm_read : {true, false}) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("x", {1, 6, 32});
    const std::string norm = t.layer_norm("x", 32), packed = t.dense(norm, 32, 96);
    const auto part = [&](std::int64_t i, const Ints& perm) {
      const std::string slice = t.node("Slice", {packed, t.ints({i * 32}), t.ints({(i + 1) * 32}), t.ints({-1})});
      return t.node("Transpose", {t.node("Reshape", {slice, t.ints({1, 6, 2, 16})})}, {attribute("perm", perm)});
    };
    const std::string weights =
        t.node("Softmax", {t.node("MatMul", {part(0, {0, 2, 1, 3}), part(1, {0, 2, 3, 1})})}, {attribute("axis", std::int64_t{-1})});
    const std::string mixed = t.node("MatMul", {weights, part(2, {0, 2, 1, 3})});
    b.output(norm_read ? norm : packed);
    const Lowered result = rewritten_to(b, mixed);
    const std::string steps = operators_of(result.draft);
    INFO(steps);
    CHECK(steps.find("attention") != std::string::npos);
    CHECK(std::count_if(result.draft.nodes.begin(), result.draft.nodes.end(),
                        [](const DraftNode& n) { return n.op == model::OpKind::kLayerNorm; }) == 1);
    CHECK((steps.find("slice") == std::string::npos) == norm_read);
  }
}

TEST_CASE("a dense layer and a norm run on rows as they were before a reshape that keeps them, with what is added") {
  OnnxBuilder b;
  TransformerBuilder t(b);
  b.input("x", {2, 5, 8});
  const std::string flat = t.node("Reshape", {"x", t.ints({10, 8})});
  const std::string first = t.node("Add", {t.node("Gemm", {flat, t.weight({8, 8}), t.weight({8})}), flat});
  const std::string back = t.node("Reshape", {t.layer_norm(first, 8), t.ints({2, 5, 8})});
  const Lowered result = rewritten_to(b, t.node("Softmax", {back}, {attribute("axis", std::int64_t{-1})}));
  CHECK(operators_of(result.draft) == "dense layer_norm softmax");
  CHECK(result.draft.nodes[0].epilogue.has_residual);
  CHECK(result.draft.value(result.draft.nodes[1].output).shape == Shape{2, 5, 8});
}

TEST_CASE("a mask that is no triangle, and weights that somebody else reads, keep the general operators") {
  const auto attention = [](bool triangle, bool shared) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("q", {1, 2, 5, 4}).input("k", {1, 5, 2, 4}).input("v", {1, 2, 5, 4});
    const std::string k = t.node("Transpose", {"k"}, {attribute("perm", Ints{0, 2, 3, 1})});
    Floats mask(25, 0.0f);
    for (std::size_t i = 0; i < 25; ++i) mask[i] = i % 5 > i / 5 ? -1e9f : 0.0f;
    if (!triangle) mask[3] = 0.0f;
    b.initializer(tensor("mask", {1, 1, 5, 5}, mask));
    const std::string scores = t.node("Add", {t.node("MatMul", {"q", k}), "mask"});
    const std::string weights = t.node("Softmax", {scores}, {attribute("axis", std::int64_t{3})});
    if (shared) b.output(weights);
    const Lowered result = rewritten_to(b, t.node("MatMul", {weights, "v"}));
    return operators_of(result.draft).find("attention") != std::string::npos;
  };
  CHECK(attention(true, false));
  CHECK_FALSE(attention(false, false));
  CHECK_FALSE(attention(true, true));
}

TEST_CASE("a table read by tokens known at run time is an embedding") {
  OnnxBuilder b;
  b.input("tokens", {2, 3}, 7).weight("table", {10, 4}).node("Gather", {"table", "tokens"}, {"y"}).output("y");
  const Lowered result = rewritten(b);
  REQUIRE(operators_of(result.draft) == "embedding");
  CHECK(result.draft.value(result.draft.outputs[0].value).shape == Shape{2, 3, 4});
}

TEST_CASE("a few queries of keys that lie head after head stay products; many, and keys that come sequence first, are attention") {
  constexpr std::int64_t kHeads = 2, kDepth = 8, kKeys = 30;
  const auto attends = [&](std::int64_t queries, const Ints& keys, const Ints& perm) {
    OnnxBuilder b;
    TransformerBuilder t(b);
    b.input("q", {1, kHeads, queries, kDepth}).input("k", keys).input("v", {1, kHeads, kKeys, kDepth});
    const std::string k = perm.empty() ? "k" : t.node("Transpose", {"k"}, {attribute("perm", perm)});
    const std::string weights = t.node("Softmax", {t.node("MatMul", {"q", k})}, {attribute("axis", std::int64_t{-1})});
    return operators_of(rewritten_to(b, t.node("MatMul", {weights, "v"})).draft).find("attention") != std::string::npos;
  };
  const Ints turned{1, kHeads, kDepth, kKeys}, kept{1, kHeads, kKeys, kDepth}, sequence_first{1, kKeys, kHeads, kDepth};
  CHECK_FALSE(attends(1, turned, {}));
  CHECK_FALSE(attends(16, turned, {}));
  CHECK(attends(17, turned, {}));
  CHECK_FALSE(attends(1, kept, {0, 1, 3, 2}));
  CHECK(attends(17, kept, {0, 1, 3, 2}));
  CHECK(attends(1, sequence_first, {0, 2, 3, 1}));
}
