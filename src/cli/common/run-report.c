/* SPDX-License-Identifier: Apache-2.0 */

/* Reads reports, and refuses what is none. */

#include "cli/common/run-report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/daemon-pages.h"
#include "model/types.h"

static bool run_report_is_one(const json_t *document)
{
	const char *schema = daemon_pages_text(document, "schema");

	return schema && strcmp(schema, "ttmem.run/1") == 0 &&
	       json_is_array(json_object_get(document, "processes")) &&
	       json_is_array(json_object_get(document, "peaks"));
}

int run_report_read(const char *path, const char *otherwise, json_t **ret_document, char *ret_why,
		    size_t size)
{
	json_error_t error;
	char shown[TEXT_ESCAPE_SIZE(JSON_ERROR_TEXT_LENGTH)];
	CLEANUP_FCLOSE FILE *file = fopen(path, "re");
	json_t *document;

	if (!file) {
		(void)snprintf(ret_why, size, "%s", strerrordesc_np(errno));
		return -EINVAL;
	}
	document = json_loadf(file, 0, &error);
	if (!document) {
		(void)text_escape(error.text, shown, sizeof(shown)); /* it quotes the file */
		if (error.line > 0)
			(void)snprintf(ret_why, size, "%s: line %d: %s", otherwise, error.line,
				       shown);
		else
			(void)snprintf(ret_why, size, "cannot be read");
		return -EINVAL;
	}
	*ret_document = document;
	return 0;
}

int run_report_load(const char *path, json_t **ret_document, char *ret_why, size_t size)
{
	json_t *document;
	int r = run_report_read(path, "neither a recording nor JSON", &document, ret_why, size);

	if (r < 0)
		return r;
	if (!run_report_is_one(document)) {
		json_decref(document);
		(void)snprintf(ret_why, size, "%s", RUN_REPORT_NONE);
		return -EINVAL;
	}
	*ret_document = document;
	return 0;
}

int run_report_place(const json_t *row, uint32_t *ret_device, uint32_t *ret_type)
{
	uint64_t device = daemon_pages_number(row, "device");
	const char *type = daemon_pages_text(row, "type");

	if (device >= BOOK_DEVICES || !type || types_parse(type, ret_type) < 0)
		return -EINVAL;
	*ret_device = (uint32_t)device;
	return 0;
}
