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
	Sequence uint64     `json:"seq,omitempty"`          // the message with it, or with Next the first from it on
	Start    *time.Time `json:"start_time,omitempty"`   // with Next: the first message stored from then on
	Next     string     `json:"next_by_subj,omitempty"` // filter of the first message from Sequence or Start on
	Last     string     `json:"last_by_subj,omitempty"` // subject or filter of the last message
	Batch    int        `json:"batch,omitempty"`        // number of messages
	Bytes    int        `json:"max_bytes,omitempty"`    // of a batch
}

// ErrDoubtful: the headers of a stored message hide or repeat the server's headers.
var ErrDoubtful = errors.New("bus: a message was stored with headers of the server")

// getTimeout bounds a get whose context has no deadline.
var getTimeout = 30 * time.Second

// getDirect returns the message of a stream that q selects, as it is stored. It asks any replica first, and then the
// leader if the replica did not respond, returned headers in doubt, or found nothing in a cluster. A tenant's user has
// no right to ask the leader. An answer with headers in doubt is returned as a forged one. The error wraps ErrNotFound
// if there is no such message.
func (c *Conn) getDirect(ctx context.Context, stream string, q question) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := c.withDefaultTimeout(ctx)
	defer cancel()
	reply, err := c.requestDirect(ctx, stream, q)
	var m *jetstream.RawStreamMsg
	if err == nil {
		m, err = parseStored(reply)
	}
	switch {
	case errors.Is(err, ErrDoubtful) && stream == StreamAnswer:
		return c.getAsForged(ctx, q)
	case c.tenant != "": // it may not ask the leader
	case errors.Is(err, ErrNotFound) && c.inCluster(),
		errors.Is(err, ErrDoubtful),
		errors.Is(err, nats.ErrNoResponders): // also from a stored message with status 503
		return c.getFromLeader(ctx, stream, q)
	}
	return m, err
}

// getAsForged returns the answer that q selects as a message without headers, so that it counts as forged. It is for
// answers with doubtful headers, which aggregators do not write.
func (c *Conn) getAsForged(ctx context.Context, q question) (*jetstream.RawStreamMsg, error) {
	if c.tenant != "" { // a tenant's user may not ask the leader; it asks by subject only, so that q.Last is the message's
		return &jetstream.RawStreamMsg{Subject: q.Last}, nil
	}
	m, err := c.getFromLeader(ctx, StreamAnswer, q)
	if err == nil {
		m.Header = nil
	}
	return m, err
}

// getLast returns the last message of a stream on a subject, as it is stored. The error wraps ErrNotFound if there is
// none.
func (c *Conn) getLast(ctx context.Context, stream, subject string) (m *jetstream.RawStreamMsg, err error) {
	err = c.withRetries(ctx, func(ctx context.Context) error {
		m, err = c.getLastOnce(ctx, stream, subject)
		return err
	})
	return m, err
}

