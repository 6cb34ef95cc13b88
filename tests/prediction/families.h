// Networks nobody has run, for the predictor: variants of thirteen families of image classifiers and of transformers, language models and
// nets over sequences, with channels and kernels redrawn, as ONNX files of shapes without data (small integers apart).
//
//     family, number --draw--> layers --OnnxBuilder--> bytes of an ONNX file, a few KB
//
// The same family and number always give the same file. Which numbers are for tests is fixed (kTestNumbers): nothing that chooses samples
// or rules sees those, and no profile is measured on them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::test {

/// alexnet, vgg, densenet, googlenet, squeezenet, resnet, mobilenet_v1, mobilenet_v2, mobilenet_v3, shufflenet_v2, mnasnet, proxylessnas,
/// nasbench201, then encoder, language, sequence.
std::span<const std::string_view> family_names();
inline constexpr std::size_t kImageFamilies = 13;

/// Variants from this number on are for tests only.
inline constexpr std::uint32_t kTestNumbers = 1000;

/// kIntegers: QuantizeLinear and DequantizeLinear around layers, sums and pools, and layers with weights of 8 bits, which are in the file.
/// Attention, norms and recurrent layers are of floats.
enum class Arithmetic : std::uint8_t { kFloats, kIntegers };

/// Variant `number` of a family; empty for a name that is none.
std::string variant_of(std::string_view family, std::uint32_t number, Arithmetic arithmetic = Arithmetic::kFloats);

}  // namespace sluice::test
