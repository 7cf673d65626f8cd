/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of devices: two lines each, DRAM and L1, and one for a region of theirs that is nearly full,
 * because nothing more fits there however much of the rest is free. In 80 columns the sensors are below the name
 * of the card, in place of its id; with more room they have their own column, if a card has any, and bars
 * grow.
 */

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/smi/smi-picture.h"
#include "cli/smi/smi.h"
#include "model/amount.h"
#include "model/cards/condition.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"

#define SMI_NUMBER 5u
#define SMI_CARD 22u
#define SMI_SENSORS 17u
#define SMI_USAGE 23u /* without the two sizes, with a bar of seven columns */
#define SMI_BAR 7u
#define SMI_REGION_FULL 0.9 /* share from which on a region has a line of its own */

/* Lines of the left columns. */
struct smi_left {
	char number[16];
	char card[192];
	char sensors[64];
	bool is_bad; /* the sensors are beyond a limit, or there is none to ask */
};

static unsigned int smi_devices_usage_width(const struct smi_picture *picture)
{
	return SMI_USAGE + 2 * picture->size;
}

static unsigned int smi_devices_bar(const struct smi_picture *picture)
{
	unsigned int others = SMI_NUMBER + SMI_CARD + smi_devices_usage_width(picture) + 10;

	if (picture->has_sensors)
		others += SMI_SENSORS + 3;
	return SMI_BAR + picture->width - others;
}

static void smi_devices_line(const struct smi_picture *picture, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		fputc('-', picture->out);
	fputc('+', picture->out);
}

static void smi_devices_rule(const struct smi_picture *picture)
{
	fputc('+', picture->out);
	smi_devices_line(picture, SMI_NUMBER + 2);
	smi_devices_line(picture, SMI_CARD + 2);
	if (picture->has_sensors)
		smi_devices_line(picture, SMI_SENSORS + 2);
	smi_devices_line(picture,
			 smi_devices_usage_width(picture) + 2 + smi_devices_bar(picture) - SMI_BAR);
	fputc('\n', picture->out);
}

static void smi_devices_left(const struct smi_picture *picture, const struct smi_left *line)
{
	bool is_bad = line->is_bad && picture->style->colours;

	fprintf(picture->out, "| %5s | ", line->number);
	if (is_bad && !picture->has_sensors)
		fputs("\033[31m", picture->out);
	smi_picture_left(picture, line->card, SMI_CARD);
	if (is_bad && !picture->has_sensors)
		fputs("\033[0m", picture->out);
	fputs(" |", picture->out);
	if (picture->has_sensors) {
		fputs(is_bad ? " \033[31m" : " ", picture->out);
		smi_picture_left(picture, line->sensors, SMI_SENSORS);
		fputs(is_bad ? "\033[0m |" : " |", picture->out);
	}
}

static void smi_devices_usage(const struct smi_picture *picture, const char *label,
			      const struct snapshot_memory *amount)
{
	unsigned int bar = smi_devices_bar(picture);
	char number[TEXT_NUMBER_SIZE];
	double share;

	fprintf(picture->out, " %-4s ", label);
	smi_picture_size(picture, amount, picture->size + 1);
	if (!amount->capacity) {
		fprintf(picture->out, " / %*s %*s |\n", (int)picture->size, "unknown", (int)bar + 6,
			"");
		return;
	}
	share = amount_share(amount);
	fprintf(picture->out, " / %*s ", (int)picture->size, text_size(amount->capacity, number));
	smi_picture_bar(picture, share, bar);
	if (share < 0.9995)
		fprintf(picture->out, " %4.1f%% |\n", share * 100);
	else
		fprintf(picture->out, " %4.0f%% |\n", share < 99 ? share * 100 : 9900);
}

/* Appends "VALUE UNIT" of a sensor that has a value. */
static void smi_devices_sensor(const struct snapshot_device *device, enum snapshot_sensor sensor,
			       const char *unit, char *text, size_t size)
{
	const struct snapshot_telemetry *telemetry = &device->telemetry;
	int64_t scale = sensor <= SNAPSHOT_CURRENT && sensor != SNAPSHOT_VOLTAGE ? 1000 : 1;
	int64_t value = telemetry->value[sensor];
	size_t length = strlen(text);

	if (!(telemetry->known & UINT32_C(1) << sensor))
		return;
	value = (value + (value < 0 ? -scale / 2 : scale / 2)) / scale;
	(void)snprintf(text + length, size - length, "%s%" PRId64 "%s", length ? "  " : "", value,
		       unit); /* truncation is fine */
}

