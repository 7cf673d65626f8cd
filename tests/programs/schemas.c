/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the name and the JSON schema of every document: a list, for tools/build/schemas.py. */

#include <stdio.h>

#include "answers/buffers.h"
#include "answers/devices.h"
#include "answers/document.h"
#include "answers/ended.h"
#include "answers/growth.h"
#include "answers/healthz.h"
#include "answers/history.h"
#include "answers/host.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "answers/series.h"
#include "answers/session.h"
#include "answers/status.h"
#include "base/bits.h"
#include "base/emit.h"
#include "cli/budget/budget-output.h"
#include "cli/diff/diff.h"
#include "cli/doctor/doctor.h"
#include "cli/replay/replay-output.h"
#include "cli/smi/smi-hosts.h"
#include "cli/smi/smi-prometheus.h"
#include "daemon/fleet/fleet.h"
#include "daemon/flight/moment-list.h"
#ifdef SCHEMAS_LEGACY
#include "legacy/analyze/analyze.h"
#endif

int main(void)
{
	static const struct document *const documents[] = {
#ifdef SCHEMAS_LEGACY
		&analyze_document,
#endif
		&buffers_document,    &buffers_groups_document,
		&cards_document,      &check_document,
		&devices_document,    &devices_one,
		&diff_document,       &doctor_document,
		&ended_document,      &fit_document,
		&fleet_answer,        &growth_document,
		&healthz_document,    &history_document,
		&host_document,       &hosts_document,
		&incidents_document,  &leaks_document,
		&map_document,        &moment_list_document,
		&open_document,       &peak_document,
		&prometheus_document, &ps_document,
		&replay_document,     &series_document,
		&session_document,    &smi_document,
		&status_document,
	};
	struct emit json = EMIT_INIT(stdout);

	emit_open_array(&json, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
		emit_string(&json, NULL, documents[i]->schema);
		document_put_schema(&json, documents[i]);
	}
	emit_close_array(&json);
	emit_end(&json);
	return fflush(stdout) == 0 ? 0 : 1;
}
