// ONNX becomes a model file. Needs the importer's library (sluice::importer), which the run time does without.
#pragma once

#include "sluice/importer/importer.h"
