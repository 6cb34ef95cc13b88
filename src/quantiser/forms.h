// How far each layer shrinks so that all together fit into so many bytes: where a byte less costs the least noise.
//
//     each layer:  forms from many bytes and little noise to few bytes and much, the lower hull of them -->
//     all layers:  the steps along their hulls, the cheapest a byte first, until the sum of bytes is small enough; what the last step
//                  leaves over goes to the layers whose noise it lowers the most
//
// Noise is that of a layer's own outputs, of its signal, and adds up over layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/quantiser/shrink.h"

namespace sluice::quantiser {

/// One way to store a layer.
struct Form {
  double bytes = 0;
  double noise = 0;  // of the signal of its outputs
};

/// What these codes take with their scales, coded, in panels of 16 outputs (docs/file-format.md): an estimate from how often each byte occurs.
double coded_bytes(const Shrunk& shrunk);

/// By layer, the number of its form: the bytes of all are at most `most`, the sum of noise about the least. Nothing: the smallest forms
/// together are larger.
std::optional<std::vector<std::size_t>> choose_forms(std::span<const std::vector<Form>> layers, double most);

}  // namespace sluice::quantiser
