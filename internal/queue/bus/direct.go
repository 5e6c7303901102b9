package bus

// Direct gets: any replica of a stream answers with the stored message. The server appends subject, sequence and time
// to the publisher's headers. A publisher may have written headers of the same names, or have ended the headers early,
// before the server's. A message with such doubtful headers is fetched from the leader, whose reply has subject,
// sequence and time outside the headers.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// question selects a message of a stream, in the form of the server's API.
type question struct {
	Sequence uint64     `json:"seq,omitempty"`
	Start    *time.Time `json:"start_time,omitempty"`
	Next     string     `json:"next_by_subj,omitempty"` // filter of the first message from Sequence or Start on
	Last     string     `json:"last_by_subj,omitempty"`
	Batch    int        `json:"batch,omitempty"`
	Bytes    int        `json:"max_bytes,omitempty"`
}

// ErrDoubtful: the headers of a stored message hide or repeat the server's headers.
var ErrDoubtful = errors.New("bus: a message was stored with headers of the server")

// getWithin bounds a get without a deadline.
var getWithin = 30 * time.Second

// direct returns one message of a stream as it is stored. The error wraps ErrNotFound if there is none.
func (c *Conn) direct(ctx context.Context, stream string, q question) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	reply, err := c.requestDirect(ctx, stream, q)
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = storedOf(reply)
	}
	switch {
	case errors.Is(err, ErrDoubtful) && stream == StreamAnswer:
		return c.noAnswer(ctx, q)
	case c.tenant != "": // it may not ask the leader
	case errors.Is(err, ErrNotFound) && c.inCluster(),
		errors.Is(err, ErrDoubtful),
		errors.Is(err, nats.ErrNoResponders): // also from a stored message with status 503
		return c.fromLeader(ctx, stream, q)
	}
	return m, err
}

// noAnswer returns a stored answer with doubtful headers as a message without headers, so that it counts as forged.
// Aggregators write no such headers, and a tenant's user could not read the answer: it may not ask the leader.
func (c *Conn) noAnswer(ctx context.Context, q question) (*jetstream.RawStreamMsg, error) {
	if c.tenant != "" { // a tenant's user asks by subject only
		return &jetstream.RawStreamMsg{Subject: q.Last}, nil
	}
	m, err := c.fromLeader(ctx, StreamAnswer, q)
	if err == nil {
		m.Header = nil
	}
	return m, err
}

// last returns the last message of a stream on a subject, as it is stored. The error wraps ErrNotFound if there is none.
func (c *Conn) last(ctx context.Context, stream, subject string) (m *jetstream.RawStreamMsg, err error) {
	err = c.persist(ctx, func(ctx context.Context) error {
		m, err = c.getOnce(ctx, stream, subject)
		return err
	})
	return m, err
}

// isFound reports whether a message was found, by the error of the search for it.
func isFound(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Replicas may be late: the number of further requests for a message that is not found in a
// cluster, after pauses of staleFor.
const (
	staleLooks = 3
	staleFor   = 100 * time.Millisecond
)

// getOnce is one attempt of last. A tenant's user has no right to ask the leader, so in a cluster it asks staleLooks
// times: any replica may answer.
func (c *Conn) getOnce(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := c.direct(ctx, stream, question{Last: subject})
	for looks := 1; looks < staleLooks && errors.Is(err, ErrNotFound) && c.tenant != "" && c.inCluster(); looks++ {
		Pause(ctx, staleFor)
		m, err = c.direct(ctx, stream, question{Last: subject})
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNotFound, subject)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fault.New(fault.Infrastructure, "%w: get %s: %w", ErrNoStream, subject, err)
	case err != nil:
		return nil, fault.New(fault.Infrastructure, "bus: get %s: %w", subject, err)
	}
	return m, nil
}

// subjects lists the subjects of a stream that match filter, with the number of messages on each.
// The stream's leader answers, in time proportional to the number of subjects.
func (c *Conn) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if c.tenant != "" {
		return nil, fault.New(fault.BadInput, "bus: to list what %s stores takes the operator's user: a tenant's sees no streams", stream)
	}
	var info *jetstream.StreamInfo
	err := c.persist(ctx, func(ctx context.Context) (err error) {
		info, err = c.Info(ctx, stream, jetstream.WithSubjectFilter(filter))
		return err
	})
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: subjects of %s: %w", filter, err)
	}
	return info.State.Subjects, nil
}

// delete removes one message of a stream.
func (c *Conn) delete(ctx context.Context, stream string, sequence uint64) error {
	s, err := c.Stream(ctx, stream)
	if err != nil {
		return err
	}
	if err := s.DeleteMsg(ctx, sequence); err != nil {
		return fault.New(fault.Infrastructure, "bus: delete message %d of %s: %w", sequence, stream, err)
	}
	return nil
}

// bounded returns a context that ends.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ends := ctx.Deadline(); ends {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.AnswerWithin(getWithin))
}

