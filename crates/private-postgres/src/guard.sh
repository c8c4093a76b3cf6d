# Runs a server until its owner has gone and, where there is a file for leases, nobody has held one for a while.
# Arguments: signal that stops the server; file for leases or nothing; length of that while in seconds; folder to remove
# at the end or nothing; the server's command.
# Standard input: the owner's pipe. Standard output: a locked file that tells others whether anything lives.
trap '' HUP INT QUIT TERM
umask 077
stop=$1 leases=$2 grace=$3 remove=$4
shift 4
exec 3<&0 </dev/null
if [ -n "$leases" ]; then mkfifo "$leases" || exit 1; fi

"$@" 3<&- &
server=$!

(
    exec >/dev/null
    anybody() { came=; while read -r line; do came=yes; done; [ -n "$came" ]; }
    # To open for both directions is not to wait for a lease; without one, reading must end and not wait.
    if [ -n "$leases" ]; then exec 3<>"$leases" 4<"$leases" 3<&-; fi
    anybody
    if [ -n "$leases" ]; then
        exec <&4 4<&-
        while :; do
            sleep "$grace" </dev/null
            anybody && continue
            # Who has opened the file under its old name is seen now; who comes later does not find it.
            mv "$leases" "$leases.closed"
            anybody || break
            mv "$leases.closed" "$leases"
        done
    fi
    # Until it has set up its handlers, a server ignores signals.
    while kill -"$stop" "$server" 2>/dev/null; do sleep 0.1 </dev/null; done
) <&3 3<&- &
watcher=$!

exec 3<&-
trap 'kill -"$stop" "$server"' HUP INT QUIT TERM
while wait "$server"; status=$?; kill -0 "$server" 2>/dev/null; do :; done
trap '' HUP INT QUIT TERM
kill -KILL "$watcher" 2>/dev/null
if [ -n "$leases" ]; then rm -f "$leases" "$leases.closed"; fi
# Its entry in a folder of somebody else's may have to stay.
if [ -n "$remove" ]; then rm -rf "$remove"; fi
exit "$status"
