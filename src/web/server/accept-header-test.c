/* SPDX-License-Identifier: Apache-2.0 */

/* Accept headers as real clients send them, and as none does. */

#include "web/server/accept-header.h"

#include <stddef.h>

#include "base/testing/unit.h"

#define OPEN "application/openmetrics-text"

UNIT(openmetrics_is_chosen_by_the_accept_header)
{
	assert(accept_header_prefers_openmetrics(OPEN));
	assert(accept_header_prefers_openmetrics(OPEN "; version=1.0.0; charset=utf-8"));
	assert(accept_header_prefers_openmetrics(OPEN ";version=\"1.0.0\""));
	assert(accept_header_prefers_openmetrics("text/plain;q=0.5, " OPEN ";q=0.51"));
	assert(accept_header_prefers_openmetrics("Application/OpenMetrics-Text"));
	assert(accept_header_prefers_openmetrics(OPEN ";q=0.001"));
	/* As Prometheus 2.42 sends it. */
	assert(accept_header_prefers_openmetrics(
		OPEN ";version=1.0.0," OPEN
		     ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
}

UNIT(plain_text_is_chosen_by_the_accept_header)
{
	static const char *const texts[] = {
		"",
		"*/*",
		"text/plain",
		"application/*",
		"application/json",
		OPEN ";q=0",
		OPEN ";q=0.3, text/plain;q=0.4",
		OPEN ", text/plain",
		OPEN ";q=0.5, text/*;q=0.6",
		OPEN ";version=2.0.0",
		OPEN ";version=0.0.1",
		OPEN ";q=2",
		OPEN ";q=abc",
		OPEN ";q=",
		OPEN ";q=0.5, */*",
		"\"" OPEN,
		",,,;;;=,q=1",
	};

	assert(!accept_header_prefers_openmetrics(NULL));
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert(!accept_header_prefers_openmetrics(texts[i]));
}

UNIT(a_specific_range_counts_more_than_a_general_one)
{
	assert(accept_header_prefers_openmetrics("*/*, text/plain;q=0.1, " OPEN ";q=0.2"));
	assert(!accept_header_prefers_openmetrics("text/*;q=0.1, text/plain, " OPEN ";q=0.2"));
}

UNIT(compressed_files_need_accept_encoding)
{
	assert(accept_header_takes_gzip("gzip"));
	assert(accept_header_takes_gzip("gzip, deflate, br, zstd"));
	assert(accept_header_takes_gzip("br;q=1.0, GZIP;q=0.5, *;q=0"));
	assert(accept_header_takes_gzip("*"));
	assert(!accept_header_takes_gzip(NULL));
	assert(!accept_header_takes_gzip(""));
	assert(!accept_header_takes_gzip("identity"));
	assert(!accept_header_takes_gzip("gzip;q=0"));
	assert(!accept_header_takes_gzip("*, gzip;q=0"));
	assert(!accept_header_takes_gzip("gzipped"));
}

UNIT(what_a_client_has_is_recognised_by_its_etag)
{
	static const char tag[] = "\"1f2e\"";

	assert(accept_header_has_tag("\"1f2e\"", tag));
	assert(accept_header_has_tag("W/\"1f2e\"", tag));
	assert(accept_header_has_tag("\"other\", W/\"1f2e\"", tag));
	assert(accept_header_has_tag("*", tag));
	assert(!accept_header_has_tag(NULL, tag));
	assert(!accept_header_has_tag("", tag));
	assert(!accept_header_has_tag("1f2e", tag));
	assert(!accept_header_has_tag("\"1f2e3d\"", tag));
}
