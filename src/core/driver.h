/* SPDX-License-Identifier: MIT */
/*
 * driver.h - frames of the driver protocol (docs/internals/driver-protocol.md): what goes to the
 * driver in an interpreter, and what is believed of what comes back.
 *
 * The reader is fed bytes as they come.  It is total and bounded: any input is frames in an order
 * that the protocol knows, or it is broken, once and for all; it never holds more than one payload.
 */
#ifndef SB_CORE_DRIVER_H
#define SB_CORE_DRIVER_H

#include "../base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DRIVER_HEAD = 44,
	DRIVER_NONCE = 32,
	DRIVER_CODE_HEAD = 10,
	DRIVER_ANSWER_HEAD = 8,
	DRIVER_TEXT_MAX = 65536,
	DRIVER_HELLO_MAX = 256,
	DRIVER_ANSWER_MAX = 1 << 20,
	DRIVER_CODE_MAX = 64 << 20
};						 /* code and input together */
enum { DRIVER_PARTIAL = 1, DRIVER_ASK = 2 };	 /* flags of an evaluation */
enum { DRIVER_CAN_ASK = 1, DRIVER_CAN_NUL = 2, DRIVER_CAN_INT = 4 }; /* features of a hello */

/* What is expected now. */
enum {
	DRIVER_IDLE = 0, /* nothing may come */
	DRIVER_STARTING,
	DRIVER_RUNNING,
	DRIVER_BROKEN
};

typedef struct driver_reader {
	int state;	/* DRIVER_* */
	uint32_t flags; /* of the evaluation */
	char nonce[DRIVER_NONCE + 1];
	char head[DRIVER_HEAD];
	size_t head_len;
	size_t want; /* bytes of payload that the head promises */
	buf payload;
	bool asked;			   /* a question stands */
	char question[DRIVER_ANSWER_HEAD]; /* its number, as the driver has it */
	uint32_t questions;
	bool value, exception; /* came already */
} driver_reader;

typedef struct driver_frame {
	char kind;	     /* 'H' 'Q' 'V' 'X' 'D' 'U' */
	const char *payload; /* with a NUL behind; until the next driver_read() */
	size_t len;
	int status;	   /* of 'D' */
	uint32_t features; /* of 'H' */
} driver_frame;

void driver_init(driver_reader *reader);
void driver_release(driver_reader *reader);
/* From here on frames of a start (or an evaluation with these flags) are expected, under a fresh
 * nonce. Negative: no random numbers (-errno). */
int driver_expect_hello(driver_reader *reader);
int driver_expect_end(driver_reader *reader, uint32_t flags);
/* The answer to the question that stands has been sent. */
void driver_answered(driver_reader *reader);

/* Takes bytes up to the end of one frame.  1 = *frame is one, 0 = all were taken and it goes on,
 * -1 = broken, *why tells, in words of ours; *used counts in any case. */
int driver_read(driver_reader *reader, const void *data, size_t len, size_t *used,
		driver_frame *frame, const char **why);

/* The head of a frame to the driver, with the reader's nonce; for 'E' and 'A' with the beginning of
 * the payload.  Returns its length, at most DRIVER_HEAD + DRIVER_CODE_HEAD. */
size_t driver_start_head(const driver_reader *reader, char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1]);
size_t driver_code_head(const driver_reader *reader, size_t code_len, size_t input_len,
			char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1]);
size_t driver_interrupt_head(const driver_reader *reader,
			     char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1]);
size_t driver_answer_head(const driver_reader *reader, size_t len,
			  char out[DRIVER_HEAD + DRIVER_CODE_HEAD + 1]);

#endif /* SB_CORE_DRIVER_H */
