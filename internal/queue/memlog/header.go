package memlog

import (
	"bytes"
	"strings"
)

// Headers that mean something to the server.
const (
	headerID             = "Nats-Msg-Id"
	headerStream         = "Nats-Expected-Stream"
	headerLast           = "Nats-Expected-Last-Sequence"
	headerLastOf         = "Nats-Expected-Last-Subject-Sequence"
	headerLastFilter     = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerRollup         = "Nats-Rollup"
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

const firstLine = "NATS/1.0\r\n"

// get returns the value of a header, "" if there is none. Names are compared as they are written.
func get(header []byte, name string) string {
	for rest := header; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return ""
		}
		after := rest[i+len(name):]
		if i >= 2 && string(rest[i-2:i]) == "\r\n" && len(after) > 0 && after[0] == ':' {
			value, _, _ := bytes.Cut(after[1:], []byte("\r\n"))
			return strings.TrimLeft(string(value), " ")
		}
		rest = after
	}
}

// with returns headers with more at their end, in pairs.
func with(header []byte, pairs ...string) []byte {
	out := []byte(firstLine)
	if len(header) > 2 {
		out = bytes.Clone(header[:len(header)-2])
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, pairs[i]+": "+pairs[i+1]+"\r\n"...)
	}
	return append(out, "\r\n"...)
}

// without returns headers without the ones that begin with one of prefixes.
func without(header []byte, prefixes ...string) []byte {
	first, rest, found := bytes.Cut(header, []byte("\r\n"))
	if !found {
		return header
	}
	out := append(bytes.Clone(first), "\r\n"...)
lines:
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		for _, p := range prefixes {
			if bytes.HasPrefix(line, []byte(p)) {
				continue lines
			}
		}
		out = append(append(out, line...), "\r\n"...)
	}
	return out
}
