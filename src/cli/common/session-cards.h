/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What only a reader that stays can know of cards: their names during a reset, that they were
 * there, and whose memory is from before. A command that has just started asks the daemon.
 */

struct card_watch;
struct daemon_client;

/* Without a daemon, or one that knows none of it, nothing happens. */
void session_ask_cards(struct daemon_client *remote, struct card_watch *cards);
