/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the tests of the native server: the server with real sockets, books and a worker;
 * everything else is faked. Helpers assert.
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
#define NATIVE_TESTING_DUMPS 8

struct native_testing {
	struct loop *loop;
	struct worker *work;
	struct native *native;
	struct collector *collector;
	struct namespaces namespaces;
	struct access access;
	struct web_provider provider;
	struct proc proc;
	struct testing_book books[NATIVE_TESTING_BOOKS];
	struct tracked *tracked[NATIVE_TESTING_BOOKS];
	size_t count;
	unsigned int offers, links, dumps;
	uint32_t link_want;                        /* of the last one */
	uint32_t dump_users[NATIVE_TESTING_DUMPS]; /* who asked for the first */
	size_t dump_size;
	bool dump_waits; /* each dump, for the semaphore */
	sem_t dump_goes_on;
	char path[108];
};

void native_testing_open(struct native_testing *world);
void native_testing_close(struct native_testing *world);

/* Adds a process of user @maker with its own book and one buffer on each device. */
void native_testing_add(struct native_testing *world, uint32_t pid, uint32_t maker,
			uint32_t devices);

int native_testing_connect(struct native_testing *world);
struct native_counts native_testing_counts(struct native_testing *world);

/* Runs the loop until @fd is readable. */
void native_testing_wait(struct native_testing *world, int fd);

void native_testing_ask(int fd, enum native_kind kind, uint32_t want);

/* Receives the next packet. Return: bytes of payload; @ret_fd: a descriptor, or -1. */
size_t native_testing_receive(struct native_testing *world, int fd, struct native_reply *ret_reply,
			      char *ret_payload, int *ret_fd);

/* Receives a whole answer that is text. Return: its status. */
int native_testing_receive_text(struct native_testing *world, int fd, char **ret_text,
				size_t *ret_length);

/* Sends an HTTP request; receives a whole response. Return: its status. */
void native_testing_get(int fd, const char *target);
unsigned int native_testing_receive_http(struct native_testing *world, int fd, char **ret_text,
					 size_t *ret_length);

/* Whether the server has closed the connection. */
bool native_testing_is_closed(struct native_testing *world, int fd);
