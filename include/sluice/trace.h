// The times of steps and reads by the plan, for comparison with a measured run (SessionOptions has the hooks that tell of one).
#pragma once

#include "sluice/engine/timeline.h"
