/* Sluice for C and for other languages' foreign-function interfaces.
 *
 *     sluice_model* model = NULL;
 *     sluice_session* session = NULL;
 *     sluice_session_options options = sluice_default_options();
 *     options.budget_bytes = 24u << 20;
 *     if (sluice_model_open("resnet50.sluice", &model) != SLUICE_OK ||
 *         sluice_session_create(model, &options, &session) != SLUICE_OK ||
 *         sluice_session_set_input(session, 0, image, sizeof image) != SLUICE_OK ||
 *         sluice_session_run(session) != SLUICE_OK ||
 *         sluice_session_get_output(session, 0, scores, sizeof scores) != SLUICE_OK)
 *       fprintf(stderr, "%s\n", sluice_last_error());
 *     sluice_session_close(session);
 *     sluice_model_close(model);
 *
 * A model may also lie in memory, in a part of an open file, or wherever a function of the program's reads it from; tensors can be written
 * and read where they lie; a run can have a time limit, or go on beside the caller.
 *
 * Sessions that run in turn may share one budget: make a sluice_arena and name it in their options. Several models on several processors,
 * with deadlines, are a sluice_scheduler's.
 *
 * A program may be told what a session decides (a log), and each step of its runs; it may say what the device can do (a profile).
 *
 * Every call returns a status; SLUICE_OK is 0. Tensors are dense, row-major, in the shape of the ONNX model. A model may be shared by
 * threads and sessions and may be closed before them, and so may an arena; a session is used by one thread at a time, and so is an arena
 * with all its sessions. NULL handles are refused, and closing NULL does nothing. Nothing here throws, prints or aborts. */
#ifndef SLUICE_SLUICE_C_H_
#define SLUICE_SLUICE_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_model sluice_model;
typedef struct sluice_session sluice_session;
typedef struct sluice_arena sluice_arena;
typedef struct sluice_scheduler sluice_scheduler;
typedef struct sluice_profile sluice_profile;

/* The numbers never change; new ones are appended. */
typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_INVALID_ARGUMENT = 1,
  SLUICE_INVALID_MODEL = 2,
  SLUICE_CHECKSUM_MISMATCH = 3,
  SLUICE_UNSUPPORTED_VERSION = 4,
  SLUICE_INVALID_PLAN = 5,
  SLUICE_UNSUPPORTED = 6,
  SLUICE_BUDGET_TOO_SMALL = 7, /* sluice_minimum_budget says what works */
  SLUICE_IO = 8,
  SLUICE_FILE_CHANGED = 9,
  SLUICE_CANCELLED = 10,
  SLUICE_OUTPUT_MISMATCH = 11,
  SLUICE_OUT_OF_MEMORY = 12,
  SLUICE_INTERNAL = 13,
  SLUICE_WRONG_KEY = 14 /* an encrypted model, and its key was not given or is another */
} sluice_status;

/* Element types, numbered as in model files. */
typedef enum sluice_dtype {
  SLUICE_F32 = 0,
  SLUICE_F16 = 1,
  SLUICE_I8 = 2,
  SLUICE_U8 = 3,
  SLUICE_I32 = 4,
  SLUICE_I64 = 5,
  SLUICE_BOOL = 6,
  SLUICE_F64 = 7,
  SLUICE_I16 = 8,
  SLUICE_U16 = 9,
  SLUICE_U32 = 10,
  SLUICE_U64 = 11,
  SLUICE_BF16 = 12
} sluice_dtype;

#define SLUICE_UNLIMITED UINT64_MAX
#define SLUICE_MAX_RANK 8

/* What a budget bounds: all that Sluice holds, or the peak resident set of the whole process. */
enum { SLUICE_SCOPE_LIBRARY = 0, SLUICE_SCOPE_PROCESS = 1 };

typedef enum sluice_log_level {
  SLUICE_LOG_DEBUG = 0,   /* each run */
  SLUICE_LOG_INFO = 1,    /* what was decided, once a session or budget */
  SLUICE_LOG_WARNING = 2, /* it works, but not as well as it could */
  SLUICE_LOG_ERROR = 3    /* a call fails; its status says the same */
} sluice_log_level;

/* `log` is told a line, which holds during the call only, in the thread that made the call which has something to say. It may call into the
 * library, but for the session that is telling, and returns soon. */
