# Runs a server until its owner is gone.
# Arguments: the signal that stops the server; a folder to remove at the end, or nothing; the server's command.
# Standard input: the owner's pipe. Standard output: a locked file, which shows others that something lives.
trap '' HUP INT QUIT TERM
umask 077
stop=$1 remove=$2
shift 2
exec 3<&0 </dev/null

"$@" 3<&- &
server=$!

(
    exec >/dev/null
    while read -r _; do :; done
    # Until it has set up its handlers, a server ignores signals.
    while kill -"$stop" "$server" 2>/dev/null; do sleep 0.1 </dev/null; done
) <&3 3<&- &
watcher=$!

exec 3<&-
wait "$server"
status=$?
# Waited for: whoever waits for this process finds none of it afterwards.
{ kill -KILL "$watcher"; wait "$watcher"; } 2>/dev/null
# Its entry in a folder of another account may have to stay.
if [ -n "$remove" ]; then rm -rf "$remove"; fi
exit "$status"
