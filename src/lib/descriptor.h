/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that the library keeps inside somebody else's process: out of the way of numbers that
 * programs choose by hand or expect to get, above all of 0 to 2.
 */

/*
 * Moves @fd to a high number and closes the old one; with no number to be had it stays where it is.
 * Return: the number that it now has.
 */
int descriptor_move_high(int fd);
