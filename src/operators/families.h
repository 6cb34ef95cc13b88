// The definitions, each in the file of its family; table.cc lists them.
#pragma once

#include "sluice/operators/definition.h"

namespace sluice::operators {

extern const OperatorDefinition kConv, kConvTranspose, kPool;                      // window.cc
extern const OperatorDefinition kDense, kMatMul;                                   // dense.cc
extern const OperatorDefinition kUnary, kBinary, kAffine, kQuantize, kDequantize;  // elementwise.cc
extern const OperatorDefinition kSoftmax, kLayerNorm, kLrn;                        // normalisation.cc
extern const OperatorDefinition kConcat, kSlice, kPad, kTranspose, kReshape;       // movement.cc
extern const OperatorDefinition kResize;                                           // resize.cc
extern const OperatorDefinition kAttention;                                        // attention.cc
extern const OperatorDefinition kEmbedding;                                        // embedding.cc
extern const OperatorDefinition kRecurrent;                                        // recurrent.cc
extern const OperatorDefinition kPlain;                                            // plain.cc

}  // namespace sluice::operators
