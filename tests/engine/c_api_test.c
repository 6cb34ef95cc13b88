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

/* 0 when all went well, else the line of the first surprise. */
int run_model_from_c(const char* path, const void* input, size_t input_bytes, void* output, size_t output_bytes) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = sluice_default_options();
  sluice_port_info info;
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
