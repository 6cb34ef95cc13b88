#include "src/cli/fit_extents.h"

#include <algorithm>

#include "src/cli/failure.h"
#include "src/cli/host_tensor.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

/// An axis of an input port.
struct PortAxis {
  std::size_t port = 0;
  int axis = 0;
};

std::int64_t extent_of(const Model& model, PortAxis at) { return model.graph().inputs[at.port].onnx_shape[at.axis]; }

/// The axes of arrays that change with one dimension.
std::vector<PortAxis> axes_that_differ(const Model& a, const Model& b, const WantedShapes& wanted) {
  std::vector<PortAxis> axes;
  for (std::size_t port = 0; port < wanted.size(); ++port) {
    const Shape& shape = a.graph().inputs[port].onnx_shape;
    if (!wanted[port] || wanted[port]->rank() != shape.rank()) continue;  // loading the array gives the error
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (extent_of(a, {port, axis}) != extent_of(b, {port, axis})) axes.push_back({port, axis});
  }
  return axes;
}

class ExtentFitter {
 public:
  ExtentFitter(std::shared_ptr<const Model> model, const model::Extents& given, const WantedShapes& wanted)
      : model_(std::move(model)), bound_(given), wanted_(wanted) {}

  std::shared_ptr<const Model> fit() {
    const std::vector<model::Dimension> dimensions = model_->file().dimensions();
    for (const model::Dimension& dimension : dimensions)
      if (bound_.find(dimension.name) == bound_.end() && dimension.extents.size() > 1) fit_dimension(dimension);
    return model_;
  }

 private:
  std::shared_ptr<const Model> at(const std::string& name, std::int64_t extent) const {
    model::Extents extents = bound_;
    extents[name] = extent;
    return unwrap(model_->with_dims(extents));
  }

  void fit_dimension(const model::Dimension& dimension) {
    const auto axes =
        axes_that_differ(*at(dimension.name, dimension.extents.front()), *at(dimension.name, dimension.extents.back()), wanted_);
    if (axes.empty()) return;
    const PortAxis axis = axes.front();
    const std::int64_t wanted = (*wanted_[axis.port])[axis.axis];
    // Axes grow with their dimension, so that the one that fits is found by halving.
    const auto found = std::partition_point(dimension.extents.begin(), dimension.extents.end(),
                                            [&](std::int64_t extent) { return extent_of(*at(dimension.name, extent), axis) < wanted; });
    if (found == dimension.extents.end() || extent_of(*at(dimension.name, *found), axis) != wanted) refuse(dimension, axis);
    bound_[dimension.name] = *found;
    model_ = unwrap(model_->with_dims(bound_));
  }

  [[noreturn]] void refuse(const model::Dimension& dimension, PortAxis axis) const {
    throw Failure(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}': the array given has {} on axis {}, where the model file has {} = {}; convert with --dim {}=... "
                              "to have more",
                              model_->graph().inputs[axis.port].name, (*wanted_[axis.port])[axis.axis], axis.axis, dimension.name,
                              model::extents_text(dimension.extents), dimension.name));
  }

  std::shared_ptr<const Model> model_;
  model::Extents bound_;
  const WantedShapes& wanted_;
};

}  // namespace

std::shared_ptr<const Model> fit_extents(std::shared_ptr<const Model> model, const model::Extents& given, const WantedShapes& wanted) {
  const bool any = std::any_of(wanted.begin(), wanted.end(), [](const auto& shape) { return shape.has_value(); });
  if (!any || model->file().dimensions().empty()) return model;
  return ExtentFitter(std::move(model), given, wanted).fit();
}

}  // namespace sluice::cli