/* What else is known about the card, one line beside each type. */
static void smi_devices_more(const struct snapshot_device *device, char ret_lines[BOOK_TYPES][64])
{
	memset(ret_lines, 0, BOOK_TYPES * sizeof(ret_lines[0]));
	if (device->unique_id)
		snprintf(ret_lines[0], sizeof(ret_lines[0]), "id 0x%" PRIx64, device->unique_id);
	if (device->serial)
		snprintf(ret_lines[1], sizeof(ret_lines[0]), "sn %016" PRIx64, device->serial);
	if (device->bus)
		snprintf(ret_lines[2], sizeof(ret_lines[0]), "bus %s", device->bus);
	if (device->firmware)
		snprintf(ret_lines[3], sizeof(ret_lines[0]), "fw %s", device->firmware);
	smi_devices_sensor(device, SNAPSHOT_VOLTAGE, " mV", ret_lines[4], sizeof(ret_lines[0]));
	smi_devices_sensor(device, SNAPSHOT_CURRENT, " A", ret_lines[4], sizeof(ret_lines[0]));
	smi_devices_sensor(device, SNAPSHOT_FAN, " rpm", ret_lines[5], sizeof(ret_lines[0]));
	if (device->cores)
		snprintf(ret_lines[6], sizeof(ret_lines[0]), "%" PRIu32 " cores", device->cores);
}

static void smi_devices_details(const struct smi_picture *picture,
				const struct snapshot_device *device)
{
	unsigned int rest = smi_devices_bar(picture) - SMI_BAR;
	char more[BOOK_TYPES][64];

	smi_devices_more(device, more);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &device->memory[type];
		struct snapshot_memory used = {.used = memory->used, .bound = memory->bound};
		struct snapshot_memory peak = {.used = memory->peak};
		struct smi_left left = {0};

		snprintf(left.card, sizeof(left.card), "%.63s", more[type]);
		smi_devices_left(picture, &left);
		fprintf(picture->out, "  %-13s", types_name(type));
		smi_picture_size(picture, &used, picture->size + 1);
		fputc(' ', picture->out);
		fprintf(picture->out, "%7" PRIu64 " ", memory->buffers);
		if (memory->peak_is_unknown)
			smi_picture_right(picture, "-", picture->size - 1);
		else
			smi_picture_size(picture, &peak, picture->size - 1);
		fprintf(picture->out, "%*s |\n", (int)rest, "");
	}
}

static const struct smi_mark {
	char letter[2];
	const char *meaning;
} smi_marks[] = {
	{"R", "a remote chip, without a node of its own"},
	{"o", "told by the nodes that its processes have open"},
	{"n", "taken for the card of the same number"},
	{"?", "not known which card it is"},
	{"u", "all that is shown of it is the word of one user"},
	{"+", "the sum of further devices that one user declares"},
	{"%", "of what buffers take in all banks, which is more than their size"},
};

/* A letter for how a device was joined to its card, unless an id says so. */
static const char *smi_devices_mark(const struct smi_picture *picture,
				    const struct snapshot_device *device)
{
	if (device->remote)
		return smi_marks[0].letter;
	if (!picture->snapshot->card_count || !device->is_joined)
		return "";
	if (!device->present && device->condition.state == SNAPSHOT_STATE_UNKNOWN)
		return smi_marks[3].letter;
	if (device->joined == SNAPSHOT_JOINED_OPEN)
		return smi_marks[1].letter;
	return device->joined == SNAPSHOT_JOINED_NUMBER ? smi_marks[2].letter : "";
}

/* Whether another user says what it is. Who looks at their own devices knows whose word it is. */
static const char *smi_devices_word(const struct smi_picture *picture,
				    const struct snapshot_device *device)
{
	if (device->summed)
		return smi_marks[5].letter;
	if (!device->declared_by ||
	    (device->declarer_id == geteuid() && !picture->snapshot->card_count))
		return "";
	return smi_marks[4].letter;
}

