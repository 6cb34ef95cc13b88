// When steps and reads should happen by the plan, to be laid beside a measured run (SessionOptions has the hooks that tell of one).
#pragma once

#include "sluice/engine/timeline.h"
