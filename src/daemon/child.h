/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The daemon's children are those of base/child.h. */

#include "base/child.h"
