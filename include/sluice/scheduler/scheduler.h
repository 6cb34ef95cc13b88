// Several models on several processors: the door of this folder. Today it opens on policies, the simulator and the exact optimum; the
// scheduler over sessions comes behind the same types and slots in here:
//
//     unit plans   `cut_units` (cut.h) gives the units of a graph; each becomes a graph with ports and gets a plan for each processor that
//                  supports it. Their measured times are the table of a `Model`, and that is all a policy knows of a network
//     workers      one thread a processor. It takes its run from `Board::started`, runs units step by step, looks at `giving_way` at each
//                  step boundary, and calls `finished`, `interrupted` or, when its backend fails, `lost`
//     the lock     one mutex around Board and policy: submit, cancel, wait and each worker's return. A decision allocates nothing and is
//                  bounded (policy.h), so nobody holds it for long
//     memory       a job's tensors lie in the arena of the one budget, so a processor that is lost takes no result with it
//     time         steady_clock since the scheduler was made; a timer wakes the policy at deadlines, as the simulator does
//
// Read device.h first, then state.h, board.h, policy.h; simulator/simulator.h shows the loop.
#pragma once

#include "sluice/scheduler/board.h"
#include "sluice/scheduler/cut.h"
#include "sluice/scheduler/policy.h"
#include "sluice/scheduler/simulator/experiment.h"
