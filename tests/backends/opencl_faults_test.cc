// OpenCL that fails: no driver, kernels that do not compile, no memory, a device that goes away in a run. Each is said, and the work is
// done by the other processors. The driver's calls are wrapped by the linker, so that any of them can fail.
#include <cstdio>

#include "src/backends/opencl.h"
#include "src/backends/opencl_device.h"
#include "tests/scheduler/real_jobs.h"

namespace {

struct Faults {
  bool no_platform = false;
  bool does_not_compile = false;
  int buffers = -1;  // that can be made; -1: all
  int kernels = -1;  // that can be enqueued before the device is gone
  bool gone = false;
  int compilations = 0;  // that were asked for
};
Faults faults;

}  // namespace

extern "C" {
cl_int __real_clGetPlatformIDs(cl_uint, cl_platform_id*, cl_uint*);
cl_program __real_clCreateProgramWithSource(cl_context, cl_uint, const char**, const std::size_t*, cl_int*);
cl_int __real_clBuildProgram(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*);
cl_mem __real_clCreateBuffer(cl_context, cl_mem_flags, std::size_t, void*, cl_int*);
cl_int __real_clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*, const std::size_t*,
                                     cl_uint, const cl_event*, cl_event*);
cl_int __real_clFinish(cl_command_queue);

cl_int __wrap_clGetPlatformIDs(cl_uint most, cl_platform_id* platforms, cl_uint* count) {
  return faults.no_platform ? -1001 : __real_clGetPlatformIDs(most, platforms, count);
}
cl_program __wrap_clCreateProgramWithSource(cl_context context, cl_uint count, const char** text, const std::size_t* lengths,
                                            cl_int* code) {
  ++faults.compilations;
  return __real_clCreateProgramWithSource(context, count, text, lengths, code);
}
cl_int __wrap_clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                             void (*done)(cl_program, void*), void* user) {
  return faults.does_not_compile ? CL_BUILD_PROGRAM_FAILURE : __real_clBuildProgram(program, count, devices, options, done, user);
}
cl_mem __wrap_clCreateBuffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* code) {
  if (faults.buffers == 0) {
    *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return nullptr;
  }
  if (faults.buffers > 0) --faults.buffers;
  return __real_clCreateBuffer(context, flags, bytes, host, code);
}
cl_int __wrap_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                                     const std::size_t* items, const std::size_t* group, cl_uint count, const cl_event* events,
                                     cl_event* event) {
  if (faults.kernels == 0) faults.gone = true;
  if (faults.kernels > 0) --faults.kernels;
  if (faults.gone) return CL_DEVICE_NOT_AVAILABLE;
  return __real_clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, items, group, count, events, event);
}
cl_int __wrap_clFinish(cl_command_queue queue) { return faults.gone ? CL_DEVICE_NOT_AVAILABLE : __real_clFinish(queue); }
}

