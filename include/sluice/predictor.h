// Predicts the time of a model at any budget, on any device whose profile is available, with an interval and an entry for each node. Runs
// nothing.
#pragma once

#include "sluice/engine/predictor.h"
#include "sluice/profile.h"
