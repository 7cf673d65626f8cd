/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where to listen: "127.0.0.1:5392", "[::1]:0". Numbers only, so that nobody is asked what they mean. */

#include <stdbool.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_SIZE 64

struct address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/* 0 or -EINVAL. */
int address_parse(const char *text, struct address *ret_address);

/* Only this machine can reach it; it stands for every address of the machine. */
bool address_is_loopback(const struct address *address);
bool address_is_any(const struct address *address);

/* Listens. The fd is the caller's; @ret_text (ADDRESS_TEXT_SIZE) has the port that was given. */
int address_listen(const struct address *address, int *ret_fd, char *ret_text);
