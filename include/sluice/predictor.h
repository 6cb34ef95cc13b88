// How long a model would take, at any budget, on any device whose profile is at hand, with an interval and a line a node. Nothing is run.
#pragma once

#include "sluice/engine/predictor.h"
#include "sluice/profile.h"
