// An OpenCL device, ready: context, queue and the compiled kernels. Handles release themselves.
//
//     platforms --first GPU, else accelerator, else CPU--> device --source, or the binary kept from last time--> program
//
// The compiled program is kept in a file named after the device, its driver and the source, so that only the first process compiles.
// A file that is damaged or of another driver is compiled anew and written over.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <utility>

#include "sluice/core/error.h"

namespace sluice::backends {

template <class T, cl_int (*kRelease)(T)>
class ClHandle {
 public:
  ClHandle() = default;
  explicit ClHandle(T handle) : handle_(handle) {}
  ClHandle(ClHandle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ClHandle& operator=(ClHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~ClHandle() {
    if (handle_ != nullptr) kRelease(handle_);
  }
  T get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T handle_ = nullptr;
};
using ClContext = ClHandle<cl_context, clReleaseContext>;
using ClQueue = ClHandle<cl_command_queue, clReleaseCommandQueue>;
using ClProgram = ClHandle<cl_program, clReleaseProgram>;
using ClKernel = ClHandle<cl_kernel, clReleaseKernel>;
using ClBuffer = ClHandle<cl_mem, clReleaseMemObject>;
using ClEvent = ClHandle<cl_event, clReleaseEvent>;

/// What a refused call means: kOutOfMemory for memory of the device or the host, kInternal for the rest. `call` and the number are named.
Error cl_error(const char* call, cl_int code) noexcept;
/// Says a code that the device is no longer there?
bool means_lost(cl_int code) noexcept;

class ClDevice {
 public:
  /// `cache`: the folder of compiled programs, made where it is missing; empty: nothing is kept.
  /// Errors: kUnsupported where there is no device, or its compiler refuses the source, whose first complaint is the subject.
  static Result<std::shared_ptr<ClDevice>> open(const std::string& cache);

  cl_context context() const noexcept { return context_.get(); }
  cl_command_queue queue() const noexcept { return queue_.get(); }
  /// Its type and what its driver calls it: "GPU: ...", "CPU: ..." or "accelerator: ...".
  const std::string& name() const noexcept { return name_; }
  /// Errors: kOutOfMemory, kInternal.
  Result<ClKernel> kernel(const char* name) const;

 private:
  Status choose();
  Status build(const std::string& cache);
  bool build_from(const std::string& path);
  Status compile();
  void keep(const std::string& path) const;
  std::string text(cl_device_info what) const;

  cl_device_id device_ = nullptr;
  std::string name_;
  ClContext context_;
  ClQueue queue_;
  ClProgram program_;
};

}  // namespace sluice::backends
