/* SPDX-License-Identifier: Apache-2.0 */

/* Combines the settings of all sources, in order of precedence. */

#include "daemon/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "daemon/config/config-private.h"

/* Options that are not settings; the values of settings follow them. */
enum {
	OPTION_CONFIG = 1000,
	OPTION_CHECK,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_KEYS, /* + index in the table */
};

#define SETTINGS_MAX 32u /* the limit of the table */

/* The command line. The texts belong to argv. */
struct line {
	const char *given[SETTINGS_MAX]; /* one per setting, NULL = not given */
	const char *file;
	bool check, help, version;
	bool is_old_name; /* the program was called by the old server's name */
};

int config_init(struct config *config)
{
	static const char *const texts[][2] = {
		{"legacy-socket", CONFIG_LEGACY_SOCKET},
		{"legacy-memory", "2G"},
		{"http", "127.0.0.1:5392"},
		{"keep", "30d"},
		{"size-max", "512M"},
		{"flight", "10m,256M"},
		{"keeper", "yes"},
		{"metrics-processes", "20"},
		{"otlp-interval", "30s"},
		{"scan-interval", "30s"},
		{"group", "ttmem"},
	};

	*config = CONFIG_NULL;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *name = texts[i][0];
		int r = config_keys_set(config, config_keys_find(name, strlen(name)), texts[i][1]);

		if (r != 0)
			return -ENOMEM; /* the defaults are valid, so memory ran out */
	}
	return 0;
}

void config_deinit(struct config *config)
{
	free(config->socket);
	free(config->legacy_socket);
	free(config->http);
	free(config->state);
	free(config->log);
	free(config->on_incident);
	free(config->http_hosts);
	free(config->skip_frames);
	free(config->fleet);
	free(config->fleet_prometheus);
	free(config->otlp);
	free(config->token_file);
	free(config->group);
	*config = CONFIG_NULL;
}

void config_print(const struct config *config, FILE *output)
{
	for (size_t i = 0; i < config_keys_count; i++)
		config_keys_print(config, &config_keys[i], output);
}

int config_exit_code(int result)
{
	if (result == CONFIG_DONE)
		return 0;
	return result == CONFIG_USAGE ? 2 : 1;
}

static void print_option(FILE *output, char letter, const char *name, const char *argument,
			 const char *help)
{
	char left[64];

	(void)snprintf(left, sizeof(left), "%c%c%s--%s%s", letter ? '-' : ' ',
		       letter ? letter : ' ', letter ? ", " : "  ", name,
		       argument); /* the longest is half as long */
	fprintf(output, "  %-34s %s\n", left, help);
}

static void print_help(const struct line *line, FILE *output)
{
	if (line->is_old_name)
		fputs("An old name of ttmemd, which prints the old server's lines.\n"
		      "What replaces each old tool: share/doc/ttmem/from-the-old-tools.md\n\n",
		      output);
	fputs("usage: ttmemd [OPTION]...\n\n"
	      "Keeps track of the device memory of all processes of this machine.\n\n",
	      output);
	for (size_t i = 0; i < config_keys_count; i++) {
		const struct config_key *key = &config_keys[i];
		char argument[32];

		(void)snprintf(argument, sizeof(argument), key->is_switch ? "[=%s]" : " %s",
			       key->argument); /* the longest is half as long */
		print_option(output, key->letter, key->name, argument, key->help);
	}
	print_option(output, 0, "config", " FILE",
		     "settings, one \"key = value\" a line; none = no file");
	print_option(output, 0, "check", "", "print all settings as such a file and exit");
	print_option(output, 'h', "help", "", "this text");
	print_option(output, 'V', "version", "", "the version");
}

__attribute__((format(printf, 2, 3))) static int wrong_line(FILE *errors, const char *format, ...)
{
	char text[512], shown[1024];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments); /* long words are truncated */
	va_end(arguments);
	text_escape(text, shown, sizeof(shown));
	fprintf(errors, "ttmemd: %s\nTry \"ttmemd --help\".\n", shown);
	return CONFIG_USAGE;
}

static int unknown_option(FILE *errors, const char *word)
{
	const struct config_key *guess =
		strncmp(word, "--", 2) == 0 ? config_keys_guess(word + 2) : NULL;

	if (guess)
		return wrong_line(errors, "unknown option \"%s\"; did you mean --%s?", word,
				  guess->name);
	return wrong_line(errors, "unknown option \"%s\"", word);
}

