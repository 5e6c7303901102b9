package faults

// The protocol of NATS, as far as it takes to tell messages apart that pass through a proxy.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// maxFrame bounds a frame: anything larger is no NATS.
const maxFrame = 64 << 20

// frame is one operation of the protocol with its payload, as it was read.
type frame struct {
	op      string // MSG, HMSG, PUB, HPUB, PING, …, in capitals
	subject string
	reply   string
	body    []byte // headers and payload, in raw
	raw     []byte
}

// readFrame reads one operation.
func readFrame(r *bufio.Reader) (*frame, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return &frame{raw: line}, nil
	}
	f := &frame{op: strings.ToUpper(words[0]), raw: line}

	// Parts in brackets may be missing: MSG subject sid [reply] size, HMSG subject sid [reply] headers size,
	// PUB subject [reply] size, HPUB subject [reply] headers size.
	before, after := 0, 1
	switch f.op {
	case "MSG":
		before = 2
	case "HMSG":
		before, after = 2, 2
	case "PUB":
		before = 1
	case "HPUB":
		before, after = 1, 2
	default:
		return f, nil
	}
	rest := words[1:]
	if len(rest) != before+after && len(rest) != before+after+1 {
		return nil, fmt.Errorf("faults: %.100q is no operation of NATS", line)
	}
	f.subject = rest[0]
	if len(rest) == before+after+1 {
		f.reply = rest[before]
	}

	size, err := strconv.Atoi(rest[len(rest)-1])
	if err != nil || size < 0 || size > maxFrame {
		return nil, fmt.Errorf("faults: %.100q: a message of that size", line)
	}
	f.raw = append(make([]byte, 0, len(line)+size+2), line...)
	f.raw = f.raw[:len(line)+size+2]
	if _, err := io.ReadFull(r, f.raw[len(line):]); err != nil {
		return nil, err
	}
	f.body = f.raw[len(line) : len(line)+size]
	return f, nil
}

// ackPrefix begins the subjects on which deliveries are settled.
const ackPrefix = "$JS.ACK."

// delivery reports whether the frame gives a message of a consumer to a worker, other than a look of the
// sweeper, which holds nothing up.
func (f *frame) delivery() bool {
	return (f.op == "MSG" || f.op == "HMSG") && strings.HasPrefix(f.reply, ackPrefix) &&
		!strings.Contains(f.reply, ".sweep.")
}

// publication reports whether the frame stores a message and asks for the stream's word.
func (f *frame) publication() bool {
	return (f.op == "PUB" || f.op == "HPUB") && f.reply != "" && f.job() != ""
}

// settles returns the delivery that the frame is about, and whether it is the last word on it.
func (f *frame) settles() (delivery string, last bool) {
	if f.op != "PUB" && f.op != "HPUB" || !strings.HasPrefix(f.subject, ackPrefix) {
		return "", false
	}
	return f.subject, !bytes.HasPrefix(f.body, []byte("+WPI"))
}

// acknowledges reports whether the frame says that a message is done.
func (f *frame) acknowledges() bool {
	of, _ := f.settles()
	return of != "" && !strings.Contains(of, ".sweep.") && bytes.HasPrefix(f.body, []byte("+ACK"))
}

// job returns the job that the frame's subject names, if it does.
func (f *frame) job() string {
	s, err := message.ParseSubject(f.subject)
	if err != nil {
		return ""
	}
	return s.Job
}

// message is the frame as it may be published again, without an address for the stream's word.
func (f *frame) message() *nats.Msg {
	m := &nats.Msg{Subject: f.subject, Data: f.body}
	if f.op != "HPUB" {
		return m
	}
	if end := bytes.Index(f.body, []byte("\r\n\r\n")); end >= 0 {
		if header, err := nats.DecodeHeadersMsg(f.body[:end+4]); err == nil {
			m.Header, m.Data = header, f.body[end+4:]
		}
	}
	return m
}

// carries reports whether the frame has content of a stream: a message that is stored or delivered, or the reply to a direct get.
// Questions to the server are none: nothing tells that one was changed, and it may delete a stream.
func (f *frame) carries(up bool) bool {
	if up {
		return (f.op == "PUB" || f.op == "HPUB") && strings.HasPrefix(f.subject, wire.Prefix)
	}
	return f.delivery() || f.op == "HMSG" && bytes.Contains(f.body, []byte("\r\nNats-Sequence: "))
}
