// `--dim` of convert: one extent, several to choose from when the model is opened, or the sum of others.
//
//     N=4            bound now                    T=S+P, T=S+1   follows from S and P, whatever they are at open
//     N=1..8         any of 1 to 8, at open       H=size         as large as `size`, which need be no dimension of the file
//     H=32..512:32   32, 64, ... 512, at open     N=1,4,16..64:16
#pragma once

#include <string>

#include "sluice/importer/importer.h"

namespace sluice::cli {

/// Throws Failure (kInvalidArgument) naming the word.
void add_dim(const std::string& word, importer::ConvertOptions& options);

}  // namespace sluice::cli
