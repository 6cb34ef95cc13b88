/* Runs a model in 24 MiB from C, with an input of zeros: 16_run_from_c m.sluice */
#include <sluice/sluice_c.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  sluice_model* model = NULL;
  sluice_session* session = NULL;
  sluice_session_options options = sluice_default_options();
  sluice_tensor output;
  sluice_port_info port;
  void* zeros = NULL; /* put your input here: the values of a picture, scaled as the model was trained (examples 03 and 13) */
  int failed = 1;

  if (argc != 2) {
    fprintf(stderr, "usage: 16_run_from_c MODEL.sluice\n");
    return 1;
  }
  options.budget_bytes = 24u << 20;
  if (sluice_model_open(argv[1], &model) == SLUICE_OK && sluice_input_info(model, 0, &port) == SLUICE_OK &&
      (zeros = calloc(1, port.bytes)) != NULL && sluice_session_create(model, &options, &session) == SLUICE_OK &&
      sluice_session_set_input(session, 0, zeros, port.bytes) == SLUICE_OK && sluice_session_run(session) == SLUICE_OK &&
      sluice_session_output_in_place(session, 0, &output) == SLUICE_OK) {
    if (output.dtype == SLUICE_F32) printf("the first value is %g\n", *(const float*)output.data);
    failed = 0;
  }
  if (failed) fprintf(stderr, "%s\n", sluice_last_error());
  free(zeros);
  sluice_session_close(session);
  sluice_model_close(model);
  return failed;
}
