/* SPDX-License-Identifier: MIT */
/*
 * bus.h - the few messages of D-Bus that a scope of systemd's takes: written, and read.
 *
 * Pure and bounded: no allocation, no system call; what is read comes from a peer and is fuzzed.
 */
#ifndef SB_LAUNCH_BUS_H
#define SB_LAUNCH_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUS_MAX_MESSAGE 16384u    /* bytes of one that is read; longer ones are an error */
#define BUS_HEAD_BYTES 16u        /* so many tell how long a message is */

enum { BUS_CALL = 1, BUS_RETURN, BUS_ERROR, BUS_SIGNAL };

typedef struct bus_out {
	uint8_t data[1024];
	size_t len;
	bool full;                    /* something did not fit: nothing of it may be sent */
} bus_out;

/* org.freedesktop.DBus.Hello, the first call on a bus. */
void bus_hello(bus_out *out, uint32_t serial);
/* StartTransientUnit: a scope of that name with its sender in it, delegated to him, without limits of its
 * own.  oom: also that the kernel's kill of one process ends no other (systemd since 253). */
void bus_start_scope(bus_out *out, uint32_t serial, const char *unit, bool oom);

typedef struct bus_message {
	uint32_t type, serial;        /* serial: of the call that is answered; 0 = none */
	char member[64], error[96];   /* "" = none */
	char text[4][160];            /* the strings at the beginning of the body, numbers and paths among them */
	uint32_t texts;
} bus_message;

/* Bytes of the message that begins with these BUS_HEAD_BYTES; 0 = it is none that can be read. */
size_t bus_length(const uint8_t *head);
/* Of a whole one; false = broken. */
bool bus_read(const uint8_t *data, size_t len, bus_message *out);

#endif /* SB_LAUNCH_BUS_H */
