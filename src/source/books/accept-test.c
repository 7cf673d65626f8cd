/* SPDX-License-Identifier: Apache-2.0 */

/* Offers of this process to itself: what is taken, and every reason to refuse one. */

#include "source/books/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "source/books/verify-book.h"
#include "wire/link.h"
#include "wire/offer.h"

static struct proc proc;
static struct testing_book book;
static struct accept_peer *peer;
static int listening = -1, client = -1;

static const struct offer offer = {OFFER_MAGIC, OFFER_VERSION, sizeof(struct offer), 0};

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

/* A book of this process, as the kernel sees it, and a connection. */
static void begin(void)
{
	struct book_header *header;

	assert(proc_open(&proc) == 0);
	testing_book_open(&book);
	header = (void *)book.base;
	header->start_ticks = proc_start_ticks(&proc, (uint32_t)getpid());
	listening = accept_listen(unit_path("s"));
	assert(listening >= 0);
	client = connect_to(unit_path("s"));
	assert(accept_peer_new(listening, &peer) == 0);
}

/* After a refusal the peer is of no further use. */
static void hang_up(void)
{
	peer = accept_peer_free(peer);
	if (client >= 0)
		close(client);
	client = -1;
}

static void connect_again(void)
{
	hang_up();
	client = connect_to(unit_path("s"));
	assert(accept_peer_new(listening, &peer) == 0);
}

static void end(void)
{
	hang_up();
	close(listening);
	assert(unlink(unit_path("s")) == 0);
	testing_book_deinit(&book);
	proc_close(&proc);
}

/* Sends these bytes and descriptors, and receives them. */
static int give(const void *bytes, size_t length, const int *fds, size_t count)
{
	assert(fd_pass_send(client, bytes, length, fds, count, 0) == 0);
	return accept_receive(peer, &proc);
}

UNIT(a_path_has_a_longest_and_is_used_once)
{
	struct sockaddr_un address;
	char path[sizeof(address.sun_path) + 1] = "";
	int fd;

	assert(chdir(unit_dir()) == 0);
	memset(path, 'a', sizeof(address.sun_path));
	assert(accept_listen(path) == -ENAMETOOLONG);
	path[sizeof(address.sun_path) - 1] = '\0';
	fd = accept_listen(path);
	assert(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && accept_listen(path) == -EADDRINUSE);
	assert(accept_peer_new(fd, &peer) == -EAGAIN && !peer);
	assert(close(fd) == 0 && accept_peer_new(fd, &peer) == -EBADF);
	assert(!accept_peer_free(NULL));
}

