// Makes a plan for a graph, a budget and a device without a session: for tools that compare budgets, and for planning on another machine.
#pragma once

#include "sluice/plan.h"
#include "sluice/planner/planner.h"
