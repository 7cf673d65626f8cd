/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that the library keeps in the application's process: moved away from numbers that
 * programs choose by hand or expect to get, above all 0 to 2.
 */

/*
 * Moves @fd to a high number and closes the old one; if no high number is free it stays where it
 * is. Return: its number now.
 */
int descriptor_move_high(int fd);