namespace sluice::scheduler {
namespace {

/// As the driver is, again.
struct Well {
  Well() { faults = {}; }
  ~Well() { faults = {}; }
};

/// A CPU processor and OpenCL, to which the model is fixed; null where no device is here.
struct Pair {
  Pair() {
    auto made = backends::make_opencl_backend("");
    if (!made) return;
    backend = std::move(*made);
    options.processors = {{}, {.kind = ProcessorOptions::Kind::kBackend, .backend = backend}};
    options.policy = "fixed_worker";
    options.profile_runs = 1;
  }
  ModelOptions fixed(const Net& net) const {
    ModelOptions model = net.options();
    model.fixed = ProcessorId(1);
    return model;
  }
  std::shared_ptr<backends::Backend> backend;
  SchedulerOptions options;
};

/// CTest reads it: the test was skipped.
void say_no_device() { std::puts("SKIPPED: no OpenCL device here"); }

bool near(const ToyJob& job) {
  for (std::size_t i = 0; i < job.output.size(); ++i)
    if (std::abs(job.output[i] - job.net.toy.expected[i]) > 1e-4f * std::max(1.0f, std::abs(job.net.toy.expected[i]))) return false;
  return true;
}

}  // namespace

TEST_CASE("where no OpenCL driver is, the backend says so") {
  const Well well;
  faults.no_platform = true;
  const auto backend = backends::make_opencl_backend("");
  REQUIRE(!backend);
  CHECK(backend.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("kernels that do not compile are an error with the driver's words") {
  const Well well;
  if (!backends::make_opencl_backend("")) return say_no_device();
  faults.does_not_compile = true;
  const auto backend = backends::make_opencl_backend("");
  REQUIRE(!backend);
  CHECK(backend.error().code == ErrorCode::kUnsupported);
  CHECK(std::string(backend.error().reason).find("compile") != std::string::npos);
}

TEST_CASE("compiled kernels are kept, and a damaged file is compiled anew") {
  const Well well;
  const toy::TemporaryPath folder("opencl_cache");
  if (!backends::make_opencl_backend(folder.str())) return say_no_device();
  CHECK(faults.compilations == 1);
  REQUIRE(backends::make_opencl_backend(folder.str()));
  CHECK(faults.compilations == 1);
  // Other bytes; what a full disk or a cut wire leaves; some bytes of thousands.
  int compilations = 1;
  for (const std::string damage : {"printf damaged > $f", "truncate -s -10 $f", "truncate -s 5000 $f",
                                   "printf damaged | dd of=$f bs=1 seek=9000 conv=notrunc 2> /dev/null"}) {
    INFO(damage);
    REQUIRE(std::system(("for f in " + folder.str() + "/*.bin; do " + damage + "; done").c_str()) == 0);
    REQUIRE(backends::make_opencl_backend(folder.str()));
    CHECK(faults.compilations == ++compilations);
    REQUIRE(backends::make_opencl_backend(folder.str()));
    CHECK(faults.compilations == compilations);
  }
  REQUIRE(std::system(("rm -r " + folder.str()).c_str()) == 0);
}

TEST_CASE("a unit for which the device has no memory goes to the other processor, and is named") {
  const Well well;
  const Net net(91);
  const Pair pair;
  if (!pair.backend) return say_no_device();
  for (const int buffers : {0, 1, 4}) {
    faults.buffers = buffers;
    const auto scheduler = make_scheduler(pair.options, {{&net, pair.fixed(net)}});
    const std::vector<Fallback> fallbacks = scheduler->fallbacks();
    REQUIRE(fallbacks.size() == 1);
    CHECK(fallbacks[0].processor == ProcessorId(1));
    CHECK(fallbacks[0].why.code == ErrorCode::kOutOfMemory);
    for (const UnitSupport& unit : scheduler->units(ModelId(0))) CHECK(unit.processors == std::vector<ProcessorId>{ProcessorId(0)});
    Jobs jobs(*scheduler);
    jobs.submit(net, 0);
    CHECK(jobs.wait_all()[0].outcome == Outcome::kMet);
    CHECK(jobs.all_right());
  }
}

TEST_CASE("a device that goes away while it is measured falls back; one that goes in a run loses no job") {
  const Well well;
  const Net net(92);
  const Pair pair;
  if (!pair.backend) return say_no_device();
  {
    faults.kernels = 1;
    const auto scheduler = make_scheduler(pair.options, {{&net, pair.fixed(net)}});
    CHECK(scheduler->fallbacks().size() == 1);
    Jobs jobs(*scheduler);
    jobs.submit(net, 0);
    CHECK(jobs.wait_all()[0].outcome == Outcome::kMet);
    CHECK(jobs.all_right());
  }
  faults = {};
  const auto scheduler = make_scheduler(pair.options, {{&net, pair.fixed(net)}});
  CHECK(scheduler->fallbacks().empty());
  Jobs jobs(*scheduler);
  jobs.submit(net, 0);
  CHECK(jobs.wait_all()[0].outcome == Outcome::kMet);
  CHECK(near(jobs.jobs[0]));
  CHECK(scheduler->statistics().processors[1].runs == 1);
  faults.gone = true;
  for (int i = 0; i < 5; ++i) jobs.submit(net, 0);
  for (std::size_t i = 1; i < 6; ++i) {
    CHECK(jobs.wait(jobs.tickets[i]).outcome == Outcome::kMet);
    CHECK(jobs.jobs[i].right());
  }
  CHECK(!scheduler->statistics().processors[1].usable);
}

}  // namespace sluice::scheduler
