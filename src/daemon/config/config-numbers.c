/* SPDX-License-Identifier: Apache-2.0 */

/* Settings that are numbers, with units: times, sizes, counts. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "daemon/config/config-private.h"
#include "daemon/config/config.h"

#define NUMBERS_OFF "off"
#define NUMBERS_FLIGHT_SHORTEST CONFIG_MINUTE /* a file has the last minute */
#define NUMBERS_FLIGHT_LONGEST CONFIG_DAY

struct config_unit {
	char letter;
	uint64_t factor;
};

/* Largest first, so that printing picks the largest unit. */
static const struct config_unit unit_times[] = {
	{'d', CONFIG_DAY}, {'h', 3600}, {'m', 60}, {'s', 1}, {0}};
static const struct config_unit unit_sizes[] = {{'T', UINT64_C(1) << 40},
						{'G', UINT64_C(1) << 30},
						{'M', UINT64_C(1) << 20},
						{'K', UINT64_C(1) << 10},
						{0}};

/* "30d": digits, then at most one letter. */
static int parse_scaled(const struct config_key *key, const struct config_unit *units,
			const char *text, uint64_t *ret_value)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];
	uint64_t value, factor = 1;

	if (digits == 0 || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (text[digits]) {
		while (units->letter && units->letter != text[digits])
			units++;
		if (!units->letter || text[digits + 1])
			return -EINVAL;
		factor = units->factor;
	}
	if (text_parse_u64(number, &value) < 0 || __builtin_mul_overflow(value, factor, &value) ||
	    value < key->min || value > key->max)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static void print_scaled(const struct config_unit *units, uint64_t value, FILE *output)
{
	for (; units->letter; units++) {
		if (value > 0 && value % units->factor == 0) {
			fprintf(output, "%" PRIu64 "%c", value / units->factor, units->letter);
			return;
		}
	}
	fprintf(output, "%" PRIu64, value);
}

static int parse_time(const struct config_key *key, void *target, const char *text)
{
	return parse_scaled(key, unit_times, text, target);
}

static void print_time(const void *target, FILE *output)
{
	print_scaled(unit_times, *(const uint64_t *)target, output);
}

static int parse_time32(const struct config_key *key, void *target, const char *text)
{
	uint64_t value;
	int r = parse_scaled(key, unit_times, text, &value);

	if (r == 0)
		*(uint32_t *)target = (uint32_t)value;
	return r;
}

static void print_time32(const void *target, FILE *output)
{
	print_scaled(unit_times, *(const uint32_t *)target, output);
}

static int parse_size(const struct config_key *key, void *target, const char *text)
{
	return parse_scaled(key, unit_sizes, text, target);
}

static void print_size(const void *target, FILE *output)
{
	print_scaled(unit_sizes, *(const uint64_t *)target, output);
}

/* Of the text before a comma: "10m", and "10min" as people write it. */
static int parse_flight_time(const struct config_key *key, const char *text, size_t length,
			     uint64_t *ret_time_s)
{
	struct config_key limits = *key;
	char time[32];

	limits.min = NUMBERS_FLIGHT_SHORTEST;
	limits.max = NUMBERS_FLIGHT_LONGEST;
	if (length >= sizeof(time))
		return -EINVAL;
	memcpy(time, text, length);
	time[length] = '\0';
	if (length > 3 && strcmp(time + length - 3, "min") == 0)
		time[length - 2] = '\0';
	return parse_scaled(&limits, unit_times, time, ret_time_s);
}

static int parse_flight(const struct config_key *key, void *target, const char *text)
{
	const char *comma = strchr(text, ',');
	struct config_flight flight = {0};
	int r = 0;

	if (strcmp(text, NUMBERS_OFF) != 0) {
		r = comma ? parse_flight_time(key, text, (size_t)(comma - text), &flight.time_s)
			  : -EINVAL;
		if (r == 0)
			r = parse_scaled(key, unit_sizes, comma + 1, &flight.size);
	}
	if (r == 0)
		*(struct config_flight *)target = flight;
	return r;
}

static void print_flight(const void *target, FILE *output)
{
	const struct config_flight *flight = target;

	if (flight->size == 0) {
		fputs(NUMBERS_OFF, output);
		return;
	}
	print_scaled(unit_times, flight->time_s, output);
	fputc(',', output);
	print_scaled(unit_sizes, flight->size, output);
}

static int parse_count(const struct config_key *key, void *target, const char *text)
{
	static const struct config_unit none[] = {{0}};
	uint64_t value;
	int r = parse_scaled(key, none, text, &value);

	if (r == 0)
		*(uint32_t *)target = (uint32_t)value;
	return r;
}

static void print_count(const void *target, FILE *output)
{
	fprintf(output, "%" PRIu32, *(const uint32_t *)target);
}

static int parse_fd(const struct config_key *key, void *target, const char *text)
{
	uint32_t value;
	int r = parse_count(key, &value, text);

	if (r == 0)
		*(int *)target = (int)value;
	return r;
}

static void print_fd(const void *target, FILE *output)
{
	fprintf(output, "%d", *(const int *)target);
}

static bool is_set_fd(const void *target)
{
	return *(const int *)target >= 0;
}

const struct config_kind config_kind_time = {parse_time, print_time};
const struct config_kind config_kind_time32 = {parse_time32, print_time32};
const struct config_kind config_kind_size = {parse_size, print_size};
const struct config_kind config_kind_flight = {parse_flight, print_flight};
const struct config_kind config_kind_count = {parse_count, print_count};
const struct config_kind config_kind_fd = {parse_fd, print_fd, is_set_fd};
