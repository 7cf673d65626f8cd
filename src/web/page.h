/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files under src/web/page, made part of the program by tools/build/embed.py. */

#include <stddef.h>

extern const unsigned char page_html[], page_script[], page_style[];
extern const size_t page_html_size, page_script_size, page_style_size;
