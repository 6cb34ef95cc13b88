// Running a model without waiting for it: AsyncSession, with deadlines, cancellation and a callback at the end of each run.
#pragma once

#include "sluice/engine/async.h"