typedef struct sluice_log_hook {
  void* context;
  void (*log)(void* context, sluice_log_level level, const char* text); /* NULL (default): nobody is told */
  int least; /* a sluice_log_level: what is below is not told; SLUICE_LOG_INFO by default */
} sluice_log_hook;

/* A step of a run. The texts live as long as the model. */
typedef struct sluice_step {
  size_t index;     /* from 0 on */
  size_t count;     /* steps of a run */
  const char* node; /* its name in the ONNX file */
  const char* operator_name;
  int32_t ran;        /* after: 0 where nobody wanted it, as in a branch that was not taken */
  int64_t stall_ns;   /* after, with time_steps: waiting for its weights, else 0 */
  int64_t compute_ns; /* likewise */
} sluice_step;

/* Called before and after each step, in the thread that runs: sluice_session_run's caller, or the session's own thread. Until they return
 * the run rests. They may call sluice_session_cancel, and use other sessions (of other arenas). Either may be NULL (default). */
typedef struct sluice_step_hook {
  void* context;
  void (*before)(void* context, const sluice_step* step);
  void (*after)(void* context, const sluice_step* step);
} sluice_step_hook;

/* A box of an output as a step has made it, in ONNX's order of axes: its first element is at `begin` in the output, and element (i, j, ...)
 * of the box at data + i * strides[0] + j * strides[1] + ... bytes. */
typedef struct sluice_output_block {
  size_t port;
  const void* data;   /* until `take` returns */
  sluice_dtype dtype; /* as the values lie: f32 where the port is f16, bf16 or f64 */
  int32_t rank;
  int64_t begin[SLUICE_MAX_RANK];
  int64_t shape[SLUICE_MAX_RANK];
  int64_t strides[SLUICE_MAX_RANK];
} sluice_output_block;

/* Takes the outputs block by block as they are made, in the thread that runs, so that no budget holds them whole; get_output then has
 * nothing to give. Blocks tile each output. Anything but 0 ends the run with SLUICE_CANCELLED. */
typedef struct sluice_output_hook {
  void* context;
  int32_t (*take)(void* context, const sluice_output_block* block); /* NULL (default): outputs hold until the next run */
} sluice_output_hook;

/* Start from sluice_default_options(), so that options added later have their defaults. */
typedef struct sluice_session_options {
  uint64_t budget_bytes;  /* SLUICE_UNLIMITED by default */
  int32_t scope;          /* SLUICE_SCOPE_LIBRARY by default */
  int32_t threads;        /* 1 by default */
  int32_t repeat;         /* not 0: plan for many runs rather than for the first */
  int32_t keep_inputs;    /* not 0 (default): inputs set once serve many runs; 0 saves their bytes during a run */
  uint64_t reserve_bytes; /* of a process budget: what the program itself will take after this; 0 by default */
  sluice_arena* arena;    /* not NULL: run in turn with its other sessions, in its budget (budget_bytes, if less, is what this one takes of
                             it); scope and threads are the arena's and left at their defaults here */
  uint64_t largest_budget_bytes; /* going up to here by set_budget keeps what is resident; 0 (default): budget_bytes */
  int32_t time_steps;            /* not 0: the step hook is told times, for two looks at the clock a step; 0 by default */
  const sluice_profile* profile; /* what this device can do; NULL (default): assumed. Copied */
  sluice_log_hook log;           /* lives, with its context, as long as the session; and so does the next */
  sluice_step_hook steps;
  sluice_output_hook outputs;    /* likewise */
  const char* scratch_directory; /* where a budget is smaller than the activations: where the file is made that they go to and come back
                                    from; NULL (default): such budgets are refused. Copied */
} sluice_session_options;

typedef struct sluice_port_info {
  const char* name; /* lives as long as the model */
  sluice_dtype dtype;
  int32_t rank;
  int64_t shape[SLUICE_MAX_RANK];
  size_t bytes; /* what set_input or get_output takes */
} sluice_port_info;

/* The extent of one dimension, by its name in the ONNX file (INPUT.AXIS where it has none). */
typedef struct sluice_dim {
  const char* name;
  int64_t extent;
} sluice_dim;

/* A dimension that can be bound when a model is opened (`sluice convert --dim N=1..8`). */
typedef struct sluice_dimension_info {
  const char* name; /* lives as long as the model */
  int64_t extent;   /* of this model */
  int64_t least;
  int64_t bound; /* the most; what a model has that was opened without dims */
} sluice_dimension_info;

