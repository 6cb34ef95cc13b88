#include "src/profiler/quiet_processor.h"

#include <sched.h>

#include <algorithm>

namespace sluice::profiler {

std::vector<int> processors_nearby(std::size_t most) {
  std::vector<int> processors = other_processors({});
  const auto here = std::find(processors.begin(), processors.end(), sched_getcpu());
  if (here != processors.end()) std::rotate(processors.begin(), here, processors.end());
  if (processors.size() > most) processors.resize(most);
  return processors;
}

}  // namespace sluice::profiler
