#include "sluice/engine/shared_arena.h"

#include <new>
#include <utility>

#include "src/core/out_of_memory.h"
#include "src/core/stack.h"
#include "src/engine/planning.h"
#include "src/engine/tenancy.h"

namespace sluice {

SharedArena::SharedArena(std::shared_ptr<engine::Tenancy> tenancy) noexcept : tenancy_(std::move(tenancy)) {}
SharedArena::~SharedArena() = default;

Result<std::shared_ptr<SharedArena>> SharedArena::create(const SharedArenaOptions& options) {
  SLUICE_RETURN_IF_ERROR(engine::check_options({.reserve = options.reserve, .threads = options.threads}));
  return or_out_of_memory("shared arena", [&]() -> Result<std::shared_ptr<SharedArena>> {
    auto tenancy = std::make_shared<engine::Tenancy>(engine::TenancyOptions{.budget = options.budget,
                                                                            .largest_budget = options.largest_budget,
                                                                            .scope = options.scope,
                                                                            .reserve = options.reserve,
                                                                            .threads = options.threads,
                                                                            .compute_cpus = options.compute_cpus,
                                                                            .shared = true});
    return std::shared_ptr<SharedArena>(new SharedArena(std::move(tenancy)));
  });
}

namespace engine {

Result<std::shared_ptr<SharedArena>> open_window(const WindowOptions& options) {
  SLUICE_RETURN_IF_ERROR(check_options({.threads = options.threads}));
  return or_out_of_memory("shared arena", [&]() -> Result<std::shared_ptr<SharedArena>> {
    auto tenancy = std::make_shared<Tenancy>(
        TenancyOptions{.threads = options.threads, .compute_cpus = options.compute_cpus, .shared = true, .window = options.window});
    return std::shared_ptr<SharedArena>(new SharedArena(std::move(tenancy)));
  });
}

}  // namespace engine

Status SharedArena::set_budget(Bytes budget) {
  const engine::Occupation occupation(*tenancy_);
  SLUICE_RETURN_IF_ERROR(occupation.status());
  SLUICE_RETURN_IF_ERROR(check_stack(kLeastStack));
  return or_out_of_memory("shared arena", [&] { return tenancy_->set_budget(budget); });
}

MemoryReport SharedArena::memory() const noexcept { return tenancy_->memory(); }

}  // namespace sluice
