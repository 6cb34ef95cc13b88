#include <new>
#include <utility>

#include "sluice/engine/engine.h"

namespace sluice {

Result<std::shared_ptr<const Model>> Model::open(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(model::ModelFile file, model::ModelFile::open(path));
  return std::shared_ptr<const Model>(new Model(std::move(file)));
}

}  // namespace sluice
