/* The C API alone, compiled by a C compiler. */
#include <sluice/sluice_c.h>
#include <string.h>

int main(void) {
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
