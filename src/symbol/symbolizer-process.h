/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The process that reads ELF files: "ttmemd --symbol-process FD", started only by a daemon. It
 * drops all privileges first, then answers requests on FD until end of file. docs/symbols.md says
 * what it may and may not do.
 */

#include <stdbool.h>

#define SYMBOLIZER_PROCESS_ARGUMENT "--symbol-process"
#define SYMBOLIZER_PROCESS_NAME "ttmem-symbols"

/* Whether this command line starts such a process. Must be the first thing that main() checks. */
bool symbolizer_process_is_meant(int argc, char *const *argv);

/* Return: the exit code. */
int symbolizer_process_main(int argc, char *const *argv);
