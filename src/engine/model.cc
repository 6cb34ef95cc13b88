#include <new>
#include <utility>

#include "sluice/engine/engine.h"
#include "sluice/operators/validate.h"
#include "src/core/out_of_memory.h"

namespace sluice {

Result<std::shared_ptr<const Model>> Model::open(const std::string& path, const model::Extents& dims, const model::KeyCallback& key) {
  return or_out_of_memory(path, [&]() -> Result<std::shared_ptr<const Model>> {
    SLUICE_ASSIGN_OR_RETURN(model::ModelFile file, model::ModelFile::open(path, operators::validate_node, dims, key));
    return std::shared_ptr<const Model>(new Model(std::move(file)));
  });
}

Result<std::shared_ptr<const Model>> Model::open_source(Result<std::unique_ptr<model::WeightSource>> source, const char* name,
                                                        const model::Extents& dims, const model::KeyCallback& key) {
  if (!source) return fail(source.error());
  return or_out_of_memory(name, [&]() -> Result<std::shared_ptr<const Model>> {
    SLUICE_ASSIGN_OR_RETURN(model::ModelFile file, model::ModelFile::open(std::move(*source), name, operators::validate_node, dims, key));
    return std::shared_ptr<const Model>(new Model(std::move(file)));
  });
}

Result<std::shared_ptr<const Model>> Model::open_buffer(std::span<const std::byte> bytes, const model::Extents& dims,
                                                        const model::KeyCallback& key) {
  return open_source(model::open_buffer_source(bytes), "buffer", dims, key);
}

Result<std::shared_ptr<const Model>> Model::open_part(int descriptor, Bytes offset, Bytes size, const model::Extents& dims,
                                                      const model::KeyCallback& key) {
  return open_source(model::open_part_source(descriptor, {offset, size}), "part of a file", dims, key);
}

Result<std::shared_ptr<const Model>> Model::open_reader(const model::Reader& reader, const model::Extents& dims,
                                                        const model::KeyCallback& key) {
  return open_source(model::open_reader_source(reader), "reader", dims, key);
}

Result<std::shared_ptr<const Model>> Model::with_dims(const model::Extents& dims) const {
  return or_out_of_memory(file_.path(), [&]() -> Result<std::shared_ptr<const Model>> {
    SLUICE_ASSIGN_OR_RETURN(model::ModelFile file, file_.with_extents(dims));
    return std::shared_ptr<const Model>(new Model(std::move(file)));
  });
}

Result<std::shared_ptr<const Model>> Model::part(std::size_t first_node, std::size_t count) const {
  return or_out_of_memory(file_.path(), [&]() -> Result<std::shared_ptr<const Model>> {
    SLUICE_ASSIGN_OR_RETURN(model::ModelFile file, file_.with_part(first_node, count));
    return std::shared_ptr<const Model>(new Model(std::move(file)));
  });
}

}  // namespace sluice
