// A model of several shapes is opened at the extents of the arrays that a run is given: `--input ids.npy` of [1, 7] binds S to 7.
//
//     arrays --shapes_of_arrays--> wanted shapes by port --fit_extents--> --dim NAME=EXTENT for what the command line left open
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/engine/engine.h"

namespace sluice::cli {

/// By input port; nothing where the input comes from a picture, from random numbers or not at all.
using WantedShapes = std::vector<std::optional<Shape>>;

/// The model at the extents at which its inputs have the wanted shapes, as far as `given` leaves them open. A dimension that no array
/// decides stays at its bound. Opens the header a few times for each dimension. Throws Failure (kInvalidArgument) where the file has no
/// graph for an array's extent, naming the input, the axis and what the dimension can be.
std::shared_ptr<const Model> fit_extents(std::shared_ptr<const Model> model, const model::Extents& given, const WantedShapes& wanted);

}  // namespace sluice::cli
