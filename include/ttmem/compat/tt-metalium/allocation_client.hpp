/* SPDX-License-Identifier: Apache-2.0 */

/* The old client under its second include name; see ttmem/compat/allocation_client.hpp. */

#ifndef TTMEM_COMPAT_TT_METALIUM_ALLOCATION_CLIENT_HPP
#define TTMEM_COMPAT_TT_METALIUM_ALLOCATION_CLIENT_HPP

#include <ttmem/compat/allocation_client.hpp>

#endif
