/* SPDX-License-Identifier: MIT */
/* guest.h - what the drivers of all languages share; they run inside the guest, on wasi-libc. */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUEST_NO_PROGRAMS "there are no other programs behind the wasm walls; use --backend linux"

/* At the top of main(): goes to $SANDBOX_CWD, which WASI does not know, and takes the name out.  One line and exit 1 where that fails. */
void guest_start(void);
/* Fills it from the machine's randomness, which never fails here. */
void guest_random(void *data, size_t len);

/* ---- Evaluation sessions ---- */
/* The host wants one: the control stream is there. */
bool guest_has_session(void);
/* What has come on the control stream; 0 = the host has gone. */
size_t guest_control_read(void *data, size_t cap);
/* Is there something to be read? */
bool guest_control_waiting(void);
/* Until there is; false: an interrupt came before. */
bool guest_control_wait(void);
/* All of it; ends the guest if the host has gone. */
void guest_control_write(const void *data, size_t len);
/* Standard input is this file from now on; of /dev/null, which is not there: nothing. */
void guest_input_file(const char *path);
/*
 * The end of a session's start: does not come back.  No call of the guest's is under way from here on until the control
 * stream has something to be read, or has ended; then guest_turn() is called, and when that comes back the guest
 * rests again.  It takes what has come, all of it that it has read, and ends the guest as anything else does.
 *
 *   import  sandbox.rest: () -> ()       the worker takes all calls off its stack by a trap
 *   export  guest.turn: () -> ()
 *   export  guest.renew: () -> ()        at rest, in a copy of the guest: generators of random numbers are drawn anew, as
 *                                        after a fork; hash seeds and clocks stay
 *   export  memory, and __stack_pointer  a mutable i32, the only mutable global there is
 *
 * What a guest at rest is lies in its memory and in __stack_pointer, which stands below all that its start keeps on its
 * stack; between two turns it does not change.  Nothing of it is elsewhere: the table of functions has one size and no code
 * changes it, no data segment is passive, no exception is held, there is one memory (tests/wasm/state).
 * Files and descriptors are the worker's.
 */
_Noreturn void guest_rest(void);
/* Of each language. */
void guest_turn(void);
void guest_renew(void);
/* Where the host sets bits when it interrupts; at most eight. */
typedef struct guest_bell_word {
	volatile void *at;
	uint32_t bits;
} guest_bell_word;
void guest_bell(const guest_bell_word *words, size_t count);

#endif /* GUEST_H */
