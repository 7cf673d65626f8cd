/* SPDX-License-Identifier: Apache-2.0 */

/*
 * main() for a fuzzer that is built without libFuzzer: replays the files of its corpus, so that
 * every test run, with any compiler, tries every crash again that was ever found.
 *
 * Each input has its own child, so that a crash names its file and the others still run.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* As large as any input worth keeping in the repository. */
#define REPLAY_BYTES_MAX (64u << 20)

/* Ends a hang. libFuzzer's own limit for one input is shorter. */
#define REPLAY_SECONDS 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int replay_failed, replay_passed;

/* Return: the whole file, or NULL with errno set. */
static uint8_t *replay_read(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *data = NULL;
	struct stat st;
	size_t done = 0;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size <= (off_t)REPLAY_BYTES_MAX)
		/* Exactly as long as the file, so that ASan sees a read past its end. */
		data = malloc(st.st_size ? (size_t)st.st_size : 1);
	while (data && done < (size_t)st.st_size) {
		ssize_t n = read(fd, data + done, (size_t)st.st_size - done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	close(fd);
	*ret_size = done;
	return data;
}

static void replay_one(const char *name, const uint8_t *data, size_t size)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(REPLAY_SECONDS);
		LLVMFuzzerTestOneInput(data, size);
		exit(EXIT_SUCCESS); /* not _exit: leaks are findings too */
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0) {
		replay_passed++;
		return;
	}
	replay_failed++;
	printf("FAIL %s (wait status 0x%x)\n", name, pid > 0 ? (unsigned int)status : 0);
}

static void replay_file(const char *path)
{
	size_t size = 0;
	uint8_t *data = replay_read(path, &size);

	if (data) {
		replay_one(path, data, size);
	} else {
		replay_failed++;
		printf("FAIL %s: %s\n", path, strerror(errno));
	}
	free(data);
}

static void replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[PATH_MAX];

	if (!dir)
		return; /* a new fuzzer without a corpus: the empty input was tried */
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		replay_file(path);
	}
	closedir(dir);
}

/* The whole corpus counts as one test; the line's format is in unit.c. */
static void replay_record(const char *name)
{
	const char *path = getenv("TTMEM_RESULTS");
	FILE *file = path && *path ? fopen(path, "ae") : NULL;

	if (file) {
		fprintf(file, "%s %d %d 0\n", name, !replay_failed, !!replay_failed);
		fclose(file);
	}
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	struct stat st;

	replay_one("(empty input)", (const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st) == 0 && S_ISREG(st.st_mode))
			replay_file(argv[i]);
		else
			replay_folder(argv[i]);
	}

	printf("%u inputs passed, %u failed\n", replay_passed, replay_failed);
	replay_record(slash ? slash + 1 : argv[0]);
	return replay_failed ? 1 : 0;
}
