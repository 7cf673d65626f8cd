/* SPDX-License-Identifier: Apache-2.0 */

/* Settings: every accepted and every refused form, precedence. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

/* The outcome of a parser and its output. */
struct result {
	int r;
	struct config config;
	char *output, *errors;
};

static char place_run[300], place_state[300], place_file[300];
static const struct config_places places = {place_run, place_state, place_file};

/* System-wide locations in the case's folder. */
static void make_places(void)
{
	snprintf(place_run, sizeof(place_run), "%s/run", unit_dir());
	snprintf(place_state, sizeof(place_state), "%s/state", unit_dir());
	snprintf(place_file, sizeof(place_file), "%s/ttmemd.conf", unit_dir());
	unsetenv("TTMEM_SOCKET");
	unsetenv("TT_ALLOC_SERVER_SOCKET");
	unsetenv("RUNTIME_DIRECTORY");
	unsetenv("STATE_DIRECTORY");
	unsetenv("XDG_STATE_HOME");
}

static void write_file(const char *text)
{
	FILE *file = fopen(place_file, "we");

	assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

#define WORDS_MAX 64

/* @words: without the program's name, terminated by NULL. */
static struct result parse(const char *const *words)
{
	char *argv[WORDS_MAX] = {strdup("ttmemd")};
	struct result result;
	size_t sizes[2];
	int argc = 1;
	FILE *streams[2] = {open_memstream(&result.output, &sizes[0]),
			    open_memstream(&result.errors, &sizes[1])};

	for (; words[argc - 1]; argc++) {
		assert(argc < WORDS_MAX - 1);
		argv[argc] = strdup(words[argc - 1]);
	}
	result.r = config_parse_at(&result.config, &places, argc, argv, streams);
	assert(fclose(streams[0]) == 0 && fclose(streams[1]) == 0);
	while (argc > 0)
		free(argv[--argc]);
	return result;
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})
#define PARSE_NOTHING() parse((const char *const[]){NULL})

static void drop(struct result *result)
{
	config_deinit(&result->config);
	free(result->output);
	free(result->errors);
}

/* Parses a file with only @text; checks the outcome, and that the message contains @word. */
static void check_file(const char *text, size_t length, int r, const char *word)
{
	struct config config;
	char *errors;
	size_t size;
	FILE *stream = open_memstream(&errors, &size);

	assert(config_init(&config) == 0);
	assert(config_parse_text(&config, "a.conf", text, length, stream) == r);
	assert(fclose(stream) == 0);
	if (word)
		assert(strstr(errors, word));
	else
		assert(!*errors);
	free(errors);
	config_deinit(&config);
}

static void check_text(const char *text, int r, const char *word)
{
	check_file(text, strlen(text), r, word);
}

UNIT(defaults_apply_without_options)
{
	struct result result;

	make_places();
	result = PARSE_NOTHING();
	assert(result.r == 0 && !*result.errors && !*result.output);
	assert(strcmp(result.config.legacy_socket, "/tmp/tt_allocation_server.sock") == 0);
	assert(strcmp(result.config.http, "127.0.0.1:5392") == 0);
	assert(strcmp(result.config.group, "ttmem") == 0);
	assert(strcmp(strrchr(result.config.socket, '/'), "/ttmemd.sock") == 0);
	assert(strncmp(result.config.token_file, result.config.state,
		       strlen(result.config.state)) == 0);
	assert(result.config.keep_s == 30 * 86400 && result.config.size_max == 512u << 20);
	assert(result.config.flight.time_s == 600 && result.config.flight.size == 256u << 20);
	assert(result.config.legacy_memory == UINT64_C(2) << 30);
	assert(result.config.scan_s == 30 && result.config.metrics_processes == 20);
	assert(result.config.keeper && !result.config.quiet && !result.config.log_events);
	assert(!result.config.http_details && !result.config.decimal_ids);
	assert(!result.config.strict_close);
	assert(!result.config.trace_wire && result.config.ready_fd == -1);
	assert(!result.config.log && !result.config.on_incident);
	drop(&result);
}

