/* SPDX-License-Identifier: MIT */
/* bus.c - a message of D-Bus, as the supervisor hears it from the user's bus. */
#include "fuzz.h"

#include "../src/launch/bus.h"

int fuzz_one(uint8_t *data, size_t len)
{
	bus_message m;
	uint32_t i;

	if (len < BUS_HEAD_BYTES || bus_length(data) != len)
		return 0;
	if (!bus_read(data, len, &m))
		return 0;
	FUZZ_CHECK(len <= BUS_MAX_MESSAGE && m.type >= BUS_CALL && m.type <= BUS_SIGNAL && m.texts <= 4);
	FUZZ_CHECK(memchr(m.member, 0, sizeof m.member) && memchr(m.error, 0, sizeof m.error));
	for (i = 0; i < m.texts; i++)
		FUZZ_CHECK(memchr(m.text[i], 0, sizeof m.text[i]));
	return 1;
}

size_t fuzz_seed(size_t at, uint8_t *out, size_t cap)
{
	bus_out message;

	if (at > 2)
		return 0;
	if (at == 0)
		bus_hello(&message, 1);
	else
		bus_start_scope(&message, 2, "sandbox-12-345-0123456789abcdef.scope", at == 2);
	if (message.len > cap)
		return 0;
	memcpy(out, message.data, message.len);
	return message.len;
}
