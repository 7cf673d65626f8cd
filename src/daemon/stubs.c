/* SPDX-License-Identifier: Apache-2.0 */

/* In place of src/web until it is there: no HTTP is served. */

#include "web/web.h"
#pragma GCC diagnostic ignored "-Wunused-parameter"
int web_new(struct web **ret_web, const struct web_config *config, const char **ret_problem)
{
	*ret_web = 0;
	return 0;
}
struct web *web_free(struct web *web)
{
	return 0;
}
const char *web_address(const struct web *web)
{
	return "";
}
void web_tell_incident(struct web *web, const char *json, size_t length)
{
}
