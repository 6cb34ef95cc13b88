/* The scheduler's C API from C: two models, one waited for and one told of, what is refused, and the books. */
#include "c_scheduler.h"

#include <stdatomic.h>
#include <stddef.h>

static void count_met(void* context, const sluice_job_result* result) {
  if (result->outcome == SLUICE_JOB_MET && result->status == SLUICE_OK && result->latency_ns > 0) atomic_fetch_add((atomic_int*)context, 1);
}

int c_scheduler_check(const sluice_model* model, const void* input, void* waited_for, void* told_of) {
  sluice_scheduler_options options = sluice_default_scheduler_options();
  const sluice_processor_options processors[2] = {{NULL, 0, 1, 1}, {NULL, 0, 0, 2}};
  sluice_scheduler* scheduler = NULL;
  sluice_scheduler_statistics statistics;
  sluice_job_result result;
  sluice_job job = {0};
  size_t number = 9;
  uint64_t first = 0, second = 0;
  int32_t holds = 0;
  atomic_int told = 0;
  options.policy = "fastest";
  if (sluice_scheduler_create(&options, &scheduler) != SLUICE_INVALID_ARGUMENT || scheduler != NULL) return 1;
  options.policy = "least_slack_time_first";
  options.processors = processors;
  options.processor_count = 2;
  options.budget_bytes = 16u << 20;
  if (sluice_scheduler_create(&options, &scheduler) != SLUICE_OK) return 2;
  if (sluice_scheduler_add_model(scheduler, model, 0, &number) != SLUICE_OK || number != 0) return 3;
  job.inputs = &input;
  job.outputs = &waited_for;
  if (sluice_scheduler_submit(scheduler, &job, &first, &holds) != SLUICE_INVALID_ARGUMENT) return 4; /* not started */
  if (sluice_scheduler_start(scheduler) != SLUICE_OK) return 5;
  if (sluice_scheduler_submit(scheduler, &job, &first, &holds) != SLUICE_OK || holds != 1) return 6;
  job.outputs = &told_of;
  job.done = count_met;
  job.context = &told;
  if (sluice_scheduler_submit(scheduler, &job, &second, NULL) != SLUICE_OK) return 7;
  if (sluice_scheduler_wait(scheduler, first, &result) != SLUICE_OK || result.outcome != SLUICE_JOB_MET || result.ticket != first) return 8;
  if (sluice_scheduler_wait(scheduler, first, &result) != SLUICE_INVALID_ARGUMENT) return 9;
  if (sluice_scheduler_cancel(scheduler, 12345) != SLUICE_INVALID_ARGUMENT) return 10;
  job.model = 1;
  if (sluice_scheduler_submit(scheduler, &job, &second, NULL) != SLUICE_INVALID_ARGUMENT) return 11;
  while (atomic_load(&told) == 0) continue;
  if (sluice_scheduler_statistics_of(scheduler, &statistics) != SLUICE_OK || statistics.met != 2 || statistics.submitted != 2) return 12;
  sluice_scheduler_close(scheduler);
  sluice_scheduler_close(NULL);
  return 0;
}
