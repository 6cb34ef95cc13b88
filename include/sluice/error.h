// What every call of Sluice says of success and failure: Result and Status, Error with its code and words, the exit status of a program that
// ends with one, and numbers of bytes with their literals (64_MiB).
#pragma once

#include "sluice/core/error.h"
#include "sluice/core/units.h"
