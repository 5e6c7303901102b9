package bus

// Tenants and clients have no right to publish to streams. A worker stores their messages for them, after these checks.

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

// OwnerOn returns whose message is on a subject, also on that of a name; false if it is no subject of version 1.
func OwnerOn(subject string) (owner string, ok bool) {
	if owner, _, ok := ParseAlias(subject); ok {
		return owner, true
	}
	s, err := message.ParseSubject(subject)
	return s.Owner, err == nil
}

// vettedKinds are the kinds that Vet lets through.
var vettedKinds = []message.Kind{
	message.KindModel, message.KindCancel, message.KindTimer, message.KindBlob, message.KindGraph,
}

// Vet returns a user's message as it may be stored: on a subject without wildcards, without headers of the server, and never in
// the place of a job's request or of right bytes under their digest. The error wraps ErrQuota above a quota of the owner; its code
// is bad_input if nobody may store the message.
func (b *Bus) Vet(ctx context.Context, subject string, h nats.Header, data []byte) (*nats.Msg, error) {
	s, unparsed := message.ParseSubject(subject)
	if s.Kind == message.KindTimer && unparsed == nil {
		return b.vetTimer(ctx, s, data)
	}
	headers, err := message.UserHeaders(h)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject, Header: headers, Data: data}
	if last := h[jetstream.ExpectedLastSubjSeqHeader]; len(last) > 0 {
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = last[:1:1]
	}
	conditional := h.Get(jetstream.ExpectedLastSubjSeqSubjHeader)
	if conditional != "" && conditional != subject && (s.Kind != message.KindModel || conditional != message.AnyLane(s.Job)) {
		return nil, fault.New(fault.BadInput, "a condition on %.200q is none on the message's own subject", conditional)
	}
	if owner, name, ok := ParseAlias(subject); ok {
		if owner == "" {
			return nil, fault.New(fault.BadInput, "the name %s is everybody's: only the operator sets it", name)
		}
		if err := CheckKept(subject, headers, data); err != nil {
			return nil, err
		}
		return m, b.Log.admit.ask(ctx, StreamGraph, subject, m.Header, len(data))
	}
	if unparsed != nil {
		return nil, fault.Wrap(fault.BadInput, unparsed)
	}
	stream := ""
	switch s.Kind {
	case message.KindModel:
		stream = StreamModel
		m = withSpare(m)
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
		m.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{message.AnyLane(s.Job)}
	case message.KindBlob:
		stream = StreamBlob
		m, err = b.Blobs.Of(s.Owner).vet(ctx, withSpare(m), s.Digest)
	case message.KindGraph:
		stream = StreamGraph
		m, err = b.Models.blobs.Of(s.Owner).vet(ctx, withSpare(m), s.Digest)
	case message.KindCancel:
		return m, nil
	default:
		return nil, fault.New(fault.BadInput, "nobody may store messages on %s", subject)
	}
	if err == nil {
		err = b.Log.admit.ask(ctx, stream, subject, m.Header, len(data))
	}
	return m, err
}

// vetTimer returns the timer of a stored job that nobody owns, made anew of a user's deadline, so that it can name no other subject
// and no other time. It is not signed: if workers have keys they set timers themselves.
func (b *Bus) vetTimer(ctx context.Context, s message.Subject, data []byte) (*nats.Msg, error) {
	var d wire.Deadline
	if err := wire.Decode(data, &d); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	if d.Job != s.Job || !form.IsToken(d.Job) {
		return nil, fault.New(fault.BadInput, "a deadline of job %.130q is no timer of %s", d.Job, s.Job)
	}
	switch has, err := b.Log.Has(ctx, StreamModel, wire.ModelSubject(s.Lane, s.Job)); {
	case err != nil:
		return nil, err
	case !has:
		return nil, fault.New(fault.BadInput, "job %s is not stored in lane %d, and needs no timer", s.Job, s.Lane)
	}
	m, _, err := timer(s.Lane, &d)
	if err == nil {
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
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

// CodeOf returns the code for an error of Vet.
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

// refusedFor returns the error for a refusal by the worker that stores for tenants. For a refusal by a stream it returns nil.
func refusedFor(subject string, api *jetstream.APIError) error {
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

// CheckKept returns an error, with the code bad_input, for a message on the subject of a blob, a registered model or a name that its
// readers could not read: bytes of another digest, a list of pieces that is none, a name without versions, a header of another kind of
// message.
func CheckKept(subject string, h nats.Header, data []byte) error {
	if owner, name, ok := ParseAlias(subject); ok {
		if HasBlob(h) {
			return checkNamed(h, data)
		}
		a := Alias{Owner: owner, Name: name}
		if err := a.read(data); err != nil || len(a.Versions) > 0 {
			return err
		}
		return fault.New(fault.BadInput, "bus: the name %s has no versions", a.full())
	}
	s, err := message.ParseSubject(subject)
	switch {
	case err != nil:
		return fault.Wrap(fault.BadInput, err)
	case HasBlob(h):
		return fault.New(fault.BadInput, "bus: header %s: bytes under their digest are not elsewhere", headerBlob)
	case len(h[headerPieces]) > 0:
		if _, err = piecesOf(data); err != nil {
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
