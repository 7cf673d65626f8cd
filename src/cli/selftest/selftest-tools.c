/* SPDX-License-Identifier: Apache-2.0 */

/* Checks the tools: runs each command as a script would and examines its JSON. */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/selftest/selftest.h"
#include "model/types.h"

static char selftest_reason[256];

/* NULL: selftest_reason says why. */
json_t *selftest_ask(const char *words)
{
	char self[512], line[1024];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	json_error_t error;
	json_t *document;
	FILE *pipe;

	if (length < 0)
		return NULL;
	self[length] = '\0';
	(void)snprintf(line, sizeof(line), "'%s' %s", self, words);
	pipe = popen(line, "re"); /* NOLINT(cert-env33-c): our own binary and our own words */
	if (!pipe) {
		(void)snprintf(selftest_reason, sizeof(selftest_reason), "cannot be started");
		return NULL;
	}
	document = json_loadf(pipe, JSON_DISABLE_EOF_CHECK, &error);
	if (!document)
		(void)snprintf(selftest_reason, sizeof(selftest_reason), "printed no JSON: %s",
			       error.text);
	(void)pclose(pipe); /* only its output matters */
	return document;
}

json_t *selftest_of_pid(json_t *list, uint32_t pid)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *element = json_array_get(list, i);

		if (json_integer_value(json_object_get(element, "pid")) == (json_int_t)pid)
			return element;
	}
	return NULL;
}

const char *selftest_memory(json_t *document, uint32_t pid)
{
	json_t *process = selftest_of_pid(json_object_get(document, "processes"), pid);
	json_t *memory =
		json_object_get(json_array_get(json_object_get(process, "devices"), 0), "memory");

	if (!process)
		return "does not list the process";
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		json_t *one = json_object_get(memory, types_name(type));
		json_int_t used = json_integer_value(json_object_get(one, "used"));
		uint64_t buffers;
		uint64_t bytes = selftest_bytes(type, &buffers);

		if (!one || (uint64_t)used != bytes) {
			(void)snprintf(selftest_reason, sizeof(selftest_reason),
				       "shows %" JSON_INTEGER_FORMAT
				       " bytes of %s instead of %" PRIu64,
				       used, types_name(type), bytes);
			return selftest_reason;
		}
	}
	return NULL;
}

/* Compares the memory of the known device in a process of smi or ps. */
static const char *selftest_process(const char *words, uint32_t pid)
{
	json_t *document = selftest_ask(words);
	const char *wrong = document ? selftest_memory(document, pid) : selftest_reason;

	json_decref(document);
	return wrong;
}

const char *selftest_smi(uint32_t pid)
{
	return selftest_process("smi --json", pid);
}

const char *selftest_ps(uint32_t pid)
{
	return selftest_process("ps --json", pid);
}

static bool selftest_has(json_t *list, const struct selftest_buffer *buffer, bool named)
{
	char address[32];

	(void)snprintf(address, sizeof(address), "0x%" PRIx64, buffer->address);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *one = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *type = json_string_value(json_object_get(one, "type"));
		const char *at = json_string_value(json_object_get(one, "address"));

		if (type && at && (!named || (name && strcmp(name, buffer->name) == 0)) &&
		    strcmp(at, address) == 0 && strcmp(type, types_name(buffer->type)) == 0 &&
		    json_integer_value(json_object_get(one, "size")) == (json_int_t)buffer->size)
			return true;
	}
	return false;
}

static const char *selftest_rows(uint32_t pid, bool named)
{
	char words[64];
	const char *wrong = NULL;
	json_t *document, *list;

	(void)snprintf(words, sizeof(words), "buffers --json --pid %" PRIu32, pid);
	document = selftest_ask(words);
	if (!document)
		return selftest_reason;
	list = json_object_get(document, "buffers");
	if (json_array_size(list) != selftest_count) {
		(void)snprintf(selftest_reason, sizeof(selftest_reason),
			       "lists %zu buffers instead of %u", json_array_size(list),
			       selftest_count);
		wrong = selftest_reason;
	}
	for (unsigned int i = 0; !wrong && i < selftest_count; i++) {
		if (!selftest_has(list, &selftest_buffers[i], named)) {
			(void)snprintf(selftest_reason, sizeof(selftest_reason),
				       "does not list \"%s\"", selftest_buffers[i].name);
			wrong = selftest_reason;
		}
	}
	json_decref(document);
	return wrong;
}

const char *selftest_list(uint32_t pid)
{
	return selftest_rows(pid, true);
}

const char *selftest_places(uint32_t pid)
{
	return selftest_rows(pid, false);
}

const char *selftest_history(uint32_t pid)
{
	char words[96];
	const char *wrong = NULL;
	json_t *document, *life;

	(void)snprintf(words, sizeof(words),
		       "history 0x%" PRIx64 " --device %u --pid %" PRIu32 " --json",
		       selftest_buffers[0].address, SELFTEST_DEVICE, pid);
	document = selftest_ask(words);
	if (!document)
		return selftest_reason;
	life = selftest_of_pid(json_object_get(document, "buffers"), pid);
	if (json_integer_value(json_object_get(life, "allocs")) != 1 ||
	    !json_is_true(json_object_get(life, "live")))
		wrong = "does not tell of the allocation";
	json_decref(document);
	return wrong;
}

const char *selftest_incidents(uint32_t pid)
{
	json_t *document = selftest_ask("incidents --json");
	json_t *incident;
	const char *wrong = NULL;
	const char *kind;

	if (!document)
		return selftest_reason;
	incident = selftest_of_pid(json_object_get(document, "incidents"), pid);
	kind = json_string_value(json_object_get(incident, "kind"));
	if (!kind || strcmp(kind, "double_free") != 0)
		wrong = "does not show the double free";
	json_decref(document);
	return wrong;
}
