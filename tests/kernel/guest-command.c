/* SPDX-License-Identifier: Apache-2.0 */

/* Programs beside the module's tests; the header tells what for. */

#include "guest-command.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define COMMAND_OUTPUT_MAX (16u << 20) /* a hostile book can make the command tell a lot */

void command_hold(struct command_holder *ret_holder, const char *how, const char *sizes[3],
		  uid_t user)
{
	int input[2], output[2];
	char line[16] = "";

	assert(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
	ret_holder->pid = fork();
	assert(ret_holder->pid >= 0);
	if (ret_holder->pid == 0) {
		assert(dup2(input[0], 0) == 0 && dup2(output[1], 1) == 1);
		assert(setgid(user) == 0 && setuid(user) == 0);
		execl("/bin/kernel-holder", "kernel-holder", how, "30", "0", sizes[0], sizes[1],
		      sizes[2], (char *)NULL);
		_exit(1);
	}
	close(input[0]);
	close(output[1]);
	assert(read(output[0], line, 5) == 5 && strncmp(line, "ready", 5) == 0);
	close(output[0]);
	ret_holder->input = input[1];
}

void command_release(struct command_holder *holder)
{
	int status;

	close(holder->input);
	assert(waitpid(holder->pid, &status, 0) == holder->pid && status == 0);
}

const char *command_output(const char *line, int *ret_status)
{
	static char text[COMMAND_OUTPUT_MAX];
	FILE *file = popen(line, "re");
	int status;
	size_t n;

	assert(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	status = pclose(file);
	if (ret_status)
		*ret_status = status;
	return text;
}
