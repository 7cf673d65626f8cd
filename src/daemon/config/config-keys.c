/* SPDX-License-Identifier: Apache-2.0 */

/* The settings: their names, allowed values, parsing and printing. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <arpa/inet.h>

#include "base/text.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"
#include "source/fleet/host-url.h"

#define CONFIG_PATH_MAX (PATH_MAX - 1u)
#define CONFIG_SOCKET_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)
#define CONFIG_COMMAND_MAX 8192u /* arbitrary */
#define CONFIG_GROUP_MAX 32u     /* the limit of useradd */
#define CONFIG_FLEET_MAX 32768u  /* arbitrary; the file has a limit of its own */
#define CONFIG_HTTP_MAX 64u      /* an IPv6 address with brackets and port is shorter */

/* Control characters would break the lines of --check and of the log. */
static bool is_plain(const char *text)
{
	for (; *text; text++) {
		if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
			return false;
	}
	return true;
}

static int parse_text(const struct config_key *key, void *target, const char *text)
{
	char **place = target;
	char *copy;

	if (!*text || strlen(text) > key->max || !is_plain(text))
		return -EINVAL;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*place);
	*place = copy;
	return 0;
}

static void print_text(const void *target, FILE *output)
{
	fputs(*(char *const *)target, output);
}

static bool is_set_text(const void *target)
{
	return *(char *const *)target != NULL;
}

static int parse_path(const struct config_key *key, void *target, const char *text)
{
	/* A file of that name can be written as "./none". */
	if (strcmp(text, CONFIG_NONE) == 0)
		return -EINVAL;
	return parse_text(key, target, text);
}

static int parse_port(const char *text)
{
	uint64_t port;

	/* Decimal only: any other form of a port is a mistake. */
	if (strspn(text, "0123456789") != strlen(text) || text_parse_u64(text, &port) < 0 ||
	    port > UINT16_MAX)
		return -EINVAL;
	return 0;
}

/* "127.0.0.1:5392", "[::1]:5392". Numbers only: what a name resolves to can change unnoticed. */
static int parse_http(const struct config_key *key, void *target, const char *text)
{
	const char *colon = strrchr(text, ':');
	char address[CONFIG_HTTP_MAX + 1];
	uint8_t binary[sizeof(struct in6_addr)];
	size_t length;
	bool is_bracketed;

	if (strcmp(text, CONFIG_NONE) == 0)
		return parse_text(key, target, text);
	if (!colon || parse_port(colon + 1) < 0)
		return -EINVAL;
	length = (size_t)(colon - text);
	is_bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
	if (is_bracketed) {
		text++;
		length -= 2;
	}
	if (length >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(is_bracketed ? AF_INET6 : AF_INET, address, binary) != 1)
		return -EINVAL;
	return parse_text(key, target, is_bracketed ? text - 1 : text);
}

/* Checks scheme and form only; which paths the collector serves is not known here. */
static int parse_url(const struct config_key *key, void *target, const char *text)
{
	size_t scheme = strncmp(text, "http://", 7) == 0    ? 7
			: strncmp(text, "https://", 8) == 0 ? 8
							    : 0;

	if (!scheme || !text[scheme] || text[scheme] == '/' || strpbrk(text, " ?#"))
		return -EINVAL;
	return parse_text(key, target, text);
}

static int parse_fleet(const struct config_key *key, void *target, const char *text)
{
	return host_url_is_list(text) ? parse_text(key, target, text) : -EINVAL;
}

static int parse_group(const struct config_key *key, void *target, const char *text)
{
	if (strpbrk(text, " \t:,/"))
		return -EINVAL;
	return parse_text(key, target, text);
}

static int parse_yes(const struct config_key *key, void *target, const char *text)
{
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0)
		return -EINVAL;
	*(bool *)target = yes;
	return 0;
}

static void print_yes(const void *target, FILE *output)
{
	fputs(*(const bool *)target ? "yes" : "no", output);
}

static int parse_ids(const struct config_key *key, void *target, const char *text)
{
	bool decimal = strcmp(text, "decimal") == 0;

	if (!decimal && strcmp(text, "hex") != 0)
		return -EINVAL;
	*(bool *)target = decimal;
	return 0;
}

static void print_ids(const void *target, FILE *output)
{
	fputs(*(const bool *)target ? "decimal" : "hex", output);
}

static const struct config_kind kind_text = {parse_text, print_text, is_set_text};
static const struct config_kind kind_path = {parse_path, print_text, is_set_text};
static const struct config_kind kind_http = {parse_http, print_text, is_set_text};
static const struct config_kind kind_group = {parse_group, print_text, is_set_text};
static const struct config_kind kind_url = {parse_url, print_text, is_set_text};
static const struct config_kind kind_fleet = {parse_fleet, print_text, is_set_text};
static const struct config_kind kind_yes = {parse_yes, print_yes};
static const struct config_kind kind_ids = {parse_ids, print_ids};

