// Several models on several processors inside one budget: jobs with deadlines and priorities, and the policies that decide what runs where.
#pragma once

#include "sluice/scheduler/scheduler.h"
