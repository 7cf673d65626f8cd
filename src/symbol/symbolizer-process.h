/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The process that looks into ELF files: "ttmemd --symbol-process FD", which nobody but a daemon calls. It
 * gives up all rights first, then answers questions on FD until that ends. docs/symbols.md tells what it
 * may and may not.
 */

#include <stdbool.h>

#define SYMBOLIZER_PROCESS_ARGUMENT "--symbol-process"
#define SYMBOLIZER_PROCESS_NAME "ttmem-symbols"

/* Whether the command line is such a process's. To be asked before anything else is done. */
bool symbolizer_process_is_meant(int argc, char *const *argv);

/* Return: the code to exit with. */
int symbolizer_process_main(int argc, char *const *argv);