/* @option: getopt's number of an option that lacks its value. */
static int missing_value(FILE *errors, const char *word, int option)
{
	return wrong_line(errors, "%s expects %s, got nothing", word,
			  option == OPTION_CONFIG ? "a path, or none"
						  : config_keys[option - OPTION_KEYS].expects);
}

/* Builds getopt's table from ours. @ret_long has room for all of it. */
static void make_options(struct option *ret_long)
{
	static const struct option others[] = {
		{"config", required_argument, NULL, OPTION_CONFIG},
		{"check", no_argument, NULL, OPTION_CHECK},
		{"help", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{0},
	};

	for (size_t i = 0; i < config_keys_count; i++)
		ret_long[i] = (struct option){
			.name = config_keys[i].name,
			.has_arg = config_keys[i].is_switch ? optional_argument : required_argument,
			.val = OPTION_KEYS + (int)i,
		};
	memcpy(ret_long + config_keys_count, others, sizeof(others));
}

/* -q is the only setting with a short option. */
static int quiet_option(void)
{
	return OPTION_KEYS + (int)(config_keys_find("quiet", 5) - config_keys);
}

static void read_setting(struct line *line, const char *name, const char *value)
{
	line->given[config_keys_find(name, strlen(name)) - config_keys] = value;
}

/* Called by an old server's name, it is that server, unless an option says otherwise. */
static void read_old_name(struct line *line, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	line->is_old_name = strncmp(name, "allocation_server", strlen("allocation_server")) == 0;
	if (!line->is_old_name)
		return;
	read_setting(line, "log-events", "yes");
	if (strcmp(name, "allocation_server_enhanced") == 0)
		read_setting(line, "log-history", "yes");
}

static int read_line(struct line *line, int argc, char **argv, FILE *errors)
{
	struct option options[SETTINGS_MAX + 5];
	int option;

	make_options(options);
	if (argc > 0)
		read_old_name(line, argv[0]);
	optind = 0; /* restart the scan, also on a second call */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:qhV", options, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (option == 'q')
			option = quiet_option();
		if (option >= OPTION_KEYS) {
			line->given[option - OPTION_KEYS] = optarg ? optarg : "yes";
			continue;
		}
		switch (option) {
		case OPTION_CONFIG:
			line->file = optarg;
			break;
		case OPTION_CHECK:
			line->check = true;
			break;
		case 'h':
		case OPTION_HELP:
			line->help = true;
			return 0; /* whatever else was given */
		case 'V':
		case OPTION_VERSION:
			line->version = true;
			return 0;
		case ':':
			return missing_value(errors, word, optopt);
		default:
			/* Within a group of letters getopt has not advanced past the word. */
			if (optopt > 0 && optopt < OPTION_CONFIG)
				return wrong_line(errors, "unknown option \"-%c\"", optopt);
			if (optopt > 0)
				return wrong_line(errors, "%.*s takes no value, got \"%s\"",
						  (int)strcspn(word, "="), word,
						  strchr(word, '=') + 1);
			return unknown_option(errors, word);
		}
	}
	if (optind < argc)
		return wrong_line(errors, "takes only options, got \"%s\"", argv[optind]);
	return 0;
}

/*
 * Reads a whole file, which the caller frees; of a file that is too long, just enough to detect
 * that.
 */
static int read_whole(const char *path, char **ret_text, size_t *ret_length, struct stat *ret_stat)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	CLEANUP_FREE char *text = NULL;
	ssize_t length;

	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	text = malloc(CONFIG_BYTES_MAX + 2);
	if (!text)
		return -ENOMEM;
	length = small_file_read_fd(fd, text, CONFIG_BYTES_MAX + 2);
	if (length < 0)
		return (int)length;
	*ret_text = cleanup_steal(text);
	*ret_length = (size_t)length;
	return 0;
}

/* A program runs with the daemon's rights: only who has these may say which. */
static int check_writers(const struct config *config, const char *path, const struct stat *st,
			 FILE *errors)
{
	if (!config->on_incident ||
	    ((st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH))))
		return 0;
	fprintf(errors,
		"ttmemd: %s: sets on-incident, which starts programs, but user %u owns it and its "
		"mode is %04o: others must not be able to write it (chown root, chmod go-w)\n",
		path, st->st_uid, st->st_mode & 07777);
	return CONFIG_WRONG;
}

