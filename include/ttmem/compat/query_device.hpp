/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_COMPAT_QUERY_DEVICE_HPP
#define TTMEM_COMPAT_QUERY_DEVICE_HPP

/*
 * query_device() of the old client: how much of a device is in use by *all* processes. ttmemd answers in
 * place of the old server, on the same socket and in the same 72 bytes. Without a server the result is
 * this process's own figures, and says so.
 */

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

namespace tt
{
namespace tt_metal
{

struct DeviceStats {
	std::uint64_t dram = 0;
	std::uint64_t l1 = 0;
	std::uint64_t l1_small = 0;
	std::uint64_t trace = 0;
	bool machine_wide = false; /* true: the server's answer; false: this process alone */
};

namespace detail
{

/* The old server's request and response; the zeros between the fields are part of it. */
struct QueryMessage {
	std::uint8_t type;
	std::uint8_t zero_1[3];
	std::int32_t device;
	std::uint64_t size;
	std::uint8_t buffer_type;
	std::uint8_t zero_2[3];
	std::int32_t pid;
	std::uint64_t buffer;
	std::uint64_t timestamp;
	std::uint64_t dram, l1, l1_small, trace;
};
static_assert(sizeof(QueryMessage) == 72, "what goes over the socket");
static_assert(offsetof(QueryMessage, dram) == 40, "what goes over the socket");

constexpr std::uint8_t query_asks = 3;
constexpr std::uint8_t query_answers = 4;
constexpr std::int64_t query_patience_ms = 900; /* below the promised second */

inline std::int64_t query_now_ms() noexcept
{
	struct timespec now = {};

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

/* A descriptor that is closed at the end of the scope, without touching errno. */
class QuerySocket
{
      public:
	explicit QuerySocket(int opened) noexcept : fd(opened)
	{
	}

	~QuerySocket()
	{
		int saved_errno = errno;

		if (fd >= 0)
			(void)close(fd); /* nothing was written that could be lost */
		errno = saved_errno;
	}

	QuerySocket(const QuerySocket &) = delete;
	QuerySocket &operator=(const QuerySocket &) = delete;

	const int fd;
};

/* Where the server listens; nullptr if it must not be asked, or the path is too long. */
inline const char *query_path() noexcept
{
	const char *path = secure_getenv("TT_ALLOC_SERVER_SOCKET");

	if (!path || !*path)
		path = "/tmp/tt_allocation_server.sock";
	if (std::strcmp(path, "none") == 0 || std::strlen(path) >= sizeof(sockaddr_un::sun_path))
		return nullptr;
	return path;
}

/* Fails at once if the backlog is full: the server is then too busy to wait for. */
inline bool query_connect(int fd) noexcept
{
	struct sockaddr_un address = {};
	const char *path = query_path();

	if (!path || fd < 0)
		return false;
	address.sun_family = AF_UNIX;
	std::memcpy(address.sun_path, path, std::strlen(path) + 1);
	return connect(fd, reinterpret_cast<const struct sockaddr *>(&address), sizeof(address)) ==
	       0;
}

/* Reads until the answer is complete. False on time-out, or if the server hangs up. */
inline bool query_receive(int fd, QueryMessage &answer) noexcept
{
	const std::int64_t deadline = query_now_ms() + query_patience_ms;
	auto *bytes = reinterpret_cast<unsigned char *>(&answer);
	std::size_t got = 0;

	while (got < sizeof(answer)) {
		struct pollfd waiting = {fd, POLLIN, 0};
		const std::int64_t left = deadline - query_now_ms();

		if (left <= 0)
			return false;
		const int ready = poll(&waiting, 1, static_cast<int>(left));
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		const ssize_t n = recv(fd, bytes + got, sizeof(answer) - got, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return false;
		got += static_cast<std::size_t>(n);
	}
	return true;
}

inline bool query_server(int device_id, DeviceStats &result) noexcept
{
	const QuerySocket peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	QueryMessage question = {}, answer = {};

	question.type = query_asks;
	question.device = device_id;
	if (!query_connect(peer.fd) ||
	    send(peer.fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    static_cast<ssize_t>(sizeof(question)) ||
	    !query_receive(peer.fd, answer) || answer.type != query_answers)
		return false;
	result.dram = answer.dram;
	result.l1 = answer.l1;
	result.l1_small = answer.l1_small;
	result.trace = answer.trace;
	result.machine_wide = true;
	return true;
}

inline std::uint64_t query_own(int device_id, std::uint32_t type) noexcept
{
	struct ttmem_stats own = {};

	if (device_id < 0 || ::ttmem_stats(static_cast<std::uint32_t>(device_id), type, &own) < 0)
		return 0;
	return own.bytes;
}

} /* namespace detail */

/* Never waits longer than a second, leaves no descriptor open, raises no signal, keeps errno. */
inline DeviceStats query_device(int device_id) noexcept
{
	const int saved_errno = errno;
	DeviceStats result;

	if (!detail::query_server(device_id, result)) {
		result.dram = detail::query_own(device_id, TTMEM_DRAM);
		result.l1 = detail::query_own(device_id, TTMEM_L1);
		result.l1_small = detail::query_own(device_id, TTMEM_L1_SMALL);
		result.trace = detail::query_own(device_id, TTMEM_TRACE);
	}
	errno = saved_errno;
	return result;
}

} /* namespace tt_metal */
} /* namespace tt */

#endif
