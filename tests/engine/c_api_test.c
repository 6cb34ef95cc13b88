/* Compiled as C: the header must be C, and a C program must be able to run a model. Called by c_api_test.cc. */
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice_c.h"

/* 0 when all went well, else the line of the first surprise. */
static int share_an_arena(const char* path, const void* input, size_t input_bytes, void* output, size_t output_bytes) {
  sluice_model* model = NULL;
  sluice_arena* arena = NULL;
  sluice_session* sessions[2] = {NULL, NULL};
  sluice_session_options options = sluice_default_options();
  int i;

  if (sluice_arena_create(1, 7, 1, &arena) != SLUICE_INVALID_ARGUMENT || arena != NULL) return __LINE__;
  if (sluice_arena_create(16u << 20, SLUICE_SCOPE_LIBRARY, 1, NULL) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_arena_create(16u << 20, SLUICE_SCOPE_LIBRARY, 1, &arena) != SLUICE_OK) return __LINE__;
  if (sluice_model_open(path, &model) != SLUICE_OK) return __LINE__;
  options.arena = arena;
  for (i = 0; i < 2; ++i)
    if (sluice_session_create(model, &options, &sessions[i]) != SLUICE_OK) return __LINE__;
  if (sluice_session_set_budget(sessions[0], 8u << 20) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_arena_set_budget(arena, 8u << 20) != SLUICE_OK) return __LINE__;
  if (sluice_arena_set_budget(NULL, 8u << 20) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  sluice_arena_close(arena); /* the sessions keep what they need */
  sluice_arena_close(NULL);
  sluice_model_close(model);
  for (i = 0; i < 4; ++i) {
    if (sluice_session_set_input(sessions[i % 2], 0, input, input_bytes) != SLUICE_OK) return __LINE__;
    if (sluice_session_run(sessions[1 - i % 2]) != SLUICE_INVALID_ARGUMENT) return __LINE__;
    if (sluice_session_run(sessions[i % 2]) != SLUICE_OK) return __LINE__;
    if (sluice_session_get_output(sessions[1 - i % 2], 0, output, output_bytes) != SLUICE_INVALID_ARGUMENT) return __LINE__;
    if (sluice_session_get_output(sessions[i % 2], 0, output, output_bytes) != SLUICE_OK) return __LINE__;
  }
  sluice_session_close(sessions[0]);
  sluice_session_close(sessions[1]);
  return 0;
}

typedef struct told {
  int times;
  sluice_status status;
} told;
static void tell(void* context, sluice_status status) {
  told* heard = (told*)context;
  heard->times += 1;
  heard->status = status;
}

typedef struct bytes {
  const char* data;
  size_t size;
} bytes;
static int64_t read_bytes(void* context, uint64_t offset, void* target, size_t size) {
  const bytes* all = (const bytes*)context;
  if (offset + size > all->size) return -1;
  memcpy(target, all->data + offset, size);
  return (int64_t)size;
}

/* The tensors of a session where they lie; they are dense here. */
static int run_in_place(sluice_session* session, const void* input, size_t input_bytes, const void* output, size_t output_bytes) {
  sluice_tensor in, out;
  if (sluice_session_input_in_place(session, 0, &in) != SLUICE_OK || in.rank != 2 || !in.dense) return __LINE__;
  memcpy(in.data, input, input_bytes);
  if (sluice_session_output_in_place(session, 0, &out) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_run(session) != SLUICE_OK) return __LINE__;
  if (sluice_session_output_in_place(session, 0, &out) != SLUICE_OK || out.dtype != SLUICE_F32 || out.strides[1] != 4) return __LINE__;
  if (!out.dense || memcmp(out.data, output, output_bytes) != 0) return __LINE__;
  return 0;
}

/* Runs beside the caller, and runs with a limit. */
static int run_beside(sluice_session* session) {
  told heard = {0, SLUICE_OK};
  sluice_run_stats stats;
  sluice_memory memory;
  if (sluice_session_wait(session) != SLUICE_OK) return __LINE__;
  if (sluice_session_run_async(session, &tell, &heard) != SLUICE_OK) return __LINE__;
  if (sluice_session_wait(session) != SLUICE_OK || heard.times != 1 || heard.status != SLUICE_OK) return __LINE__;
  if (sluice_session_run_within(session, (int64_t)3600 * 1000000000) != SLUICE_OK) return __LINE__;
  if (sluice_session_cancel(session) != SLUICE_OK) return __LINE__;
  if (sluice_session_run_async(session, &tell, &heard) != SLUICE_OK) return __LINE__;
  if (sluice_session_wait(session) != SLUICE_CANCELLED || heard.times != 2 || heard.status != SLUICE_CANCELLED) return __LINE__;
  if (sluice_session_run(session) != SLUICE_OK) return __LINE__;
  if (sluice_session_stats(session, &stats) != SLUICE_OK || stats.wall_ns <= 0) return __LINE__;
  if (sluice_session_memory(session, &memory) != SLUICE_OK || memory.arena_bytes == 0) return __LINE__;
  if (sluice_session_stats(NULL, &stats) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_memory(session, NULL) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_run_within(NULL, 1) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_run_async(NULL, &tell, &heard) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  return 0;
}

/* 0 when all went well, else the line of the first surprise. `output` holds what a run gives. */
int use_other_doors(const void* file, size_t file_bytes, const void* input, size_t input_bytes, const void* output, size_t output_bytes) {
  sluice_model* models[2] = {NULL, NULL};
  bytes all;
  sluice_reader reader;
  float last = 0;
  int i, line;

  all.data = (const char*)file;
  all.size = file_bytes;
  reader.context = &all;
  reader.read = &read_bytes;
  reader.size = file_bytes;
  if (sluice_version()[0] < '0' || strchr(sluice_version(), '.') == NULL) return __LINE__;
  if (sluice_model_open_part(-1, 0, file_bytes, &models[0]) != SLUICE_IO || models[0] != NULL) return __LINE__;
  if (sluice_model_open_buffer(file, 10, &models[0]) != SLUICE_INVALID_MODEL || models[0] != NULL) return __LINE__;
  if (sluice_model_open_reader(NULL, &models[0]) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_model_open_buffer(file, file_bytes, &models[0]) != SLUICE_OK) return __LINE__;
  if (sluice_model_open_reader(&reader, &models[1]) != SLUICE_OK) return __LINE__;
  for (i = 0; i < 2; ++i) {
    sluice_session* session = NULL;
    if (sluice_session_create(models[i], NULL, &session) != SLUICE_OK) return __LINE__;
    sluice_model_close(models[i]);
    line = run_in_place(session, input, input_bytes, output, output_bytes);
    if (line == 0) line = run_beside(session);
    if (line != 0) return line;
    if (sluice_session_get_output_part(session, 0, output_bytes / sizeof last - 1, &last, sizeof last) != SLUICE_OK) return __LINE__;
    if (memcmp(&last, (const char*)output + output_bytes - sizeof last, sizeof last) != 0) return __LINE__;
    if (sluice_session_get_output_part(session, 0, output_bytes, &last, sizeof last) != SLUICE_INVALID_ARGUMENT) return __LINE__;
    sluice_session_close(session);
  }
  return 0;
}

typedef struct seen {
  sluice_session* cancelled; /* at the first step, unless NULL */
  size_t before, after;
  int lines;
  int strange;
} seen;
static void see_before(void* context, const sluice_step* step) {
  seen* all = (seen*)context;
  all->strange += step->index != all->before || strlen(step->node) == 0 || strcmp(step->operator_name, "dense") != 0;
  all->before += 1;
  if (all->cancelled != NULL) sluice_session_cancel(all->cancelled);
}
static void see_after(void* context, const sluice_step* step) {
  seen* all = (seen*)context;
  all->strange += step->index != all->after || !step->ran || step->compute_ns < 0 || step->count < step->index;
  all->after += 1;
}
static void see_line(void* context, sluice_log_level level, const char* text) {
  seen* all = (seen*)context;
  all->strange += level < SLUICE_LOG_WARNING || strlen(text) == 0;
  all->lines += 1;
}

/* 0 when all went well, else the line of the first surprise. `profile` is of another number of threads, which the log is told. */
int run_with_hooks(const char* path, const void* input, size_t input_bytes, const void* text, size_t text_bytes) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_profile* profile = NULL;
  sluice_prediction assumed, measured;
  sluice_session_options options = sluice_default_options();
  seen all = {NULL, 0, 0, 0, 0};

  if (sluice_profile_open("there-is-no-such-file", &profile) != SLUICE_IO || profile != NULL) return __LINE__;
  if (sluice_profile_open_buffer(text, text_bytes / 2, &profile) != SLUICE_INVALID_ARGUMENT || profile != NULL) return __LINE__;
  if (sluice_profile_open_buffer(NULL, 0, &profile) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_profile_open_buffer(text, text_bytes, &profile) != SLUICE_OK) return __LINE__;
  if (sluice_model_open(path, &model) != SLUICE_OK) return __LINE__;
  if (sluice_predict(model, &options, &assumed) != SLUICE_OK) return __LINE__;
  options.profile = profile;
  if (sluice_predict(model, &options, &measured) != SLUICE_OK || measured.latency_ms == assumed.latency_ms) return __LINE__;
  options.log.least = 9;
  if (sluice_session_create(model, &options, &session) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  options.log.least = SLUICE_LOG_WARNING;
  options.log.log = &see_line;
  options.log.context = &all;
  options.steps.before = &see_before;
  options.steps.after = &see_after;
  options.steps.context = &all;
  options.time_steps = 1;
  if (sluice_session_create(model, &options, &session) != SLUICE_OK) return __LINE__;
  if (all.lines == 0) return __LINE__;
  sluice_profile_close(profile);
  sluice_profile_close(NULL);
  sluice_model_close(model);
  if (sluice_session_set_input(session, 0, input, input_bytes) != SLUICE_OK || sluice_session_run(session) != SLUICE_OK) return __LINE__;
  if (all.before == 0 || all.after != all.before || all.strange != 0) return __LINE__;
  all.cancelled = session;
  all.before = all.after = 0;
  if (sluice_session_run(session) != SLUICE_CANCELLED || all.before != 1 || all.after != 0) return __LINE__;
  sluice_session_close(session);
  return all.strange == 0 ? 0 : __LINE__;
}

typedef struct taken {
  float* values;
  size_t count;
  int refuses;
} taken;
static int32_t take(void* context, const sluice_output_block* block) {
  taken* all = (taken*)context;
  int64_t row, column;
  if (all->refuses || block->port != 0 || block->dtype != SLUICE_F32 || block->rank != 2) return 1;
  for (row = 0; row < block->shape[0]; ++row)
    for (column = 0; column < block->shape[1]; ++column) {
      const char* from = (const char*)block->data + row * block->strides[0] + column * block->strides[1];
      memcpy(&all->values[(block->begin[0] + row) * 10 + block->begin[1] + column], from, sizeof(float));
      all->count += 1;
    }
  return 0;
}

/* 0 when all went well, else the line of the first surprise. The output has rows of ten. */
int take_output_from_c(const char* path, const void* input, size_t input_bytes, float* output, size_t output_bytes) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = sluice_default_options();
  taken all;

  all.values = output;
  all.count = 0;
  all.refuses = 0;
  options.outputs.context = &all;
  options.outputs.take = &take;
  options.scratch_directory = "."; /* nothing needs it here */
  if (sluice_model_open(path, &model) != SLUICE_OK) return __LINE__;
  if (sluice_minimum_budget(model, &options, &options.budget_bytes) != SLUICE_OK) return __LINE__;
  if (sluice_session_create(model, &options, &session) != SLUICE_OK) return __LINE__;
  sluice_model_close(model);
  if (sluice_session_set_input(session, 0, input, input_bytes) != SLUICE_OK || sluice_session_run(session) != SLUICE_OK) return __LINE__;
  if (all.count * sizeof(float) != output_bytes) return __LINE__;
  if (sluice_session_get_output(session, 0, output, output_bytes) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  all.refuses = 1;
  if (sluice_session_run(session) != SLUICE_CANCELLED || strlen(sluice_last_error()) == 0) return __LINE__;
  all.refuses = 0;
  if (sluice_session_run(session) != SLUICE_OK) return __LINE__;
  sluice_session_close(session);
  return 0;
}

/* 0 when all went well, else the line of the first surprise. */
int run_model_from_c(const char* path, const void* input, size_t input_bytes, void* output, size_t output_bytes) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = sluice_default_options();
  sluice_port_info info;
  sluice_prediction prediction;
  uint64_t minimum = 0;

  if (sluice_model_open("there-is-no-such-file", &model) != SLUICE_IO || model != NULL) return __LINE__;
  if (strlen(sluice_last_error()) == 0) return __LINE__;
  if (sluice_model_open(NULL, &model) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_model_open(path, &model) != SLUICE_OK) return __LINE__;
  if (sluice_input_count(model) != 1 || sluice_output_count(model) != 1) return __LINE__;
  if (sluice_input_info(model, 1, &info) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_input_info(model, 0, &info) != SLUICE_OK) return __LINE__;
  if (strcmp(info.name, "in") != 0 || info.dtype != SLUICE_F32 || info.rank != 2 || info.bytes != input_bytes) return __LINE__;
  if (sluice_output_info(model, 0, &info) != SLUICE_OK || info.bytes != output_bytes) return __LINE__;

  if (sluice_minimum_budget(model, &options, &minimum) != SLUICE_OK || minimum == 0) return __LINE__;
  options.budget_bytes = minimum - 1;
  if (sluice_session_create(model, &options, &session) != SLUICE_BUDGET_TOO_SMALL || session != NULL) return __LINE__;
  if (sluice_predict(model, &options, &prediction) != SLUICE_BUDGET_TOO_SMALL) return __LINE__;
  if (sluice_predict(model, NULL, &prediction) != SLUICE_OK || prediction.peak_bytes < minimum) return __LINE__;
  if (!(prediction.low_ms < prediction.latency_ms && prediction.latency_ms < prediction.high_ms)) return __LINE__;
  if (sluice_predict(model, &options, NULL) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  options.budget_bytes = minimum;
  options.scope = 7;
  if (sluice_session_create(model, &options, &session) != SLUICE_INVALID_ARGUMENT || session != NULL) return __LINE__;
  options.scope = SLUICE_SCOPE_LIBRARY;
  if (sluice_session_create(model, &options, &session) != SLUICE_OK) return __LINE__;
  sluice_model_close(model); /* the session keeps what it needs */

  if (sluice_session_run(session) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_set_input(session, 0, input, input_bytes - 1) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_set_input(session, 7, input, input_bytes) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_set_input(session, 0, NULL, input_bytes) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  if (sluice_session_set_budget(session, minimum - 1) != SLUICE_BUDGET_TOO_SMALL) return __LINE__;
  if (sluice_session_set_budget(session, SLUICE_UNLIMITED) != SLUICE_OK) return __LINE__;
  if (sluice_session_set_input(session, 0, input, input_bytes) != SLUICE_OK) return __LINE__;
  if (sluice_session_cancel(session) != SLUICE_OK) return __LINE__;
  if (sluice_session_run(session) != SLUICE_CANCELLED) return __LINE__;
  if (sluice_session_run(session) != SLUICE_OK) return __LINE__;
  sluice_port_info came;
  if (sluice_session_output_info(session, 0, &came) != SLUICE_OK || came.bytes != output_bytes) return __LINE__;
  if (sluice_session_get_output(session, 0, output, output_bytes) != SLUICE_OK) return __LINE__;
  sluice_session_close(session);
  {
    const int line = share_an_arena(path, input, input_bytes, output, output_bytes);
    if (line != 0) return line;
  }
  sluice_session_close(NULL);
  sluice_model_close(NULL);
  if (sluice_session_run(NULL) != SLUICE_INVALID_ARGUMENT) return __LINE__;
  return 0;
}
