/* main [MODEL]: the C API alone, compiled by a C compiler. With a model it runs it and prints the same checksum as main.cc. */
#include <sluice/sluice_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuses_what_is_not_there(void) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_profile* profile = NULL;
  sluice_session_options options = sluice_default_options();
  if (sluice_model_open("there-is-no-such-file", &model) != SLUICE_IO || model != NULL) return 1;
  if (strstr(sluice_last_error(), "there-is-no-such-file") == NULL) return 2;
  if (sluice_session_create(NULL, &options, &session) != SLUICE_INVALID_ARGUMENT) return 3;
  if (sluice_profile_open("there-is-no-such-file", &profile) != SLUICE_IO || profile != NULL) return 4;
  sluice_model_close(NULL);
  return 0;
}

static int runs(const char* path) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = sluice_default_options();
  sluice_port_info from, to;
  float* input;
  unsigned char* output;
  size_t i;
  uint32_t sum = 2166136261u;

  options.budget_bytes = 8u << 20;
  if (sluice_model_open(path, &model) != SLUICE_OK || sluice_session_create(model, &options, &session) != SLUICE_OK) return 5;
  if (sluice_input_info(model, 0, &from) != SLUICE_OK || sluice_output_info(model, 0, &to) != SLUICE_OK) return 6;
  input = (float*)malloc(from.bytes);
  output = (unsigned char*)malloc(to.bytes);
  if (input == NULL || output == NULL) return 7;
  for (i = 0; i < from.bytes / sizeof(float); ++i) input[i] = (float)(i % 251) / 251;
  if (sluice_session_set_input(session, 0, input, from.bytes) != SLUICE_OK || sluice_session_run(session) != SLUICE_OK ||
      sluice_session_get_output(session, 0, output, to.bytes) != SLUICE_OK)
    return 8;
  for (i = 0; i < to.bytes; ++i) sum = (sum ^ output[i]) * 16777619u;
  printf("%08x\n", (unsigned)sum);
  free(input);
  free(output);
  sluice_session_close(session);
  sluice_model_close(model);
  return 0;
}

int main(int argc, char** argv) {
  const int refused = refuses_what_is_not_there();
  if (refused != 0 || argc < 2) return refused;
  return runs(argv[1]);
}
