#include "src/engine/stuck_reads.h"

#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace sluice::engine {
namespace {

std::mutex mutex;
// A list through the tenancies themselves, which begins in memory of its own: neither closing nor creating fails for want of memory here.
// Never destroyed: that would wait for the reads.
std::shared_ptr<Tenancy>& first() noexcept {
  alignas(std::shared_ptr<Tenancy>) static std::byte memory[sizeof(std::shared_ptr<Tenancy>)];
  static auto& list = *::new (memory) std::shared_ptr<Tenancy>;
  return list;
}

/// Whether the tenancy belongs in the list. One that another thread uses stays as it is: that thread will find out.
bool is_stuck(Tenancy& tenancy, bool listed) noexcept {
  const Occupation occupation(tenancy);
  return occupation.status() ? tenancy.stuck() : listed;
}

}  // namespace

void StuckReads::keep(std::shared_ptr<Tenancy> tenancy) noexcept {
  sweep();
  const std::lock_guard lock(mutex);
  for (const Tenancy* listed = first().get(); listed != nullptr; listed = listed->next_stuck_.get())
    if (listed == tenancy.get()) return;
  if (!is_stuck(*tenancy, false)) return;
  tenancy->next_stuck_ = std::move(first());
  first() = std::move(tenancy);
}

void StuckReads::sweep() noexcept {
  const std::lock_guard lock(mutex);
  for (std::shared_ptr<Tenancy>* at = &first(); *at != nullptr;) {
    if (is_stuck(**at, true)) {
      at = &(*at)->next_stuck_;
    } else {
      *at = std::exchange((*at)->next_stuck_, nullptr);
    }
  }
}

}  // namespace sluice::engine
