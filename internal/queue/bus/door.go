package bus

// Checks of the messages of tenants and clients. They have no right to publish to streams: a worker stores their
// messages for them after these checks.

import (
	"context"
	"errors"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// OwnerOn returns the owner of the messages on a subject, which may be that of a registered name. ok is false if it is
// no subject of version 1.
func OwnerOn(subject string) (owner string, ok bool) {
	if owner, _, ok := ParseAlias(subject); ok {
		return owner, true
	}
	s, err := message.ParseSubject(subject)
	return s.Owner, err == nil
}

// vettedKinds are the kinds that CheckUserMessage lets through.
var vettedKinds = []message.Kind{
	message.KindModel, message.KindCancel, message.KindTimer, message.KindBlob, message.KindGraph,
}

// CheckUserMessage checks a user's message and returns it as it may be stored. That message has no wildcards in its subject
// and no headers of the server, and it never replaces a job's request, or right bytes under their digest. The error wraps
// ErrQuota above a quota of the owner; its code is bad_input if nobody may store the message.
//
// withSpare adds a header without meaning to messages that may later be moved in a full stream, which takes a message in
// the place of another only if it is not larger.
func (b *Bus) CheckUserMessage(ctx context.Context, subject string, h nats.Header, data []byte) (*nats.Msg, error) {
	s, parseErr := message.ParseSubject(subject)
	if s.Kind == message.KindTimer && parseErr == nil {
		return b.vetTimer(ctx, s, data)
	}
	m, err := userMessage(subject, s, h, data)
	if err != nil {
		return nil, err
	}
	if owner, name, ok := ParseAlias(subject); ok { // no subject for ParseSubject
		return b.vetAlias(ctx, owner, name, m)
	}
	if parseErr != nil {
		return nil, fault.Wrap(fault.BadInput, parseErr)
	}

	stream := ""
	switch s.Kind {
	case message.KindModel:
		stream = StreamModel
		m = withSpare(m)
		// It is stored only if no lane has a request of the job.
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
		m.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{message.AnyLaneFilter(s.Job)}
	case message.KindBlob:
		stream = StreamBlob
		m, err = b.Blobs.ForOwner(s.Owner).vetMessage(ctx, withSpare(m), s.Digest)
	case message.KindGraph:
		stream = StreamGraph
		m, err = b.Models.blobs.ForOwner(s.Owner).vetMessage(ctx, withSpare(m), s.Digest)
	case message.KindCancel:
		return m, nil // it counts against no quota
	default:
		return nil, fault.New(fault.BadInput, "nobody may store messages on %s", subject)
	}
	if err == nil {
		err = b.Log.admit.ask(ctx, stream, subject, m.Header, len(data))
	}
	return m, err
}

// userMessage returns a user's message with those headers that a user may set. One of them is a condition on the last
// sequence of the message's own subject: 0 means that the subject has to be empty. A request may have that condition on
// the subjects of its job in any lane. A condition on other subjects is an error. s is the parsed subject, or zero if it
// cannot be parsed.
func userMessage(subject string, s message.Subject, h nats.Header, data []byte) (*nats.Msg, error) {
	headers, err := message.UserHeaders(h)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject, Header: headers, Data: data}
	if last := h[jetstream.ExpectedLastSubjSeqHeader]; len(last) > 0 {
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = last[:1:1] // the first value, in a slice that append copies
	}
	conditionSubject := h.Get(jetstream.ExpectedLastSubjSeqSubjHeader)
	isOwnSubject := conditionSubject == "" || conditionSubject == subject
	isOwnJob := s.Kind == message.KindModel && conditionSubject == message.AnyLaneFilter(s.Job)
	if !isOwnSubject && !isOwnJob {
		return nil, fault.New(fault.BadInput, "a condition on %.200q is none on the message's own subject", conditionSubject)
	}
	return m, nil
}

// vetAlias checks a message that sets a registered name, and returns it as it may be stored.
func (b *Bus) vetAlias(ctx context.Context, owner, name string, m *nats.Msg) (*nats.Msg, error) {
	if owner == "" {
		return nil, fault.New(fault.BadInput, "the name %s is everybody's: only the operator sets it", name)
	}
	if err := CheckKept(m.Subject, m.Header, m.Data); err != nil {
		return nil, err
	}
	return m, b.Log.admit.ask(ctx, StreamGraph, m.Subject, m.Header, len(m.Data))
}

