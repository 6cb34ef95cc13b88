// A model file and its contents: the graph with its ports, shapes and types, weights and how they are stored, keys of encrypted files, and
// models in memory, inside another file or read by a function of the caller. Sessions are made from a sluice::Model (session.h), which
// holds one of these.
#pragma once

#include "sluice/model/graph.h"
#include "sluice/model/key.h"
#include "sluice/model/model_file.h"
#include "sluice/model/other_sources.h"