#define AT(member) .offset = offsetof(struct config, member)
#define A_SWITCH .kind = &kind_yes, .argument = "yes|no", .expects = "yes or no", .is_switch = true

/* In the order of --help and --check. */
const struct config_key config_keys[] = {
	{.name = "socket",
	 .argument = "PATH",
	 .kind = &kind_path,
	 .max = CONFIG_SOCKET_MAX,
	 .expects = "a path of at most 107 bytes",
	 .help = "native socket, for the library and the command",
	 AT(socket)},
	{.name = "legacy-socket",
	 .argument = "PATH|none",
	 .kind = &kind_text,
	 .max = CONFIG_SOCKET_MAX,
	 .expects = "a path of at most 107 bytes, or none",
	 .help = "socket of the old protocol",
	 AT(legacy_socket)},
	{.name = "legacy-memory",
	 .argument = "SIZE",
	 .kind = &config_kind_size,
	 .min = UINT64_C(16) << 20,
	 .max = UINT64_C(1) << 40,
	 .expects = "a size such as 512M or 2G (16M to 1T)",
	 .help = "memory for the books of old clients; one user gets half of it",
	 AT(legacy_memory)},
	{.name = "http",
	 .argument = "ADDR:PORT|none",
	 .kind = &kind_http,
	 .max = CONFIG_HTTP_MAX,
	 .expects = "an address such as 127.0.0.1:5392 or [::1]:5392, or none",
	 .help = "where HTTP is served",
	 AT(http)},
	{.name = "http-host",
	 .argument = "NAME[,NAME]...",
	 .kind = &kind_text,
	 .max = CONFIG_PATH_MAX,
	 .expects = "names of this machine, separated by commas",
	 .help = "names under which HTTP is asked for, besides the machine's own",
	 AT(http_hosts)},
	{.name = "http-details",
	 A_SWITCH,
	 .help = "over HTTP, show details of processes to everybody, without a token",
	 AT(http_details)},
	{.name = "token-file",
	 .argument = "FILE",
	 .kind = &kind_path,
	 .max = CONFIG_PATH_MAX,
	 .expects = "a path",
	 .help = "token for details over HTTP (http-token in the state folder)",
	 AT(token_file)},
	{.name = "state",
	 .argument = "DIR",
	 .kind = &kind_path,
	 .max = CONFIG_PATH_MAX - 32u, /* file names are appended */
	 .expects = "a path",
	 .help = "folder of the database",
	 AT(state)},
	{.name = "keep",
	 .argument = "TIME",
	 .kind = &config_kind_time,
	 .min = CONFIG_MINUTE,
	 .max = 3650 * CONFIG_DAY,
	 .expects = "a time such as 30d, 12h or 90s (1m to 3650d)",
	 .help = "how long the past is kept",
	 AT(keep_s)},
	{.name = "size-max",
	 .argument = "SIZE",
	 .kind = &config_kind_size,
	 .min = UINT64_C(1) << 20,
	 .max = UINT64_C(1) << 40,
	 .expects = "a size such as 512M or 2G (1M to 1T)",
	 .help = "how large the database may become",
	 AT(size_max)},
	{.name = "flight",
	 .argument = "TIME,SIZE|off",
	 .kind = &config_kind_flight,
	 .min = UINT64_C(1) << 20,
	 .max = UINT64_C(1) << 36,
	 .expects = "a time and a size such as 10m,256M (1m to 1d, 1M to 64G), or off",
	 .help = "events kept in memory, for a file when an allocation fails or a process dies",
	 AT(flight)},
	{.name = "on-incident",
	 .argument = "CMD",
	 .kind = &kind_text,
	 .max = CONFIG_COMMAND_MAX,
	 .expects = "a command of at most 8192 bytes",
	 .help = "shell command that gets each incident as JSON on its input",
	 AT(on_incident)},
	{.name = "strict-close",
	 A_SWITCH,
	 .help = "report what was live when its device was closed, once its process has ended",
	 AT(strict_close)},
	{.name = "skip-frames",
	 .argument = "PATTERN[,PATTERN]...",
	 .kind = &kind_text,
	 .max = CONFIG_PATH_MAX,
	 .expects = "patterns of functions, files and modules, separated by commas",
	 .help = "frames of allocators, which do not stand for a stack",
	 AT(skip_frames)},
	{.name = "log-events",
	 A_SWITCH,
	 .help = "print each event in the old server's words",
	 AT(log_events)},
	{.name = "log-history",
	 A_SWITCH,
	 .help = "with the history of each buffer, as allocation_server_enhanced did",
	 AT(log_history)},
	{.name = "ids",
	 .argument = "hex|decimal",
	 .kind = &kind_ids,
	 .expects = "hex or decimal",
	 .help = "how buffers are numbered in what is printed",
	 AT(decimal_ids)},
	{.letter = 'q', .name = "quiet", A_SWITCH, .help = "print errors only", AT(quiet)},
	{.name = "trace-wire",
	 A_SWITCH,
	 .help = "print a line for each message of the old protocol",
	 AT(trace_wire)},
	{.name = "log",
	 .argument = "FILE",
	 .kind = &kind_path,
	 .max = CONFIG_PATH_MAX,
	 .expects = "a path",
	 .help = "where to print; opened anew on SIGHUP (standard output)",
	 AT(log)},
	{.name = "keeper",
	 .argument = "yes|no",
	 .kind = &kind_yes,
	 .expects = "yes or no",
	 .help = "without systemd, let a small process hold the books in between",
	 AT(keeper)},
	{.name = "metrics-processes",
	 .argument = "N",
	 .kind = &config_kind_count,
	 .min = 0,
	 .max = 1000,
	 .expects = "a number from 0 to 1000",
	 .help = "processes with lines of their own in /metrics; the rest is \"other\"",
	 AT(metrics_processes)},
	{.name = "fleet",
	 .argument = "HOST[,HOST]...",
	 .kind = &kind_fleet,
	 .max = CONFIG_FLEET_MAX,
	 .expects = "names of machines such as host-1 or host-2:5392, separated by commas (256 at "
		    "most)",
	 .help = "other machines with ttmemd, for the page of the fleet",
	 AT(fleet)},
	{.name = "fleet-prometheus",
	 .argument = "URL",
	 .kind = &kind_url,
	 .max = CONFIG_PATH_MAX,
	 .expects = "an address such as http://prometheus:9090",
	 .help = "Prometheus whose targets with ttmemd are on that page as well",
	 AT(fleet_prometheus)},
	{.name = "otlp",
	 .argument = "URL",
	 .kind = &kind_url,
	 .max = CONFIG_PATH_MAX,
	 .expects = "an address such as http://collector:4318",
	 .help = "push metrics and incidents to this OpenTelemetry collector",
	 AT(otlp)},
	{.name = "otlp-interval",
	 .argument = "TIME",
	 .kind = &config_kind_time32,
	 .min = 1,
	 .max = CONFIG_DAY,
	 .expects = "a time such as 30s or 5m (1s to 1d)",
	 .help = "time between two pushes of metrics",
	 AT(otlp_interval_s)},
	{.name = "scan-interval",
	 .argument = "TIME",
	 .kind = &config_kind_time32,
	 .min = 1,
	 .max = CONFIG_DAY,
	 .expects = "a time such as 30s or 5m (1s to 1d)",
	 .help = "time between two looks at /proc for new processes",
	 AT(scan_s)},
	{.name = "group",
	 .argument = "NAME",
	 .kind = &kind_group,
	 .max = CONFIG_GROUP_MAX,
	 .expects = "the name of a group",
	 .help = "whose members see the processes of everybody",
	 AT(group)},
	{.name = "ready-fd",
	 .argument = "N",
	 .kind = &config_kind_fd,
	 .max = INT_MAX,
	 .expects = "the number of an open file",
	 .help = "write a line there once everything is served",
	 AT(ready_fd)},
};

