/* 0, or the number of the step that went wrong. */
#pragma once

#include "sluice/sluice_c.h"

#ifdef __cplusplus
extern "C"
#endif
    int
    c_scheduler_check(const sluice_model* model, const void* input, void* waited_for, void* told_of);
