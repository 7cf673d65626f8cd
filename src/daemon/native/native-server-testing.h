/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the tests of the native server share: the server with real sockets, books and a worker, and
 * everything else played. Helpers assert.
 */

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/testing/book-testing.h"
#include "daemon/native/native-server.h"
#include "daemon/registry/access.h"
#include "source/proc/proc.h"
#include "web/server/web.h"
#include "wire/native.h"

struct collector;
struct loop;
struct tracked;
struct worker;

#define NATIVE_TESTING_BOOKS 4

struct native_testing {
	struct loop *loop;
	struct worker *work;
	struct native *native;
	struct collector *collector;
	struct access access;
	struct web_provider provider;
	struct proc proc;
	struct testing_book books[NATIVE_TESTING_BOOKS];
	struct tracked *tracked[NATIVE_TESTING_BOOKS];
	size_t count;
	unsigned int offers, dumps;
	size_t dump_size;
	bool dump_waits; /* each dump, for the semaphore */
	sem_t dump_goes_on;
	char path[108];
};

void native_testing_open(struct native_testing *world);
void native_testing_close(struct native_testing *world);

/* A process of user @maker with a book of its own, and a buffer on each device in it. */
void native_testing_add(struct native_testing *world, uint32_t pid, uint32_t maker,
			uint32_t devices);

int native_testing_connect(struct native_testing *world);
struct native_counts native_testing_counts(struct native_testing *world);

/* Turns until @fd has something to read. */
void native_testing_wait(struct native_testing *world, int fd);

void native_testing_ask(int fd, enum native_kind kind, uint32_t want);

/* The next packet. Return: bytes of payload; @ret_fd: a descriptor, or -1. */
size_t native_testing_receive(struct native_testing *world, int fd, struct native_reply *ret_reply,
			      char *ret_payload, int *ret_fd);

/* A whole answer that is text. Return: its status. */
int native_testing_receive_text(struct native_testing *world, int fd, char **ret_text,
				size_t *ret_length);

/* An HTTP request, and a whole response. Return: its status. */
void native_testing_get(int fd, const char *target);
unsigned int native_testing_receive_http(struct native_testing *world, int fd, char **ret_text,
					 size_t *ret_length);

/* Whether the server has hung up. */
bool native_testing_is_closed(struct native_testing *world, int fd);
