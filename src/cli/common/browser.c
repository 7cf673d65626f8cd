/* SPDX-License-Identifier: Apache-2.0 */

/* The desktop knows which browser it is. */

#include "cli/common/browser.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/child.h"
#include "base/text.h"
#include "cli/common/options.h"

#define BROWSER_PATIENCE_MS 3000 /* until the opener has failed, if it does */

const char *browser_default_user(void)
{
	return geteuid() == 0 ? getenv("SUDO_UID") : NULL;
}

int browser_find_user(const char *command, const char *text, uint32_t *ret_user)
{
	const struct passwd *entry;
	uint64_t number;

	if (text_parse_u64(text, &number) == 0 && number < UINT32_MAX) {
		*ret_user = (uint32_t)number;
		return 0;
	}
	entry = getpwnam(text); /* there are no other threads */
	if (!entry)
		return options_mistake(command, "there is no user \"%s\"", text);
	*ret_user = entry->pw_uid;
	return 0;
}

static bool browser_has_desktop(uint32_t user)
{
	return isatty(STDOUT_FILENO) && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) &&
	       user == geteuid();
}

void browser_open(const char *command, const char *link, uint32_t user)
{
	const char *const arguments[] = {"xdg-open", link, NULL};
	const struct child_setup setup = {
		.program = "xdg-open",
		.arguments = arguments,
		.input = -1,
		.extra = -1,
	};
	struct child child = CHILD_NULL;

	if (!browser_has_desktop(user))
		return;
	if (child_start(&child, NULL, &setup) == 0) {
		if (!child_wait(&child, BROWSER_PATIENCE_MS)) {
			child_forget(&child);
			return;
		}
		if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0)
			return;
	}
	fprintf(stderr, "ttmem %s: xdg-open cannot open it: open the link yourself\n", command);
}
