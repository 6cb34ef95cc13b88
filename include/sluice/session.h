// Running one model: Model::open, Session::create with a budget, inputs, run, outputs; the smallest budget that works, a budget that changes
// while the session lives, and one that follows what the machine has left.
#pragma once

#include "sluice/engine/auto_budget.h"
#include "sluice/engine/engine.h"
#include "sluice/engine/output_block.h"
#include "sluice/engine/session_options.h"
