// The data that `sluice quantize --data` and `sluice convert --data` show a model, and how reports state the effect on its outputs.
#pragma once

#include <string>

#include "sluice/quantiser/quantiser.h"
#include "src/cli/image.h"
#include "src/cli/json.h"

namespace sluice::cli {

/// The pictures and arrays of a folder, in the order of their names, or one of them, each an item: a picture or an array for a model of one
/// input, an archive with an array for each input. Throws Failure, here or later when an item is loaded.
quantiser::Data data_in(const std::string& folder, const ImageOptions& image);

/// JSON has no infinity: where nothing differs there is no figure.
Json json_of_decibels(double value);
std::string text_of_decibels(double value);
/// The share of `part` in `all`; 1 if `all` is 0.
double share_of(std::int64_t part, std::int64_t all);

}  // namespace sluice::cli
