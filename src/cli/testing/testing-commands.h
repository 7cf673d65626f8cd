/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runs commands in the process of a test, in a folder with small recordings: "story.ttrec", and "short.ttrec", at
 * whose end nothing is live.
 */

/*
 * Runs the command, whose words are separated by one blank, and asserts its exit code and what it prints to both
 * streams. There, T stands for a time or a duration, D for a date, and V for the version.
 */
void testing_command(const char *words, int code, const char *out, const char *error);