/* Whether a share is of more than the size beside it. */
static bool smi_devices_takes_more(const struct snapshot_device *device)
{
	static const uint32_t shown[] = {TYPES_DRAM, TYPES_L1, TYPES_SYSTEM_MEMORY};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		struct snapshot_memory amount = amount_of_device(device, shown[i]);

		if (amount.capacity && amount_taken(&amount) > amount.used)
			return true;
	}
	return false;
}

static bool smi_devices_has(const struct smi_picture *picture, const struct snapshot_device *device,
			    char letter)
{
	return *smi_devices_mark(picture, device) == letter ||
	       *smi_devices_word(picture, device) == letter ||
	       (letter == '%' && smi_devices_takes_more(device));
}

/* What the letters mean that are used. */
static void smi_devices_legend(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;
	bool any = false;

	for (size_t k = 0; k < ARRAY_SIZE(smi_marks); k++) {
		bool is_used = false;
		char text[96];

		for (size_t i = 0; i < snapshot->device_count; i++) {
			const struct snapshot_device *device = &snapshot->devices[i];

			is_used =
				is_used || (smi_picture_shows_device(picture, device) &&
					    smi_devices_has(picture, device, *smi_marks[k].letter));
		}
		if (!is_used)
			continue;
		snprintf(text, sizeof(text), "%.1s: %s", smi_marks[k].letter, smi_marks[k].meaning);
		smi_picture_across(picture, text);
		any = true;
	}
	if (any)
		smi_picture_rule(picture);
}

/* Whether there is something to say in their column. */
static bool smi_devices_has_sensors(const struct snapshot_device *device)
{
	const uint32_t shown = UINT32_C(1) << SNAPSHOT_TEMPERATURE | UINT32_C(1) << SNAPSHOT_POWER |
			       UINT32_C(1) << SNAPSHOT_AICLK;

	return device->telemetry.known & shown || condition_words(device->condition.state);
}

bool smi_devices_have_sensors(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (smi_picture_shows_device(picture, &snapshot->devices[i]) &&
		    smi_devices_has_sensors(&snapshot->devices[i]))
			return true;
	}
	return false;
}

/* The state, if there is something to say, and the sensors. */
static void smi_devices_sensors(const struct smi_picture *picture,
				const struct snapshot_device *device, struct smi_left lines[2])
{
	const char *degree = picture->style->utf8 ? "\u00b0C" : " C";
	const char *state = condition_words(device->condition.state);

	if (state) {
		snprintf(lines[0].sensors, sizeof(lines[0].sensors), "%s", state);
		/* Sensors may be readable though the heartbeat stands still. */
		smi_devices_sensor(device, SNAPSHOT_TEMPERATURE, degree, lines[1].sensors,
				   sizeof(lines[1].sensors));
		if (picture->has_sensors) /* else there is no room */
			smi_devices_sensor(device, SNAPSHOT_POWER, " W", lines[1].sensors,
					   sizeof(lines[1].sensors));
		lines[0].is_bad = lines[1].is_bad = true;
		return;
	}
	smi_devices_sensor(device, SNAPSHOT_TEMPERATURE, degree, lines[0].sensors,
			   sizeof(lines[0].sensors));
	smi_devices_sensor(device, SNAPSHOT_POWER, " W", lines[0].sensors,
			   sizeof(lines[0].sensors));
	smi_devices_sensor(device, SNAPSHOT_AICLK, " MHz", lines[1].sensors,
			   sizeof(lines[1].sensors));
	/* In 80 columns all of them are in the second line. */
	lines[picture->has_sensors ? 0 : 1].is_bad =
		condition_is_over(device, SNAPSHOT_TEMPERATURE) ||
		condition_is_over(device, SNAPSHOT_POWER);
}

