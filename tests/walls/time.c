/* SPDX-License-Identifier: MIT */
/*
 * Outliving the deadline of 700 ms: stopped, deaf to TERM, detached by setsid and double fork,
 * holding the output open, forking all the time.  Each would take 4 s and then end by itself; those
 * whom nobody waits for live on until somebody would have found them.
 * What counts is that the call is back in time and that no process is left.
 *
 * wall time
 * options --timeout 700ms --grace 200ms
 * each
 * waits
 * backends linux process
 * token
 * attempt sleeps: open without time | code timeout
 * attempt stopped: open without time | code timeout
 * attempt ignores_term: open without time | code timeout
 * attempt blocks_all: open without time | code timeout
 * attempt double_fork: open without time | code timeout
 * attempt holds_output: open without time | code timeout
 * attempt keeps_forking: open without time | code timeout
 * attempt many: open without time | code timeout
 */
#include "attempt.h"
#include <sys/prctl.h>

static int full_time(void)
{
	for (int i = 0; i < 40; i++)
		usleep(100 * 1000);
	return 0;
}

/* Longer than the driver looks for what is left. */
static unsigned patience(void)
{
	return (unsigned)number("PATIENCE");
}

static int sleeps(void)
{
	return full_time();
}

/* Somebody must wake it in the control: a child does, late. */
static int stopped(void)
{
	pid_t me = getpid();

	if (fork() == 0) {
		full_time();
		kill(me, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	return 0;
}

static int ignores_term(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	return full_time();
}

static int blocks_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return full_time();
}

static void detach(void)
{
	if (fork() != 0)
		return;
	setsid();
	if (fork() != 0)
		_exit(0);
	signal(SIGTERM, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, 0);
	close(0);
	close(1);
	close(2);
	sleep(patience());
	_exit(0);
}

static int double_fork(void)
{
	detach();
	return full_time();
}

static int holds_output(void)
{
	if (fork() == 0) {
		setsid();
		signal(SIGTERM, SIG_IGN);
		sleep(patience());
		_exit(0);
	}
	return full_time();
}

/* A chain in which each ends as soon as the next lives. */
static int keeps_forking(void)
{
	if (fork() == 0) {
		for (unsigned i = 0; i < patience() * 500; i++) {
			usleep(2000);
			if (fork() != 0)
				_exit(0);
		}
		_exit(0);
	}
	return full_time();
}

static int many(void)
{
	for (int i = 0; i < 30; i++)
		detach();
	return full_time();
}

ATTEMPTS({ "sleeps", sleeps }, { "stopped", stopped }, { "ignores_term", ignores_term },
	 { "blocks_all", blocks_all }, { "double_fork", double_fork },
	 { "holds_output", holds_output }, { "keeps_forking", keeps_forking }, { "many", many })