// LongestSubject bounds subjects in bytes. A server closes the connection on a control line above 4096 bytes, and the
// client library does not connect again.
const LongestSubject = 1024

// requestDirect sends a question. A question for the last message on one subject has that subject at the end of its
// own, so that permissions can allow it by subject.
func (c *Conn) requestDirect(ctx context.Context, stream string, q question) (*nats.Msg, error) {
	if len(q.Last) > LongestSubject {
		return nil, ErrNotFound
	}
	if q.Last != "" && !strings.ContainsAny(q.Last, "*>") {
		return c.NC.RequestWithContext(ctx, c.API+"DIRECT.GET."+stream+"."+q.Last, nil)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	return c.NC.RequestWithContext(ctx, c.API+"DIRECT.GET."+stream, body)
}

// mostHeaders is the maximum number of headers in a reply to a direct get. This program's messages have at most 20.
const mostHeaders = 40

// storedOf returns the stored message in the reply to a direct get. The error wraps ErrNotFound if the reply says that
// there is none, or no more, and ErrDoubtful if the server's headers are missing, repeated, or not certain to be the
// server's.
//
// A publisher that ends the headers of a message early hides the server's headers behind them. Then fewer bytes of
// headers are read than came, by the server's 110 or more. A header without a space after the colon, or without a
// carriage return, has up to two bytes fewer than computed here, so that mostHeaders of them make up for 80.
func storedOf(reply *nats.Msg) (*jetstream.RawStreamMsg, error) {
	h := reply.Header
	came := reply.Size() - len(reply.Subject) - len(reply.Reply) - len(reply.Data)
	count, read := extent(h)
	if status, text := h.Get(statusHeader), h.Get(statusText); status != "" {
		if len(h[jetstream.SequenceHeader]) > 0 || count > mostHeaders || came != read {
			return nil, fmt.Errorf("%w: a status", ErrDoubtful)
		}
		if status == "404" || status == "204" { // nothing there; the end of a batch
			return nil, ErrNotFound
		}
		return nil, fault.New(fault.Infrastructure, "bus: %s %s", status, text)
	}

	if count > mostHeaders || came != read {
		return nil, fmt.Errorf("%w: %d bytes of headers, only %d of them readable", ErrDoubtful, came, read)
	}
	for _, name := range []string{
		jetstream.StreamHeader, jetstream.SubjectHeader, jetstream.SequenceHeader, jetstream.TimeStampHeaer,
	} {
		if n := len(h[name]); n != 1 {
			return nil, fmt.Errorf("%w: %d of %s", ErrDoubtful, n, name)
		}
	}
	sequence, err := strconv.ParseUint(h.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoubtful, err)
	}
	at, err := time.Parse(time.RFC3339Nano, h.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoubtful, err)
	}
	return &jetstream.RawStreamMsg{
		Subject: h.Get(jetstream.SubjectHeader), Sequence: sequence, Header: h, Data: reply.Data, Time: at,
	}, nil
}

// Sound returns an error for a published message with headers that only a server writes.
func Sound(h nats.Header) error {
	for _, name := range []string{
		jetstream.StreamHeader, jetstream.SubjectHeader, jetstream.SequenceHeader, jetstream.TimeStampHeaer, jetstream.LastSequenceHeader,
		"Nats-Num-Pending", statusHeader, statusText,
	} {
		if len(h[name]) > 0 {
			return fault.New(fault.BadInput, "%w: %s", ErrDoubtful, name)
		}
	}
	return nil
}

// Headers in which the client library keeps the status and its text, from the first line of a message's headers.
const (
	statusHeader = "Status"
	statusText   = "Description"
)

// extent returns the number of headers, and their size in bytes as a server sends them, with a status in the first
// line.
func extent(h nats.Header) (count, bytes int) {
	bytes = len("NATS/1.0\r\n\r\n")
	for name, values := range h {
		for _, v := range values {
			count++
			switch {
			case name == statusHeader || name == statusText:
				bytes += len(" ") + len(v)
			default:
				bytes += len(name) + len(": ") + len(v) + len("\r\n")
			}
		}
	}
	return count, bytes
}

// fromLeader asks the leader of a stream. The error wraps ErrNotFound if there is no such message. Headers that cannot be read count as
// none.
func (c *Conn) fromLeader(ctx context.Context, stream string, q question) (*jetstream.RawStreamMsg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	reply, err := c.NC.RequestWithContext(ctx, c.API+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, err
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	switch err := json.Unmarshal(reply.Data, &got); {
	case err != nil:
		return nil, err
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, ErrNotFound
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	case got.Error != nil:
		return nil, got.Error
	case got.Message == nil:
		return nil, errors.New("the leader's answer has no message")
	}
	m := &jetstream.RawStreamMsg{
		Subject:  got.Message.Subject,
		Sequence: got.Message.Seq,
		Data:     got.Message.Data,
		Time:     got.Message.Time,
	}
	if h, err := nats.DecodeHeadersMsg(got.Message.Header); err == nil {
		m.Header = h
	}
	return m, nil
}