// vetTimer returns a timer for the deadline in data, which a user has sent. s is the subject of the user's timer; the job in
// it has to be stored and without an owner. The timer is made anew, so that it can name no other subject and no other time.
// It is not signed, because workers that have keys set timers themselves.
func (b *Bus) vetTimer(ctx context.Context, s message.Subject, data []byte) (*nats.Msg, error) {
	var d wire.Deadline
	if err := wire.Decode(data, &d); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	if d.Job != s.Job || !form.IsToken(d.Job) {
		return nil, fault.New(fault.BadInput, "a deadline of job %.130q is no timer of %s", d.Job, s.Job)
	}
	switch isStored, err := b.Log.Has(ctx, StreamModel, wire.ModelSubject(s.Lane, s.Job)); {
	case err != nil:
		return nil, err
	case !isStored:
		return nil, fault.New(fault.BadInput, "job %s is not stored in lane %d, and needs no timer", s.Job, s.Lane)
	}
	m, _, err := timer(s.Lane, &d) // without the subject on which the server delivers the timer
	if err == nil {
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"} // it does not replace a timer that the job has
	}
	return m, err
}

// Codes of refusals by the worker that stores for tenants, in the form of a stream's. The server has no such codes.
const (
	CodeQuota   jetstream.ErrorCode = 60001
	CodeBusy    jetstream.ErrorCode = 60002
	CodeRefused jetstream.ErrorCode = 60003
	CodeDamaged jetstream.ErrorCode = 60004
	CodeWait    jetstream.ErrorCode = 60005
)

// CodeOf returns the code for an error of CheckUserMessage. An error of the servers is CodeBusy, after which the user
// tries again.
func CodeOf(err error) jetstream.ErrorCode {
	switch {
	case errors.Is(err, ErrQuota):
		return CodeQuota
	case errors.Is(err, ErrBusy):
		return CodeWait
	case fault.CodeOf(err) == fault.BadInput:
		return CodeRefused
	}
	return CodeBusy
}

// refusalError returns the error for a refusal by the worker that stores messages for tenants, or nil if the refusal is
// one of a stream. A description that begins with the text of ErrQuota or ErrBusy loses it, because the returned error
// begins with that text itself.
func refusalError(subject string, api *jetstream.APIError) error {
	switch api.ErrorCode {
	case CodeQuota:
		return fault.New(fault.OverBudget, "%w: %s", ErrQuota, strings.TrimPrefix(api.Description, ErrQuota.Error()+": "))
	case CodeWait:
		return fault.New(fault.Infrastructure, "%w%s", ErrBusy, strings.TrimPrefix(api.Description, ErrBusy.Error()))
	case CodeBusy:
		return fault.New(fault.Infrastructure, "%w: store %s: %s", ErrFull, subject, api.Description)
	case CodeDamaged:
		return fault.New(fault.Damaged, "bus: store %s: %s", subject, api.Description)
	case CodeRefused:
		return fault.New(fault.BadInput, "bus: store %s: %s", subject, api.Description)
	}
	return nil
}

// CheckKept checks a message on the subject of a blob, a registered model or a name. It returns an error, with the code
// bad_input, if readers of the message could not read it: its bytes have another digest, its list of pieces is malformed,
// its name has no versions, or it has a header that belongs to another kind of message.
func CheckKept(subject string, h nats.Header, data []byte) error {
	if owner, name, ok := ParseAlias(subject); ok {
		if HasBlob(h) { // the name's versions are stored as a blob
			return checkNamed(h, data)
		}
		a := Alias{Owner: owner, Name: name}
		if err := a.parseVersions(data); err != nil || len(a.Versions) > 0 {
			return err
		}
		return fault.New(fault.BadInput, "bus: the name %s has no versions", a.fullName())
	}
	s, err := message.ParseSubject(subject)
	switch {
	case err != nil:
		return fault.Wrap(fault.BadInput, err)
	case HasBlob(h): // such a header is for messages whose payload is kept as a blob
		return fault.New(fault.BadInput, "bus: header %s: bytes under their digest are not elsewhere", headerBlob)
	case len(h[headerPieces]) > 0:
		if _, err = parsePieceList(data); err != nil {
			return &fault.Error{Code: fault.BadInput, Err: err}
		}
		return nil
	}
	if got := wire.Digest(data); got != s.Digest {
		return fault.New(fault.BadInput, "%w: they have the digest %s", ErrDigest, got)
	}
	return nil
}

// checkNamed checks that a message whose payload is a blob has the blob's digest as its data.
func checkNamed(h nats.Header, data []byte) error {
	if name := blobOf(h); !form.IsDigest(name) || name != string(data) {
		return fault.New(fault.BadInput, "bus: header %s: %.80q, the data are %.80q", headerBlob, name, data)
	}
	return nil
}