/* A tensor where it lies: element (i, j, ...) is at data + i * strides[0] + j * strides[1] + ... bytes. */
typedef struct sluice_tensor {
  void* data;
  sluice_dtype dtype; /* of the values in the arena: f32 where the port is f16, bf16 or f64 */
  int32_t rank;
  int64_t shape[SLUICE_MAX_RANK];
  int64_t strides[SLUICE_MAX_RANK];
  int32_t dense; /* not 0: in ONNX order without a gap, as set_input and get_output have it */
} sluice_tensor;

/* How a program reads a model by itself: fills `size` bytes from `offset` on and returns how many it brought; fewer are asked for again, 0
 * or less is an error. Called by several threads at once, until the last model and session made of it is closed. */
typedef struct sluice_reader {
  void* context;
  int64_t (*read)(void* context, uint64_t offset, void* target, size_t size);
  uint64_t size; /* of the whole model */
} sluice_reader;

/* How a program gives the key of an encrypted model: fills in its 32 bytes and returns 0; anything else ends the opening with
 * SLUICE_WRONG_KEY. Called once, before the call that opens the model returns; the library overwrites what it was given. */
typedef struct sluice_key {
  void* context;
  int32_t (*give)(void* context, uint8_t key[32]);
} sluice_key;

/* What the last run cost. */
typedef struct sluice_run_stats {
  int64_t wall_ns;
  int64_t cpu_ns;   /* of all threads of the process */
  int64_t stall_ns; /* computing that waited for weights */
  int64_t load_ns;  /* reading and checking */
  uint64_t bytes_read;
} sluice_run_stats;

/* Where the bytes of a budget go; in a shared arena, of all its sessions. */
typedef struct sluice_memory {
  uint64_t budget_bytes;
  uint64_t overhead_bytes; /* what is not arena */
  uint64_t arena_bytes;
  uint64_t peak_resident_bytes; /* of the process */
} sluice_memory;

/* What a run is expected to take (sluice/engine/predictor.h), by the profile of the options. */
typedef struct sluice_prediction {
  double latency_ms;
  double low_ms; /* nine runs of ten are expected between low and high */
  double high_ms;
  uint64_t peak_bytes; /* in the scope of the options: expected, not above their budget */
  uint64_t bytes_read; /* by a run's loads */
} sluice_prediction;

/* A run is over. Called in a thread of the session's; sluice_last_error() is its text there. */
typedef void (*sluice_done)(void* context, sluice_status status);

/* A set of CPU cores that runs one job at a time. */
typedef struct sluice_processor_options {
  const int32_t* cpus; /* NULL: anywhere */
  size_t cpu_count;
  int32_t threads;         /* that compute; 0 is 1 */
  double compute_slowdown; /* of an emulated slower CPU; 0 is 1 */
} sluice_processor_options;

/* Start from sluice_default_scheduler_options(). */
typedef struct sluice_scheduler_options {
  uint64_t budget_bytes;  /* of all models on all processors; SLUICE_UNLIMITED by default */
  int32_t scope;          /* SLUICE_SCOPE_LIBRARY by default */
  uint64_t reserve_bytes; /* of a process budget, as in sluice_session_options */
  const char* policy;     /* NULL (default): "sluice" */
  const sluice_processor_options* processors;
  size_t processor_count; /* 0 (default): one */
  size_t most_jobs;       /* that live at one time; 64 by default */
} sluice_scheduler_options;

typedef enum sluice_outcome {
  SLUICE_JOB_MET = 0,
  SLUICE_JOB_LATE = 1,
  SLUICE_JOB_DROPPED = 2,
  SLUICE_JOB_CANCELLED = 3,
  SLUICE_JOB_FAILED = 4
} sluice_outcome;

typedef struct sluice_job_result {
  uint64_t ticket;
  sluice_outcome outcome;
  sluice_status status; /* of a failed job: why */
  int64_t latency_ns;   /* from submission to its end */
} sluice_job_result;

/* A job has ended. Called once, in a thread of the scheduler's. */
typedef void (*sluice_job_done)(void* context, const sluice_job_result* result);

/* One request. Tensors are the caller's and stay where they are until the job has ended; they have the sizes of the model's ports. */
typedef struct sluice_job {
  size_t model; /* as sluice_scheduler_add_model numbered it */
  const void* const* inputs;
  void* const* outputs; /* written where the outcome is met or late */
  int64_t deadline_ns;  /* from now; 0: none */
  int32_t priority;
  int32_t only_if_it_holds; /* not 0: SLUICE_CANCELLED at once where the deadline cannot hold as things stand */
  uint32_t app;             /* below 16 */
  sluice_job_done done;     /* NULL: the job is waited for */
  void* context;
} sluice_job;

