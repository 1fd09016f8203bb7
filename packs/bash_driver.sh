# SPDX-License-Identifier: MIT
# bash_driver.sh - evaluates what comes over the control descriptor; see docs/internals/driver-protocol.md.
#
# The shell is its own console: interactive, so that an interrupt or an error ends one evaluation and
# not the shell.  It never reads a command, though: all happens in the command before its first prompt,
# at top level, where `declare` is global and `return` is refused.  An interrupt brings the shell to its
# next prompt, and so to the same place again.
if [ -z "${BASH_VERSION-}" ]; then
	echo "a session of shell code needs bash, and only another shell is here" >&2
	exit 1
fi
if [ -z "${__sandbox_file-}" ]; then
	exec 9>&2 # the shell says at its start that it has no terminal: nobody wants to know
	__sandbox_file=$0 PROMPT_COMMAND='. "$__sandbox_file"; eval "$__sandbox_loop"' \
		exec "$BASH" --norc --noprofile --noediting +m -i 2>/dev/null
fi
exec 2>&9 9>&-
unset PROMPT_COMMAND __sandbox_file HISTFILE
set +o history
set +o histexpand
PS1= PS2= PS4='+ '

# The module that moves descriptor 3 away, with a builtin that holds interrupts.
__sandbox_move() {
	local file=${TMPDIR:-/tmp}/.sandbox-$$-$RANDOM$RANDOM fd
	trap '' INT
	if (umask 077; set -C; builtin printf '@MODULE_ESCAPED@' >"$file") 2>/dev/null; then
		enable -f "$file" __sandbox_hold 2>/dev/null
		command -p rm -f "$file"
	fi
	for fd in 900 240 70; do
		if { : >&"$fd"; } 2>/dev/null; then
			__sandbox_fd=$fd
			return
		fi
	done
	echo "this bash loads no modules, which a session needs (enable -f)" >&2
	exit 1
}

__sandbox_frame() { # kind, payload: ASCII
	builtin printf '%s %s %08x\n%s' "$1" "$__sandbox_nonce" "${#2}" "$2" >&"$__sandbox_fd"
}

__sandbox_read() { # variable, bytes
	builtin printf -v "$1" ''
	[ "$2" -eq 0 ] || IFS= LC_ALL=C builtin read -r -N "$2" -u "$__sandbox_fd" "$1" || exit 0
}

# Is there more to come?  A shell that only reads tells.
__sandbox_unfinished() {
	local said
	[[ $__sandbox_code =~ (^|[^\\])(\\\\)*\\$ ]] && return 0
	said=$(LC_ALL=C "$BASH" --norc -n 2>&1 <<<"$__sandbox_code")
	case $said in
	*'unexpected end of file'* | *'unexpected EOF while looking'* | *'delimited by end-of-file'*) return 0 ;;
	esac
	return 1
}

__sandbox_input() { # bytes
	local file=${TMPDIR:-/tmp}/.sandbox-$$-$RANDOM$RANDOM
	(umask 077; set -C; command -p head -c "$1" <&"$__sandbox_fd" >"$file") || exit 1
	exec 0<"$file"
	command -p rm -f "$file"
}

# The end of one evaluation, if one was under way: status.
__sandbox_end() {
	{ local -; set +xveuf; } 2>/dev/null
	local status=$1
	trap '' INT
	[ -n "$__sandbox_busy" ] || return 0
	if [ "$2" = interrupted ] && [ "$status" -eq 130 ]; then
		__sandbox_frame X interrupted
	fi
	__sandbox_busy=
	__sandbox_status=$status
	[ -z "$__sandbox_given" ] || exec 0</dev/null
	__sandbox_frame D "$status"
}

__sandbox_strikes() {
	__sandbox_hold 1
	trap - INT
	__sandbox_hold
}

# Was the code interrupted before it began?  From here on signals tell; none strikes while a frame is read.
__sandbox_begin() {
	local head
	__sandbox_busy=1
	__sandbox_strikes
	builtin read -t 0 -u "$__sandbox_fd" || return 0
	trap '' INT
	__sandbox_read head 44
	if [ "${head:0:34}" = "I $__sandbox_nonce" ]; then
		__sandbox_end 130 interrupted
		return 1
	fi
	__sandbox_strikes
}

# The next evaluation, in __sandbox_code.
__sandbox_next() {
	{ local -; set +xveuf; } 2>/dev/null
	local head flags length code total
	trap '' INT
	while :; do
		__sandbox_read head 44
		__sandbox_nonce=${head:2:32}
		total=$((16#${head:35:8}))
		case $head in
		S*) __sandbox_frame H "1 int bash ${BASH_VERSION%%(*}" ;;
		E*)
			__sandbox_read flags 2
			__sandbox_read length 8
			length=$((16#$length))
			__sandbox_read __sandbox_code "$length"
			__sandbox_given=
			if [ $((total - 10 - length)) -gt 0 ]; then
				__sandbox_given=1
				__sandbox_input $((total - 10 - length))
			fi
			if [ $((16#$flags & 1)) -ne 0 ] && __sandbox_unfinished; then
				__sandbox_frame U ''
			elif __sandbox_begin; then
				return 0
			fi
			;;
		*) __sandbox_read code "$total" ;;
		esac
	done
}

__sandbox_last() { return "$__sandbox_status"; }

__sandbox_busy= __sandbox_given= __sandbox_status=0
# `break` and `continue` of the code, outside of any loop of its own, meet ours: hence the second line.
__sandbox_loop='__sandbox_end $? interrupted
while __sandbox_next; do __sandbox_last; eval "$__sandbox_code"; __sandbox_end $? ""; done
eval "$__sandbox_loop"'
PROMPT_COMMAND=$__sandbox_loop
__sandbox_move