UNIT(the_owner_hands_its_book_over)
{
	int fds[2], other;

	begin();
	assert(peer->pid == (uint32_t)getpid() && peer->uid == getuid() && peer->pid_fd == -1);
	assert(accept_receive(peer, &proc) == -EAGAIN && !peer->book);
	fds[0] = book.fd;
	fds[1] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert(give(&offer, sizeof(offer), fds, 2) == 0);
	assert(peer->book && peer->book->alive && peer->book->holder == (uint32_t)getpid());
	assert(peer->book->owner.id.pid == (uint32_t)getpid() && peer->book->owner.comm[0]);
	assert(peer->book->owner.real_uid == getuid() && peer->pid_fd >= 0);
	/* What we keep cannot be written to. */
	assert((fcntl(peer->book->file.fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	close(fds[1]);
	end();
	/* A descriptor that is no pidfd, or one of another process, is replaced. */
	begin();
	other = (int)syscall(SYS_pidfd_open, getppid(), 0);
	fds[0] = book.fd;
	fds[1] = other >= 0 ? other : listening;
	assert(give(&offer, sizeof(offer), fds, 2) == 0);
	assert(peer->pid_fd >= 0 && syscall(SYS_pidfd_send_signal, peer->pid_fd, 0, NULL, 0) == 0);
	if (other >= 0)
		close(other);
	end();
	begin();
	assert(give(&offer, sizeof(offer), &book.fd, 1) == 0 && peer->pid_fd >= 0);
	end();
}

UNIT(what_is_not_an_offer_is_refused)
{
	struct offer wrong = offer;
	static char large[NATIVE_REQUEST_MAX + 1];

	begin();
	assert(give("x", 1, NULL, 0) == ACCEPT_BAD_MESSAGE);
	assert(give(&offer, sizeof(offer), NULL, 0) == ACCEPT_BAD_MESSAGE);
	assert(give(&offer, sizeof(offer) - 1, &book.fd, 1) == ACCEPT_BAD_MESSAGE);
	assert(give(large, sizeof(offer) + 1, &book.fd, 1) == ACCEPT_BAD_MESSAGE);
	wrong.magic++;
	assert(give(&wrong, sizeof(wrong), &book.fd, 1) == ACCEPT_BAD_MESSAGE);
	wrong = offer;
	wrong.version++;
	assert(give(&wrong, sizeof(wrong), &book.fd, 1) == ACCEPT_BAD_MESSAGE);
	assert(give(&offer, sizeof(offer), (const int[]){book.fd, book.fd, book.fd}, 3) ==
	       ACCEPT_BAD_MESSAGE);
	assert(give(large, sizeof(large), NULL, 0) == ACCEPT_BAD_MESSAGE && !peer->book);
	close(client);
	client = -1;
	assert(accept_receive(peer, &proc) == ACCEPT_CLOSED);
	end();
}

UNIT(requests_are_told_from_offers)
{
	static const char http[] = "GET /api/v1/smi HTTP/1.1\r\n\r\n";
	static struct accept_request request;
	struct native_request native = {.magic = NATIVE_REQUEST_MAGIC,
					.version = NATIVE_VERSION,
					.size = sizeof(native),
					.kind = NATIVE_LIST};

	begin();
	assert(fd_pass_send(client, http, sizeof(http) - 1, NULL, 0, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_REQUEST);
	assert(request.length == sizeof(http) - 1 && !memcmp(request.bytes, http, request.length));
	assert(fd_pass_send(client, &native, sizeof(native), NULL, 0, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_REQUEST);
	/* Only an offer has a descriptor. */
	assert(fd_pass_send(client, &native, sizeof(native), &book.fd, 1, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_BAD_MESSAGE);
	assert(give(http, sizeof(http) - 1, NULL, 0) == ACCEPT_BAD_MESSAGE);
	assert(accept_receive_any(peer, &proc, &request) == -EAGAIN);
	end();
}

UNIT(the_beginning_of_a_link_is_told_from_offers_and_requests)
{
	static struct accept_request request;
	struct link_hello hello = {.want = LINK_WANT_BOOKS};

	begin();
	link_head_init(&hello.head, LINK_HELLO, sizeof(hello));
	assert(fd_pass_send(client, &hello, sizeof(hello), NULL, 0, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_LINK);
	assert(request.length == sizeof(hello) && !memcmp(request.bytes, &hello, sizeof(hello)));
	/* Who only takes offers takes no link. */
	assert(give(&hello, sizeof(hello), NULL, 0) == ACCEPT_BAD_MESSAGE);
	/* Another kind does not begin one, nor does another version; and nothing comes with it. */
	link_head_init(&hello.head, LINK_SYNC, sizeof(hello));
	assert(fd_pass_send(client, &hello, sizeof(hello), NULL, 0, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_BAD_MESSAGE);
	link_head_init(&hello.head, LINK_HELLO, sizeof(hello));
	hello.head.version++;
	assert(fd_pass_send(client, &hello, sizeof(hello), NULL, 0, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_BAD_MESSAGE);
	hello.head.version--;
	assert(fd_pass_send(client, &hello, sizeof(hello), &book.fd, 1, 0) == 0);
	assert(accept_receive_any(peer, &proc, &request) == ACCEPT_BAD_MESSAGE);
	end();
}

UNIT(files_that_are_no_books_are_refused)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
	int fd;

	begin();
	fd = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert(fd >= 0 && ftruncate(fd, BOOK_SIZE_MIN) == 0);
	assert(give(&offer, sizeof(offer), &fd, 1) == VERIFY_BOOK_NOT_SEALED);
	connect_again();
	assert(fcntl(fd, F_ADD_SEALS, seals) == 0);
	assert(give(&offer, sizeof(offer), &fd, 1) == ACCEPT_NO_BOOK && !peer->book);
	connect_again();
	assert(give(&offer, sizeof(offer), &listening, 1) == VERIFY_BOOK_NOT_A_FILE);
	close(fd);
	end();
}

UNIT(a_book_of_another_process_is_refused)
{
	struct book_header *header;

	begin();
	header = (void *)book.base;
	header->pid++;
	assert(give(&offer, sizeof(offer), &book.fd, 1) == ACCEPT_NOT_THE_OWNER);
	connect_again();
	header->pid--;
	header->start_ticks += 1000;
	assert(give(&offer, sizeof(offer), &book.fd, 1) == ACCEPT_NOT_THE_OWNER && !peer->book);
	header->start_ticks -= 1000;
	connect_again();
	/* From outside of our pid namespace. */
	peer->pid = 0;
	assert(give(&offer, sizeof(offer), &book.fd, 1) == ACCEPT_NOT_THE_OWNER);
	connect_again();
	assert(give(&offer, sizeof(offer), &book.fd, 1) == 0 && peer->book);
	end();
}

/* Of one that has exited, the user who made the file counts. */
UNIT(a_book_of_an_exited_process_is_its_users)
{
	begin();
	peer->pid = INT32_MAX;
	peer->uid++;
	assert(give(&offer, sizeof(offer), &book.fd, 1) == ACCEPT_NOT_THE_OWNER);
	connect_again();
	peer->pid = INT32_MAX;
	assert(give(&offer, sizeof(offer), &book.fd, 1) == 0);
	assert(peer->pid_fd == -1 && peer->book->alive && peer->book->holder == INT32_MAX);
	assert(peer->book->owner.id.pid == INT32_MAX &&
	       peer->book->owner.ns_pid == (uint32_t)getpid());
	assert(peer->book->owner.real_uid == getuid() && peer->book->owner.saved_uid == getuid());
	assert(strcmp(peer->book->owner.comm, "test") == 0);
	end();
}

static void send_notice(struct offer_notice notice, const int *fds, size_t count)
{
	assert(fd_pass_send(client, &notice, sizeof(notice), fds, count, 0) == 0);
}

UNIT(news_are_of_failed_allocations)
{
	const struct offer_notice good = {OFFER_NOTICE_MAGIC, OFFER_VERSION,
					  sizeof(struct offer_notice), OFFER_NOTICE_FAILED};
	struct offer_notice wrong = good;
	int program = 7;

	begin();
	assert(accept_news(peer->fd, &program) == -EAGAIN && program == -1);
	send_notice(good, NULL, 0);
	assert(accept_news(peer->fd, &program) == 0 && program == -1);
	send_notice(good, &book.fd, 1);
	assert(accept_news(peer->fd, &program) == 0 && program >= 0 && close(program) == 0);
	wrong.magic++;
	send_notice(wrong, &book.fd, 1);
	assert(accept_news(peer->fd, &program) == -EBADMSG && program == -1);
	wrong = good;
	wrong.version++;
	send_notice(wrong, NULL, 0);
	assert(accept_news(peer->fd, &program) == -EBADMSG);
	wrong = good;
	wrong.what++;
	send_notice(wrong, NULL, 0);
	assert(accept_news(peer->fd, &program) == -EBADMSG);
	assert(send(client, &good, sizeof(good) - 1, 0) == sizeof(good) - 1);
	assert(accept_news(peer->fd, &program) == -EBADMSG);
	close(client);
	client = -1;
	assert(accept_news(peer->fd, &program) == -EPIPE);
	end();
}

UNIT(each_refusal_has_its_text)
{
	static const int results[] = {ACCEPT_BAD_MESSAGE, ACCEPT_NO_BOOK, ACCEPT_NOT_THE_OWNER,
				      ACCEPT_CLOSED, VERIFY_BOOK_NOT_SEALED};

	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < i; k++)
			assert(strcmp(accept_strerror(results[i]), accept_strerror(results[k])) !=
			       0);
	}
	assert(strstr(accept_strerror(ACCEPT_NOT_THE_OWNER), "another process"));
	assert(strstr(accept_strerror(-ENOENT), "No such file"));
}
