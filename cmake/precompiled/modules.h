// What the modules of the runtime read most, for SLUICE_PRECOMPILE: the compiler reads it once and each source has it at once.
//
// No source names this file: each includes what it uses, and compiles without it (the other presets do). A header belongs here if many
// sources read it, directly or not, whatever module it is of; a change of it compiles them all anew.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/file.h"
#include "sluice/core/log.h"
#include "sluice/core/sort.h"
#include "sluice/core/threads.h"
#include "sluice/engine/engine.h"
#include "sluice/executor/executor.h"
#include "sluice/kernels/registry.h"
#include "sluice/model/graph.h"
#include "sluice/model/model_file.h"
#include "sluice/operators/generic.h"
#include "sluice/plan/plan.h"
#include "sluice/planner/planner.h"
#include "sluice/profiler/device_profile.h"
