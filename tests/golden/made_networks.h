// Well-known networks with seeded weights, written as ONNX by the tests themselves: nothing from outside the repository is needed to know
// what they compute. Nodes are those that exporters write, so that what `convert` recognises (norms, attention, GELU) is there to be
// recognised.
//
// The file holds the graph; weights are external data beside it (NAME.data), written part by part.
#pragma once

#include <string>

namespace sluice::test {

/// Writes `name` (mobilenet_v2, resnet152, vit_b_16, gpt2, many_kinds) to `path`, its weights to `path` + ".data". False: an unknown name,
/// or a file that cannot be written. GPT-2 takes 64 tokens and gives every 97th logit of the last one; the others take a picture and give
/// 1000 scores.
bool write_made_network(const std::string& name, const std::string& path);

}  // namespace sluice::test
