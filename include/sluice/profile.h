// What a device can do, as measured: the profile, its file, and how it is measured here.
#pragma once

#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/measure.h"
#include "sluice/profiler/profile_file.h"