UNIT(every_option_is_parsed)
{
	struct result result;

	make_places();
	result = PARSE("--socket", "/a/s", "--legacy-socket=none", "--legacy-memory", "64M",
		       "--http", "[::1]:0", "--http-details", "--token-file", "/a/t", "--state",
		       "/a/state", "--keep", "12h", "--size-max", "2G", "--on-incident",
		       "logger # x", "--strict-close", "--log-events", "--log-history", "--ids",
		       "decimal", "-q", "--trace-wire", "--ready-fd", "1", "--keeper", "no",
		       "--log", "/a/log", "--metrics-processes", "1", "--scan-interval", "90s",
		       "--group", "staff", "--config", "none");
	assert(result.r == 0 && !*result.errors);
	assert(strcmp(result.config.socket, "/a/s") == 0);
	assert(strcmp(result.config.legacy_socket, "none") == 0);
	assert(strcmp(result.config.http, "[::1]:0") == 0 && result.config.http_details);
	assert(strcmp(result.config.token_file, "/a/t") == 0);
	assert(strcmp(result.config.state, "/a/state") == 0);
	assert(result.config.keep_s == 43200 && result.config.size_max == UINT64_C(2) << 30);
	assert(result.config.legacy_memory == 64 << 20);
	assert(strcmp(result.config.on_incident, "logger # x") == 0 && result.config.strict_close);
	assert(result.config.log_events && result.config.log_history && result.config.quiet);
	assert(result.config.decimal_ids && result.config.trace_wire && !result.config.keeper);
	assert(result.config.ready_fd == 1 && strcmp(result.config.log, "/a/log") == 0);
	assert(result.config.metrics_processes == 1 && result.config.scan_s == 90);
	assert(strcmp(result.config.group, "staff") == 0);
	drop(&result);
}

UNIT(wrong_options_are_explained)
{
	static const struct {
		const char *words[3];
		const char *said;
	} lines[] = {
		{{"--nonsense"}, "unknown option \"--nonsense\"\n"},
		{{"--sockte", "x"}, "unknown option \"--sockte\"; did you mean --socket?"},
		{{"-x"}, "unknown option \"-x\"\n"},
		{{"-xq"}, "unknown option \"-x\"\n"},
		{{"-qx"}, "unknown option \"-x\"\n"},
		{{"word"}, "ttmemd: takes only options, got \"word\"\n"},
		{{"-q", "word"}, "ttmemd: takes only options, got \"word\"\n"},
		{{"--socket"}, "--socket expects a path of at most 107 bytes, got nothing"},
		{{"--config"}, "--config expects a path, or none, got nothing"},
		{{"--check=1"}, "--check takes no value, got \"1\""},
		{{"--quiet=maybe"}, "--quiet expects yes or no, got \"maybe\""},
		{{"--keep", "5x"}, "(1m to 3650d), got \"5x\""},
		{{"--socket", "none"}, "--socket expects a path of at most 107 bytes, got"},
		{{"--ready-fd", "-1"}, "--ready-fd expects the number of an open file, got \"-1\""},
		{{"--on-incident", "a\nb"}, "8192 bytes, got \"a\\x0ab\""},
	};

	make_places();
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct result result = parse(lines[i].words);

		assert(result.r == CONFIG_USAGE && config_exit_code(result.r) == 2);
		assert(strstr(result.errors, lines[i].said));
		assert(strstr(result.errors, "\nTry \"ttmemd --help\".\n"));
		drop(&result);
	}
}

UNIT(help_and_version)
{
	struct result result;

	make_places();
	write_file("nonsense\n"); /* must not matter */
	result = PARSE("--help");
	assert(result.r == CONFIG_DONE && config_exit_code(result.r) == 0);
	for (size_t i = 0; i < config_keys_count; i++)
		assert(strstr(result.output, config_keys[i].name));
	drop(&result);
	result = PARSE("-h");
	assert(result.r == CONFIG_DONE && strstr(result.output, "usage: ttmemd"));
	drop(&result);
	result = PARSE("-V");
	assert(result.r == CONFIG_DONE && strncmp(result.output, "ttmemd 0.", 9) == 0);
	drop(&result);
}

UNIT(valid_files_are_read)
{
	check_text("", 0, NULL);
	check_text("\n\n", 0, NULL);
	check_text("# a comment\n   # another = one", 0, NULL);
	check_text("keep=1m", 0, NULL);
	check_text("\t keep \t=  3650d \r\n", 0, NULL);
	check_text("size-max = 1T\nscan-interval = 1d\nmetrics-processes = 1000\n", 0, NULL);
	check_text("size-max = 1048576\nkeep = 90\n", 0, NULL);
	check_text("flight = off\n", 0, NULL);
	check_text("flight = 10min,256M\n", 0, NULL);
	check_text("flight = 1d,64G\n", 0, NULL);
	check_text("http = 0.0.0.0:65535\n", 0, NULL);
	check_text("http = none\nlegacy-socket = none\n", 0, NULL);
	check_text("on-incident = mail -s \"x = y\" root # not a comment\n", 0, NULL);
	check_text("quiet = no\nlog-events = yes\nids = hex\nkeeper = no\n", 0, NULL);
}

