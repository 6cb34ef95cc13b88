// What kernels read most, as modules.h for what is compiled without exceptions. Highway's headers are not in it: a source has them
// read once for each instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/kernels/call.h"
#include "sluice/kernels/kernel.h"
#include "sluice/kernels/plain.h"
#include "sluice/kernels/registry.h"
#include "sluice/kernels/turns.h"
#include "sluice/model/graph.h"
#include "sluice/operators/generic.h"
#include "sluice/operators/parameters/parameters.h"
#include "src/core/build_list.h"
