#!/bin/sh
# HTTP: sends the file as it is, as a string of JSON. BTN_GATEWAY is the URL of `btn up` or `btn gateway`.
cd "$(dirname "$0")/../.." || exit
text=$(sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g; s/$/\\n/' examples/heating.bif | tr -d '\n')
curl -sS --fail-with-body "${BTN_GATEWAY:-http://127.0.0.1:8080}/v1/infer" -H 'Content-Type: application/json' -d '{
  "text": "'"$text"'", "format": "bif",
  "evidence": {"season": "winter", "complaint": "yes"},
  "targets": ["boiler", "pump", "valve"]
}'
