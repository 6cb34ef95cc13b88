// Several sessions that take turns in one arena, so that models which never run at the same time need the memory of one. For several models
// on several processors, with deadlines, see scheduler.h.
#pragma once

#include "sluice/engine/shared_arena.h"
