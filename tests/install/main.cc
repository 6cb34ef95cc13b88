// Links all of the runtime, through both doors, and the importer; succeeds when each refuses a file that is not there.
#include <sluice/sluice.h>
#include <sluice/sluice_c.h>
#ifdef WITH_IMPORTER
#include <sluice/importer/importer.h>
#endif

int main() {
  using namespace sluice::literals;
  if (sluice::Model::open("there-is-no-such-file").has_value()) return 1;
  if (sluice::Session::create(nullptr, {.budget = 24_MiB}).has_value()) return 2;
  sluice_model* model = nullptr;
  if (sluice_model_open("there-is-no-such-file", &model) != SLUICE_IO) return 3;
  // Not called, but wanted from the library.
  const volatile auto create = &sluice::AsyncSession::create;
  const volatile auto expect = &sluice::expected_times;
  const volatile auto load = &sluice::profiler::load_profiles;
  const volatile auto say = &sluice::tell;
  if (create == nullptr || expect == nullptr || load == nullptr || say == nullptr) return 5;
#ifdef WITH_IMPORTER
  sluice::importer::ConvertReport report;
  if (sluice::importer::convert("there-is-no-such-file", "unused.sluice", {}, report).has_value()) return 4;
#endif
  return 0;
}
