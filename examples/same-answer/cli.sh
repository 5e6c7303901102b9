#!/bin/sh
# The command line: what is wrong with the heating of a cold flat in winter? BTN is the command, BTN_NATS the server, if any.
cd "$(dirname "$0")/../.." || exit
${BTN:-go run ./cmd/btn} infer examples/heating.bif --evid season=winter,complaint=yes --target boiler,pump,valve --json