// isFound returns whether a message was found, given the error err of the search for it: false without an error if err
// wraps ErrNotFound.
func isFound(err error) (bool, error) {
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Replicas may be late. A tenant's user in a cluster asks replicaTries times for a message that is not found, with a
// pause between.
const (
	replicaTries = 3
	replicaPause = 100 * time.Millisecond
)

// getLastOnce is getLast without the retries after trouble with the server. A tenant's user has no right to ask the
// leader, so in a cluster it asks up to replicaTries times, because another replica may answer.
func (c *Conn) getLastOnce(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := c.getDirect(ctx, stream, question{Last: subject})
	mayBeBehind := c.tenant != "" && c.inCluster() // the replica that answered, and no leader may be asked
	for tries := 1; tries < replicaTries && errors.Is(err, ErrNotFound) && mayBeBehind; tries++ {
		Pause(ctx, replicaPause)
		m, err = c.getDirect(ctx, stream, question{Last: subject})
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
	err := c.withRetries(ctx, func(ctx context.Context) (err error) {
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

// withDefaultTimeout returns ctx, with the time limit getTimeout if it has none.
func (c *Conn) withDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ends := ctx.Deadline(); ends {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.AnswerWithin(getTimeout))
}

// LongestSubject bounds subjects in bytes. A server closes the connection on a control line above 4096 bytes, and the
// client library does not connect again.
const LongestSubject = 1024

// requestDirect sends a question to the replicas of a stream and returns the reply. If q asks for the last message on
// one subject, the request's subject ends with that subject, so that permissions can allow it by subject. Otherwise q
// is the body of the request.
func (c *Conn) requestDirect(ctx context.Context, stream string, q question) (*nats.Msg, error) {
	if len(q.Last) > LongestSubject { // no message is stored on such a subject
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

// maxHeaders is the maximum number of headers in a reply to a direct get. This program's messages have at most 20.
const maxHeaders = 40

// parseStored returns the stored message in the reply to a direct get. The error wraps ErrNotFound if the reply says
// that there is none, or no more. It wraps ErrDoubtful if the server's headers are missing or repeated, or may be the
// publisher's.
//
// A publisher that ends the headers of a message early hides the server's headers behind them. That shows by the sizes:
//   - The headers that could be read are shorter than the received ones by those of the server, 110 bytes or more.
//   - headerExtent computes the size of what could be read. A publisher may leave out the space after a colon and the
//     carriage return at the end of a line, so that the computed size is 2 bytes too large for each header.
//   - For maxHeaders headers that makes 80 bytes, which is less than 110. So the two sizes are not equal.
func parseStored(reply *nats.Msg) (*jetstream.RawStreamMsg, error) {
	h := reply.Header
	receivedBytes := reply.Size() - len(reply.Subject) - len(reply.Reply) - len(reply.Data)
	count, readableBytes := headerExtent(h)
	mayHideHeaders := count > maxHeaders || receivedBytes != readableBytes // behind those that could be read

	// A reply with a status has no message.
	if status, text := h.Get(statusHeader), h.Get(statusText); status != "" {
		if len(h[jetstream.SequenceHeader]) > 0 || mayHideHeaders { // a publisher wrote the status
			return nil, fmt.Errorf("%w: a status", ErrDoubtful)
		}
		if status == "404" || status == "204" { // nothing there; the end of a batch
			return nil, ErrNotFound
		}
		return nil, fault.New(fault.Infrastructure, "bus: %s %s", status, text)
	}

	// Each of the server's headers has to be there once, with nothing hidden.
	if mayHideHeaders {
		return nil, fmt.Errorf("%w: %d bytes of headers, only %d of them readable", ErrDoubtful, receivedBytes, readableBytes)
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
	storedTime, err := time.Parse(time.RFC3339Nano, h.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoubtful, err)
	}
	return &jetstream.RawStreamMsg{
		Subject: h.Get(jetstream.SubjectHeader), Sequence: sequence, Header: h, Data: reply.Data, Time: storedTime,
	}, nil
}

// RejectServerHeaders returns an error, which wraps ErrDoubtful, if the headers h of a message that is to be published have one that
// only a server writes.
func RejectServerHeaders(h nats.Header) error {
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

// headerExtent returns the number of headers, and their size in bytes as a server sends them. The client library shows
// the status of the first line, "NATS/1.0 404 Text", as two headers, which count without their names.
func headerExtent(h nats.Header) (count, bytes int) {
	bytes = len("NATS/1.0\r\n\r\n") // the first line, and the empty line at the end
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

// leaderReply is the leader's reply to a request for a message, in the form of the server's API.
type leaderReply struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// getFromLeader asks the leader of a stream for the message that q selects. The error wraps ErrNotFound if there is no
// such message. Headers that cannot be parsed are left out.
func (c *Conn) getFromLeader(ctx context.Context, stream string, q question) (*jetstream.RawStreamMsg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	reply, err := c.NC.RequestWithContext(ctx, c.API+"STREAM.MSG.GET."+stream, body)
	if err != nil {
		return nil, err
	}
	var response leaderReply
	switch err := json.Unmarshal(reply.Data, &response); {
	case err != nil:
		return nil, err
	case response.Error != nil && response.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, ErrNotFound
	case response.Error != nil && response.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	case response.Error != nil:
		return nil, response.Error
	case response.Message == nil:
		return nil, errors.New("the leader's answer has no message")
	}
	stored := response.Message
	m := &jetstream.RawStreamMsg{Subject: stored.Subject, Sequence: stored.Seq, Data: stored.Data, Time: stored.Time}
	if h, err := nats.DecodeHeadersMsg(stored.Header); err == nil { // else the message has none
		m.Header = h
	}
	return m, nil
}
