/* SPDX-License-Identifier: Apache-2.0 */

/* Socket addresses from text and back. */

#include "web/server/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define ADDRESS_BACKLOG 1024 /* connections beyond the limit wait here */

int address_parse(const char *text, struct address *ret_address)
{
	struct address address = {.length = sizeof(struct sockaddr_in)};
	struct sockaddr_in *four = (struct sockaddr_in *)&address.storage;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address.storage;
	const char *colon = strrchr(text, ':');
	char host[ADDRESS_TEXT_SIZE] = {0};
	size_t length = colon ? (size_t)(colon - text) : 0;
	uint64_t port = 0;

	if (length == 0 || length >= sizeof(host) || text_parse_u64(colon + 1, &port) < 0 ||
	    port > UINT16_MAX)
		return -EINVAL;
	if (*text == '[' && colon[-1] == ']') {
		memcpy(host, text + 1, length - 2);
		address.length = sizeof(*six);
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
			return -EINVAL;
	} else {
		memcpy(host, text, length);
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		if (inet_pton(AF_INET, host, &four->sin_addr) != 1)
			return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

bool address_is_loopback(const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;

	if (address->storage.ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

bool address_is_any(const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;

	if (address->storage.ss_family == AF_INET)
		return four->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

static void address_format(const struct address *address, char *ret_text)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->storage;
	char host[INET6_ADDRSTRLEN] = "";

	if (address->storage.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host)); /* fits */
		snprintf(ret_text, ADDRESS_TEXT_SIZE, "%s:%u", host, ntohs(four->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host)); /* fits */
		snprintf(ret_text, ADDRESS_TEXT_SIZE, "[%s]:%u", host, ntohs(six->sin6_port));
	}
}

int address_listen(const struct address *address, int *ret_fd, char *ret_text)
{
	CLEANUP_CLOSE int fd =
		socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct address bound = {.length = sizeof(bound.storage)};
	const int on = 1;

	if (fd < 0)
		return -errno;
	/*
	 * Otherwise a restarted daemon would have to wait for the connections of the previous one.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&address->storage, address->length) < 0 ||
	    listen(fd, ADDRESS_BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&bound.storage, &bound.length) < 0)
		return -errno;
	address_format(&bound, ret_text);
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}