typedef struct sluice_scheduler_statistics {
  uint64_t submitted, met, late, dropped, cancelled, failed, refused;
} sluice_scheduler_statistics;

/* "0.1.0" */
const char* sluice_version(void);

/* The text of this thread's last failed call; "" before any. Holds until the thread's next failed call. */
const char* sluice_last_error(void);

sluice_status sluice_model_open(const char* path, sluice_model** model);
/* The bytes stay where they are and as they are while models and sessions made of them live; no budget counts them. */
sluice_status sluice_model_open_buffer(const void* data, size_t size, sluice_model** model);
/* `size` bytes from `offset` on of the regular file that `descriptor` is open on, which may be closed after. */
sluice_status sluice_model_open_part(int descriptor, uint64_t offset, uint64_t size, sluice_model** model);
sluice_status sluice_model_open_reader(const sluice_reader* reader, sluice_model** model);
/* The first and the last of these for models that are encrypted (`sluice convert --encrypt`) or not. */
sluice_status sluice_model_open_with_key(const char* path, const sluice_key* key, sluice_model** model);
sluice_status sluice_model_open_reader_with_key(const sluice_reader* reader, const sluice_key* key, sluice_model** model);
/* Sessions of the model may live on; the pointer must not be used after. NULL is ignored. */
void sluice_model_close(sluice_model* model);
/* The same file with other extents: a model of its own, which shares the open file, for all calls of this header. Dimensions that `dims`
 * does not name are at their bound. SLUICE_INVALID_ARGUMENT for a name or an extent that the file does not have. */
sluice_status sluice_model_with_dims(const sluice_model* model, const sluice_dim* dims, size_t count, sluice_model** other);
size_t sluice_dimension_count(const sluice_model* model);
sluice_status sluice_model_dimension_info(const sluice_model* model, size_t index, sluice_dimension_info* info);
size_t sluice_input_count(const sluice_model* model);
size_t sluice_output_count(const sluice_model* model);
sluice_status sluice_input_info(const sluice_model* model, size_t port, sluice_port_info* info);
sluice_status sluice_output_info(const sluice_model* model, size_t port, sluice_port_info* info);

/* What `sluice profile` has measured of this device, for each number of threads, from the file at `path`, where NULL is the place where the
 * program keeps it; or the same bytes from elsewhere. SLUICE_IO where there is no such file. */
sluice_status sluice_profile_open(const char* path, sluice_profile** profile);
sluice_status sluice_profile_open_buffer(const void* data, size_t size, sluice_profile** profile);
/* Sessions keep what they need. NULL is ignored. */
void sluice_profile_close(sluice_profile* profile);

sluice_session_options sluice_default_options(void);
/* The smallest budget that works with these options (their budget does not matter). */
sluice_status sluice_minimum_budget(const sluice_model* model, const sluice_session_options* options, uint64_t* bytes);
/* What a session with these options would take, without making one: the model may be one without weights. */
sluice_status sluice_predict(const sluice_model* model, const sluice_session_options* options, sluice_prediction* prediction);
/* NULL options are the defaults. */
sluice_status sluice_session_create(const sluice_model* model, const sluice_session_options* options, sluice_session** session);

/* One budget, one arena and these compute threads for any number of sessions that run in turn. When one of them sets an input or runs, the
 * inputs and outputs of the one before no longer hold; resident weights stay as far as there is room, and sessions of one model share them.
 */
sluice_status sluice_arena_create(uint64_t budget_bytes, int32_t scope, int32_t threads, sluice_arena** arena);
/* Its sessions live on; the pointer must not be used after. NULL is ignored. */
void sluice_arena_close(sluice_arena* arena);
/* As sluice_session_set_budget, for all its sessions together. */
sluice_status sluice_arena_set_budget(sluice_arena* arena, uint64_t budget_bytes);

/* Ends the session; the pointer must not be used after. NULL is ignored. A session belongs to the process that made it: in a forked child
 * all its calls are refused, and ending it there leaves the parent's as it is. Making a session, changing its budget and running want 96
 * KiB of the calling thread's stack; a thread that has less left is refused. */