static void smi_devices_name(const struct smi_picture *picture,
			     const struct snapshot_device *device, struct smi_left ret_lines[2])
{
	struct smi_left *first = &ret_lines[0], *second = &ret_lines[1];

	memset(ret_lines, 0, 2 * sizeof(*ret_lines));
	snprintf(first->number, sizeof(first->number), "%" PRIu32 "%s%s", device->device,
		 device->summed ? "" : smi_devices_mark(picture, device),
		 smi_devices_word(picture, device));
	snprintf(first->card, sizeof(first->card), "%s%s%s", device->card ? device->card : "",
		 device->card && device->arch ? " " : "", device->arch ? device->arch : "");
	/* One name in full is better than two that are cut. */
	if (device->card && text_width(first->card) > SMI_CARD)
		snprintf(first->card, sizeof(first->card), "%s", device->card);
	if (device->summed)
		snprintf(first->card, sizeof(first->card), "%" PRIu32 " of %s", device->summed,
			 device->declared_by);
	if (!*first->card)
		snprintf(first->card, sizeof(first->card), "unknown card");
	smi_devices_sensors(picture, device, ret_lines);
	if (!picture->has_sensors && (*first->sensors || *second->sensors))
		snprintf(second->card, sizeof(second->card), "%s%s%s", first->sensors,
			 *first->sensors && *second->sensors ? "  " : "", second->sensors);
	else if (device->unique_id && !device->summed)
		snprintf(second->card, sizeof(second->card), "0x%" PRIx64, device->unique_id);
	else if (!device->summed)
		snprintf(second->card, sizeof(second->card), "(by number)");
}

/* TRACE and L1_SMALL are parts of DRAM and L1, whose shares do not show that these are full. */
static void smi_devices_region(const struct smi_picture *picture,
			       const struct snapshot_device *device, uint32_t type)
{
	const struct snapshot_memory *amount = &device->memory[type];
	struct smi_left left = {0};

	if (amount_share(amount) < SMI_REGION_FULL)
		return;
	(void)snprintf(left.card, sizeof(left.card), "region %s:", types_name(type));
	smi_devices_left(picture, &left);
	smi_devices_usage(picture, "", amount);
}

static void smi_devices_one(const struct smi_picture *picture, const struct snapshot_device *device)
{
	struct snapshot_memory dram = amount_of_device(device, TYPES_DRAM);
	struct snapshot_memory l1 = amount_of_device(device, TYPES_L1);
	struct snapshot_memory host = amount_of_device(device, TYPES_SYSTEM_MEMORY);
	struct smi_left lines[2];

	smi_devices_name(picture, device, lines);
	smi_devices_left(picture, &lines[0]);
	smi_devices_usage(picture, "DRAM", &dram);
	smi_devices_left(picture, &lines[1]);
	smi_devices_usage(picture, "L1", &l1);
	smi_devices_region(picture, device, TYPES_TRACE);
	smi_devices_region(picture, device, TYPES_L1_SMALL);
	if (host.used || host.buffers) {
		smi_devices_left(picture, &(struct smi_left){0});
		smi_devices_usage(picture, "Host", &host);
	}
	if (picture->style->details)
		smi_devices_details(picture, device);
}

static void smi_devices_total(const struct smi_picture *picture,
			      const struct snapshot_memory *total, size_t shown)
{
	char text[128], number[TEXT_NUMBER_SIZE], buffers[TEXT_NUMBER_SIZE];

	snprintf(text, sizeof(text), "Total: %s%s%s on %zu device%s",
		 smi_picture_bound(picture, total->bound), text_size(total->used, number),
		 amount_buffers(total, buffers), shown, shown == 1 ? "" : "s");
	smi_picture_across(picture, text);
	smi_picture_rule(picture);
}

void smi_devices(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;
	static const struct smi_left titles = {"Dev", "Card", "Sensors", false};
	struct snapshot_memory one, total = {0};
	size_t shown = 0;
	char title[64];

	snprintf(title, sizeof(title), "Memory %*s / %*s", (int)picture->size, "Used",
		 (int)picture->size, "Total");
	smi_devices_rule(picture);
	smi_devices_left(picture, &titles);
	fprintf(picture->out, " %-*s |\n",
		(int)(smi_devices_usage_width(picture) + smi_devices_bar(picture) - SMI_BAR),
		title);
	smi_devices_rule(picture);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (!smi_picture_shows_device(picture, device))
			continue;
		smi_devices_one(picture, device);
		shown++;
		one = amount_of_device(device, AMOUNT_ALL);
		snapshot_add_memory(&total, &one);
	}
	smi_devices_rule(picture);
	smi_devices_total(picture, &total, shown);
	smi_devices_legend(picture);
}
