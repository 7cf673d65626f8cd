/* SPDX-License-Identifier: Apache-2.0 */

/* Notices of processes that handed their books over: each reason to refuse one. */

#include "source/books/accept.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "wire/offer.h"

static int pair[2];

static int news_of(const void *bytes, size_t length)
{
	int program = 0;
	int r;

	assert(send(pair[0], bytes, length, 0) == (ssize_t)length);
	r = accept_news(pair[1], &program);
	assert(program == -1);
	return r;
}

UNIT(only_whole_notices_of_failures_are_news)
{
	const struct offer_notice good = {
		.magic = OFFER_NOTICE_MAGIC,
		.version = OFFER_VERSION,
		.size = sizeof(good),
		.what = OFFER_NOTICE_FAILED,
	};
	struct offer_notice bad = good;
	int program;

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	assert(accept_news(pair[1], &program) == -EAGAIN);
	assert(news_of(&good, sizeof(good)) == 0);
	assert(news_of(&good, sizeof(good) - 1) == -EBADMSG);
	bad.magic++;
	assert(news_of(&bad, sizeof(bad)) == -EBADMSG);
	bad = good;
	bad.version++;
	assert(news_of(&bad, sizeof(bad)) == -EBADMSG);
	bad = good;
	bad.what++;
	assert(news_of(&bad, sizeof(bad)) == -EBADMSG);
	assert(close(pair[0]) == 0);
	assert(accept_news(pair[1], &program) == -EPIPE);
	assert(close(pair[1]) == 0);
}
