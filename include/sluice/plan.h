// What will happen in a run, byte by byte and read by read: a plan, the file that it is saved in, and the verifier, which judges plans with
// code of its own, so that a plan from a file is as safe as one made here.
#pragma once

#include "sluice/plan/plan.h"
#include "sluice/plan/plan_file.h"
#include "sluice/plan/verify.h"
