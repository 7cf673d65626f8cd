/* SPDX-License-Identifier: Apache-2.0 */

/* The flag of a process that must make no more system calls. */

#include "base/process/freeze.h"

bool freeze_flag;