const size_t config_keys_count = sizeof(config_keys) / sizeof(config_keys[0]);

/* The parser of the file marks keys in a 32-bit word. */
_Static_assert(sizeof(config_keys) / sizeof(config_keys[0]) <= 32, "more settings than bits");
_Static_assert(CONFIG_SOCKET_MAX == 107, "the texts above say 107");

const struct config_key *config_keys_find(const char *name, size_t length)
{
	for (size_t i = 0; i < config_keys_count; i++) {
		if (strlen(config_keys[i].name) == length &&
		    memcmp(config_keys[i].name, name, length) == 0)
			return &config_keys[i];
	}
	return NULL;
}

const struct config_key *config_keys_guess(const char *name)
{
	const struct config_key *best = NULL;
	size_t distance = 3; /* a larger distance is no typo */

	for (size_t i = 0; i < config_keys_count; i++) {
		size_t d = text_distance(name, config_keys[i].name);

		if (d < distance) {
			distance = d;
			best = &config_keys[i];
		}
	}
	return best;
}

int config_keys_set(struct config *config, const struct config_key *key, const char *text)
{
	int r = key->kind->parse(key, (char *)config + key->offset, text);

	return r == -EINVAL ? CONFIG_WRONG : r;
}

void config_keys_print(const struct config *config, const struct config_key *key, FILE *output)
{
	const void *target = (const char *)config + key->offset;

	if (key->kind->is_set && !key->kind->is_set(target)) {
		fprintf(output, "# %s is not set\n", key->name);
		return;
	}
	fprintf(output, "%s = ", key->name);
	key->kind->print(target, output);
	fputc('\n', output);
}
