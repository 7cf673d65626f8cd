/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where to listen: "127.0.0.1:5392", "[::1]:0". Numeric only, so that no name has to be resolved.
 */

#include <stdbool.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_SIZE 64

struct address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/* 0 or -EINVAL. */
int address_parse(const char *text, struct address *ret_address);

/* Reachable from this machine only; the wildcard address. */
bool address_is_loopback(const struct address *address);
bool address_is_any(const struct address *address);

/* Listens. The caller owns the fd; @ret_text (ADDRESS_TEXT_SIZE) has the port that was assigned. */
int address_listen(const struct address *address, int *ret_fd, char *ret_text);