/* Each has exactly one error. */
static const char *const wrong_texts[][2] = {
	{"nonsense\n", "a.conf:1: expects key = value, got \"nonsense\""},
	{"\n#\nnonsense = 1\n", "a.conf:3: unknown key \"nonsense\""},
	{"Socket = /a\n", "a.conf:1: unknown key \"Socket\"; did you mean socket?"},
	{"--socket = /a\n", "unknown key \"--socket\"; did you mean socket?"},
	{"config = /a\n", "unknown key \"config\""},
	{"check = yes\n", "unknown key \"check\""},
	{"= 1\n", "unknown key \"\""},
	{"\x1b[2J = 1\n", "unknown key \"\\x1b[2J\""},
	{"keep = 1d\nkeep = 1d\n", "a.conf:2: keep is set a second time"},
	{"on-incident = a\non-incident = b\n", "a.conf:2: on-incident is set a second"},
	{"quiet\n", "expects key = value, got \"quiet\""},
	{"quiet =\n", "quiet expects yes or no, got \"\""},
	{"quiet = true\n", "quiet expects yes or no, got \"true\""},
	{"quiet = yes # really\n", "quiet expects yes or no, got \"yes # really\""},
	{"ids = octal\n", "ids expects hex or decimal, got \"octal\""},
	{"keep = 0\n", "keep expects "},
	{"keep = 59s\n", " expects "},
	{"keep = 3651d\n", " expects "},
	{"keep = 1 d\n", " expects "},
	{"keep = 1dd\n", " expects "},
	{"keep = d\n", " expects "},
	{"keep = -1d\n", " expects "},
	{"keep = +1d\n", " expects "},
	{"keep = 1w\n", " expects "},
	{"keep = 1M\n", " expects "},
	{"keep = 213503982334602d\n", " expects "}, /* just overflows */
	{"keep = 99999999999999999999\n", " expects "},
	{"keep = 999999999999999999999999999d\n", " expects "},
	{"legacy-memory = 15M\n", " expects "},
	{"flight = 10m\n", "flight expects "},
	{"flight = ,256M\n", " expects "},
	{"flight = 10m,\n", " expects "},
	{"flight = 59s,256M\n", " expects "},
	{"flight = 10m,1023K\n", " expects "},
	{"flight = 10m,256M,1\n", " expects "},
	{"size-max = 1048575\n", "size-max expects a size"},
	{"size-max = 2T\n", " expects "},
	{"size-max = 512MB\n", " expects "},
	{"size-max = 512m\n", " expects "},
	{"size-max = 0x100000\n", " expects "},
	{"scan-interval = 0s\n", "scan-interval expects "},
	{"scan-interval = 2d\n", " expects "},
	{"metrics-processes = -1\n", "metrics-processes expects "},
	{"metrics-processes = 1001\n", "metrics-processes expects "},
	{"metrics-processes = 5s\n", " expects "},
	{"ready-fd = 2147483648\n", "ready-fd expects "},
	{"http = 5392\n", "http expects "},
	{"http = 127.0.0.1\n", " expects "},
	{"http = 127.0.0.1:\n", " expects "},
	{"http = 127.0.0.1:65536\n", " expects "},
	{"http = 127.0.0.1:0x50\n", " expects "},
	{"http = :5392\n", " expects "},
	{"http = localhost:5392\n", " expects "},
	{"http = ::1:5392\n", " expects "},
	{"http = []:5392\n", " expects "},
	{"http = [127.0.0.1]:5392\n", " expects "},
	{"http = 127.0.0.1.1:5392\n", " expects "},
	{"group = a b\n", "group expects "},
	{"group = a:b\n", " expects "},
	{"group = abcdefghijklmnopqrstuvwxyz1234567\n", " expects "},
	{"group =\n", " expects "},
	{"socket = none\n", "socket expects "},
	{"socket =\n", " expects "},
	{"state = none\n", "state expects "},
	{"token-file = none\n", " expects "},
	{"log = none\n", " expects "},
	{"log = a\x01"
	 "b\n",
	 ", got \"a\\x01b\""},
	{"on-incident =\n", ", got \"\""},
};

UNIT(wrong_files_are_explained)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong_texts); i++)
		check_text(wrong_texts[i][0], CONFIG_WRONG, wrong_texts[i][1]);
}

UNIT(too_long_files_and_values_are_refused)
{
	static char text[CONFIG_BYTES_MAX + 1];
	char line[300];

	memset(text, '#', sizeof(text));
	check_file(text, CONFIG_BYTES_MAX, 0, NULL);
	check_file(text, CONFIG_BYTES_MAX + 1, CONFIG_WRONG, "a.conf: longer than 65536 bytes");

	snprintf(line, sizeof(line), "socket = /%0106d\n", 0);
	check_text(line, 0, NULL);
	snprintf(line, sizeof(line), "socket = /%0107d\n", 0);
	check_text(line, CONFIG_WRONG, "socket expects a path of at most 107 bytes, got \"/0");
	snprintf(line, sizeof(line), "legacy-socket = /%0107d\n", 0);
	check_text(line, CONFIG_WRONG, "107 bytes, or none, got \"/0");
}

