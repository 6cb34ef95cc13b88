// What `--dim` says, at one point: an extent for every dimension, those that follow from others included.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/importer/importer.h"

namespace sluice::importer {

/// The dimensions that are bound when the model is opened, extents in rising order. Refuses (kInvalidArgument) what no file can hold.
std::vector<model::Dimension> open_dimensions(const ConvertOptions& options);

/// ConvertOptions::dims with the extents of `point` and with the sums. Refuses (kInvalidArgument) a sum of dimensions that are not stated.
std::map<std::string, std::int64_t> dims_at(const ConvertOptions& options, const std::vector<model::Dimension>& dimensions,
                                            std::size_t point);

/// "N=4, S=16"
std::string point_text(const std::vector<model::Dimension>& dimensions, std::size_t point);

}  // namespace sluice::importer
