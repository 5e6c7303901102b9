package memlog

import (
	"bytes"
	"slices"
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

// headerValue returns the value of a header, or "" if there is none. Names are compared as they are written. header is
// in the form of the protocol: a first line, a line for each header, and an empty line.
func headerValue(header []byte, name string) string {
	for rest := header; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return ""
		}
		tail := rest[i+len(name):]
		isLineStart := i >= 2 && string(rest[i-2:i]) == "\r\n"
		if isLineStart && len(tail) > 0 && tail[0] == ':' {
			value, _, _ := bytes.Cut(tail[1:], []byte("\r\n"))
			return strings.TrimLeft(string(value), " ")
		}
		rest = tail
	}
}

// withHeaders returns header with more headers at its end, given as names and values in turn. header may be empty.
func withHeaders(header []byte, pairs ...string) []byte {
	result := []byte(firstLine)
	if len(header) > 2 {
		result = bytes.Clone(header[:len(header)-2]) // without the empty line at the end
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		result = append(result, pairs[i]+": "+pairs[i+1]+"\r\n"...)
	}
	return append(result, "\r\n"...)
}

// withoutHeaders returns header without the headers whose names begin with one of prefixes.
func withoutHeaders(header []byte, prefixes ...string) []byte {
	statusLine, lines, isComplete := bytes.Cut(header, []byte("\r\n"))
	if !isComplete {
		return header
	}
	result := append(bytes.Clone(statusLine), "\r\n"...)
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		hasPrefix := func(prefix string) bool { return bytes.HasPrefix(line, []byte(prefix)) }
		if !slices.ContainsFunc(prefixes, hasPrefix) {
			result = append(append(result, line...), "\r\n"...)
		}
	}
	return result
}