static int parse_file(struct config *config, const struct line *line, const char *usual,
		      FILE *errors)
{
	const char *path = line->file ? line->file : usual;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	struct stat st = {0};
	int r;

	if (strcmp(path, CONFIG_NONE) == 0)
		return 0;
	r = read_whole(path, &text, &length, &st);
	if (r == -ENOENT && !line->file)
		return 0; /* the default file is optional */
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		fprintf(errors, "ttmemd: cannot read %s: %s\n", path, strerror(-r));
		return CONFIG_WRONG;
	}
	r = config_parse_text(config, path, text, length, errors);
	return r == 0 ? check_writers(config, path, &st, errors) : r;
}

/* A variable is ignored if the command line overrides it. */
static int parse_variable(struct config *config, const struct line *line, const char *variable,
			  const char *name, FILE *errors)
{
	const struct config_key *key = config_keys_find(name, strlen(name));
	const char *text = secure_getenv(variable);
	char shown[1024];
	int r;

	if (!text || !*text || line->given[key - config_keys])
		return 0;
	r = config_keys_set(config, key, text);
	if (r == CONFIG_WRONG) {
		text_escape(text, shown, sizeof(shown));
		fprintf(errors, "ttmemd: %s expects %s, got \"%s\"; use --%s\n", variable,
			key->expects, shown, name);
	}
	return r;
}

static int parse_given(struct config *config, const struct line *line, FILE *errors)
{
	for (size_t i = 0; i < config_keys_count; i++) {
		const struct config_key *key = &config_keys[i];
		int r = line->given[i] ? config_keys_set(config, key, line->given[i]) : 0;

		if (r == CONFIG_WRONG)
			return wrong_line(errors, "--%s expects %s, got \"%s\"", key->name,
					  key->expects, line->given[i]);
		if (r != 0)
			return r;
	}
	return 0;
}

static int parse_all(struct config *config, const struct config_places *places,
		     const struct line *line, FILE *errors)
{
	int r = config_init(config);

	if (r == 0)
		r = parse_file(config, line, places->file, errors);
	if (r == 0)
		r = parse_variable(config, line, "TTMEM_SOCKET", "socket", errors);
	if (r == 0)
		r = parse_variable(config, line, "TT_ALLOC_SERVER_SOCKET", "legacy-socket", errors);
	if (r == 0)
		r = parse_variable(config, line, "TTMEM_SKIP_FRAMES", "skip-frames", errors);
	if (r == 0)
		r = parse_given(config, line, errors);
	if (r == 0)
		r = config_places_choose(config, places, errors);
	/* Check now: otherwise whoever waits for the line would wait forever. */
	if (r == 0 && config->ready_fd >= 0 && fcntl(config->ready_fd, F_GETFD) < 0) {
		fprintf(errors, "ttmemd: ready-fd: %d is not open\n", config->ready_fd);
		r = CONFIG_WRONG;
	}
	return r;
}

int config_parse_at(struct config *config, const struct config_places *places, int argc,
		    char **argv, FILE *streams[2])
{
	FILE *output = streams[0], *errors = streams[1];
	struct line line = {0};
	int r;

	*config = CONFIG_NULL;
	r = read_line(&line, argc, argv, errors);
	if (r != 0)
		return r;
	if (line.help || line.version) {
		if (line.help)
			print_help(&line, output);
		else
			fputs("ttmemd " DAEMON_VERSION "\n", output);
		return CONFIG_DONE;
	}
	r = parse_all(config, places, &line, errors);
	config->is_old_name = line.is_old_name;
	if (r == 0 && line.check) {
		config_print(config, output);
		return CONFIG_DONE;
	}
	return r;
}

/**
 * config_parse() - read file, environment and command line
 * @config: filled; call config_deinit() whatever is returned
 * @argc: as main() gets it
 * @argv: likewise
 * @output: for help, version or the settings
 * @errors: for error messages
 *
 * Return: 0, an outcome, or a negative errno.
 */
int config_parse(struct config *config, int argc, char **argv, FILE *output, FILE *errors)
{
	return config_parse_at(config, &config_places_usual, argc, argv,
			       (FILE *[2]){output, errors});
}