void sluice_session_close(sluice_session* session);

/* Between runs: plans again for this many bytes and gives back what is too much. SLUICE_BUDGET_TOO_SMALL leaves the session as it was. */
sluice_status sluice_session_set_budget(sluice_session* session, uint64_t budget_bytes);
/* From any thread: ends a run that is under way with an error; without one, the next. */
sluice_status sluice_session_cancel(sluice_session* session);

/* `data` has the port's element type and exactly its bytes; it is copied. */
sluice_status sluice_session_set_input(sluice_session* session, size_t port, const void* data, size_t bytes);
/* The input where it lies, to be written in place of set_input; it then counts as set. Images lie as NHWC, whatever their ONNX order: mind
 * the strides. It holds until the next run (with keep_inputs beyond it), not beyond set_budget or another session's turn. */
sluice_status sluice_session_input_in_place(sluice_session* session, size_t port, sluice_tensor* tensor);
/* Allocates nothing. After an error the session can run again. */
sluice_status sluice_session_run(sluice_session* session);
/* The same in a thread of the session's, which the first of these three calls makes. A run that takes longer than `limit_ns` is called off:
 * SLUICE_CANCELLED. */
sluice_status sluice_session_run_within(sluice_session* session, int64_t limit_ns);
/* Returns at once; `done`, unless NULL, is called when the run is over, and must not begin another. Until then the session is not used, but
 * for cancel and wait. */
sluice_status sluice_session_run_async(sluice_session* session, sluice_done done, void* context);
/* Waits for the run that was begun last, and gives its status. */
sluice_status sluice_session_wait(sluice_session* session);
sluice_status sluice_session_stats(const sluice_session* session, sluice_run_stats* stats);
sluice_status sluice_session_memory(const sluice_session* session, sluice_memory* memory);
/* An output as the last successful run left it: where values decide extents, its shape may be smaller than sluice_output_info's, which is
 * the most. `bytes` is what get_output writes. */
sluice_status sluice_session_output_info(const sluice_session* session, size_t port, sluice_port_info* info);
/* From a successful run to the next input or run. */
sluice_status sluice_session_get_output(sluice_session* session, size_t port, void* data, size_t bytes);
/* As many elements of its ONNX order as `bytes` holds, from `first_element` on: for outputs too large to be held twice. */
sluice_status sluice_session_get_output_part(sluice_session* session, size_t port, uint64_t first_element, void* data, size_t bytes);
/* The output where it lies, to be read; it holds as long as get_output gives it. */
sluice_status sluice_session_output_in_place(sluice_session* session, size_t port, sluice_tensor* tensor);

/* Several models on several processors, in one budget. Models are added, then the scheduler is started, which plans its memory and measures
 * them; then any thread may submit, wait and cancel. */
sluice_scheduler_options sluice_default_scheduler_options(void);
/* NULL options are the defaults. */
sluice_status sluice_scheduler_create(const sluice_scheduler_options* options, sluice_scheduler** scheduler);
/* Jobs of an urgent model (not 0) take a processor from others at the next step boundary; it has a part of the budget of its own. */
sluice_status sluice_scheduler_add_model(sluice_scheduler* scheduler, const sluice_model* model, int32_t urgent, size_t* number);
/* SLUICE_BUDGET_TOO_SMALL names a budget that works in sluice_last_error(). */
sluice_status sluice_scheduler_start(sluice_scheduler* scheduler);
/* `holds` (may be NULL) says whether the deadline can hold as things stand. Allocates nothing. */
sluice_status sluice_scheduler_submit(sluice_scheduler* scheduler, const sluice_job* job, uint64_t* ticket, int32_t* holds);
/* Waits for the end of a job without `done`; its ticket is gone then. */
sluice_status sluice_scheduler_wait(sluice_scheduler* scheduler, uint64_t ticket, sluice_job_result* result);
/* As soon as it may: at once where the job waits, at the next step boundary where it runs. It is still to be waited for. */
sluice_status sluice_scheduler_cancel(sluice_scheduler* scheduler, uint64_t ticket);
sluice_status sluice_scheduler_statistics_of(const sluice_scheduler* scheduler, sluice_scheduler_statistics* statistics);
/* Drops what has not ended and waits for what runs. NULL is ignored. A forked child is refused its parent's scheduler, and closing it there
 * does nothing. */
void sluice_scheduler_close(sluice_scheduler* scheduler);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_SLUICE_C_H_ */
