/* SPDX-License-Identifier: Apache-2.0 */

/* Loads play.so as Python loads its modules: what comes in is for nobody else to see. */

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*play)(void) = module ? (int (*)(void))dlsym(module, "play") : NULL;

	if (!play) {
		puts(dlerror());
		return 9;
	}
	return play();
}
