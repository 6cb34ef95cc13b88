// Sluice: neural networks inside the memory budget that you give them.
//
// The tour. Each stage that a model goes through has its folder, and this order is a good one to read them in:
//
//     core/       words that every folder uses: Result, Bytes, Interval, RowView, Arena, ThreadPool, Lane
//     model/      what is computed: Graph, its operators, and the file that holds it with its weights in panels
//     operators/  what each operator is: rules, shape, how its axes depend on those of its inputs, cost
//     plan/       what will happen: steps, loads, and one address for each buffer; and an independent judge of it (verify.h)
//     kernels/    how one operator runs; start at kernels/kernel.h
//     profiler/   what a device can do                        \  these two decide;
//     planner/    a graph and a budget become a plan          /  nothing is decided after them
//     executor/   a plan runs: one arena, one pool, one loader, two counters
//     engine/     the interface for users: Model, Session, budgets
//     importer/   ONNX becomes a model file: a product of its own, not included here
//
//     auto model   = sluice::Model::open("resnet50.sluice");
//     auto session = sluice::Session::create(*model, {.budget = 24_MiB});       // using namespace sluice::literals
//     (*session)->set_input(0, sluice::DType::kF32, image_bytes);
//     (*session)->run();
//     (*session)->get_output(0, score_bytes);
//
// Every call that can fail returns a Result or a Status; nothing throws, prints or aborts. C programs use sluice/sluice_c.h.
//
// Programs include this header, or only those beside it that they need. It leaves out two that need other libraries and take longer to
// build: scheduler.h, and convert.h of the importer. These headers include those in the folders.
#pragma once

#include "sluice/async.h"
#include "sluice/error.h"
#include "sluice/model.h"
#include "sluice/plan.h"
#include "sluice/planner.h"
#include "sluice/predictor.h"
#include "sluice/profile.h"
#include "sluice/session.h"
#include "sluice/shared_arena.h"
#include "sluice/trace.h"
