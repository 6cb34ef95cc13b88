// What a model is shown by `sluice quantize --data` and `sluice convert --data`, and how reports say what it did to the outputs.
#pragma once

#include <string>

#include "sluice/quantiser/quantiser.h"
#include "src/cli/image.h"
#include "src/cli/json.h"

namespace sluice::cli {

/// The pictures and arrays of a folder, in the order of their names, or one of them, each an item: a picture or an array for a model of one
/// input, an archive with an array for each input. Throws Failure, also when an item is loaded.
quantiser::Data data_in(const std::string& folder, const ImageOptions& image);

/// JSON has no infinity: where nothing differs there is no figure.
Json json_of_decibels(double value);
std::string text_of_decibels(double value);
/// 1 where there is nothing.
double share_of(std::int64_t part, std::int64_t all);

}  // namespace sluice::cli