UNIT(a_nul_byte_is_refused)
{
	check_file("keep = 1d\0x\n", 12, CONFIG_WRONG, "a.conf:1: there is a NUL byte");
	check_file("#\n\0", 3, CONFIG_WRONG, "a.conf:2: there is a NUL byte");
}

UNIT(a_mistake_changes_nothing)
{
	struct config config;
	FILE *errors = fopen("/dev/null", "we");

	assert(config_init(&config) == 0);
	assert(config_parse_text(&config, "f", "http = x\n", 9, errors) == CONFIG_WRONG);
	assert(strcmp(config.http, "127.0.0.1:5392") == 0);
	config_deinit(&config);
	config_deinit(&config); /* does nothing */
	assert(fclose(errors) == 0);
}

UNIT(later_settings_win)
{
	struct result result;

	make_places();
	write_file("socket = /file\nlegacy-socket = /file\nkeep = 1d\nquiet = yes\n");
	result = PARSE_NOTHING();
	assert(result.r == 0 && result.config.quiet && result.config.keep_s == 86400);
	assert(strcmp(result.config.socket, "/file") == 0);
	assert(strcmp(result.config.legacy_socket, "/file") == 0);
	drop(&result);

	setenv("TTMEM_SOCKET", "/variable", 1);
	setenv("TT_ALLOC_SERVER_SOCKET", "none", 1);
	result = PARSE("--keep", "2d", "--quiet=no");
	assert(result.r == 0 && result.config.keep_s == 2 * 86400 && !result.config.quiet);
	assert(strcmp(result.config.socket, "/variable") == 0);
	assert(strcmp(result.config.legacy_socket, "none") == 0);
	drop(&result);

	result = PARSE("--socket", "/line", "--legacy-socket", "/line", "--socket", "/last");
	assert(result.r == 0);
	assert(strcmp(result.config.socket, "/last") == 0);
	assert(strcmp(result.config.legacy_socket, "/line") == 0);
	drop(&result);

	/*
	 * "none" tells clients not to look for a daemon: the daemon must not bind what they do not
	 * use.
	 */
	setenv("TTMEM_SOCKET", "none", 1);
	result = PARSE_NOTHING();
	assert(result.r == CONFIG_WRONG && config_exit_code(result.r) == 1);
	assert(strstr(result.errors, "TTMEM_SOCKET expects a path of"));
	drop(&result);
	result = PARSE("--socket", "/line");
	assert(result.r == 0);
	drop(&result);
}

UNIT(the_config_file_is_chosen_in_order)
{
	struct result result;

	make_places();
	result = PARSE_NOTHING(); /* the default file is optional */
	assert(result.r == 0);
	drop(&result);
	result = PARSE("--config", place_file);
	assert(result.r == CONFIG_WRONG && config_exit_code(result.r) == 1);
	assert(strstr(result.errors, "cannot read") && strstr(result.errors, place_file));
	drop(&result);

	write_file("keep = never\n");
	result = PARSE_NOTHING();
	assert(result.r == CONFIG_WRONG && strstr(result.errors, ":1: keep expects a time"));
	drop(&result);
	result = PARSE("--config", "none");
	assert(result.r == 0);
	drop(&result);
	result = PARSE("--config", "/dev/null");
	assert(result.r == 0);
	drop(&result);
	result = PARSE("--config", "/"); /* can be opened but not read */
	assert(result.r == CONFIG_WRONG && strstr(result.errors, "cannot read /: "));
	drop(&result);
	result = PARSE("--config", "/dev/zero"); /* endless */
	assert(result.r == CONFIG_WRONG && strstr(result.errors, "longer than"));
	drop(&result);
}

UNIT(check_prints_a_file)
{
	struct result first, second;

	make_places();
	first = PARSE("--check", "--keep", "36h", "--on-incident", "a = b", "--size-max", "3M",
		      "--http-details", "--scan-interval", "61");
	assert(first.r == CONFIG_DONE);
	assert(strstr(first.output, "\nkeep = 36h\n") && strstr(first.output, "\nsize-max = 3M\n"));
	assert(strstr(first.output, "\non-incident = a = b\n"));
	assert(strstr(first.output, "\n# log is not set\n"));
	assert(strstr(first.output, "\nscan-interval = 61s\n"));

	/* Parsing the output gives the same settings. */
	write_file(first.output);
	second = PARSE("--check");
	assert(second.r == CONFIG_DONE && strcmp(first.output, second.output) == 0);
	drop(&first);
	drop(&second);
}

UNIT(ready_fd_must_be_open)
{
	struct result result;

	make_places();
	result = PARSE("--ready-fd", "999");
	assert(result.r == CONFIG_WRONG && strstr(result.errors, "999 is not open"));
	drop(&result);
}
