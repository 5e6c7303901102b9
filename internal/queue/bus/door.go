package bus

// Tenants and clients have no right to publish to streams. A worker stores their messages for them, after these checks.

import (
	"context"

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

// admittedKinds are the kinds that Admitted lets through.
var admittedKinds = []message.Kind{
	message.KindModel, message.KindCancel, message.KindTimer, message.KindBlob, message.KindGraph,
}

// Admitted returns a user's message as it may be stored: on a subject without wildcards, without headers of the server, and never in
// the place of a job's request or of right bytes under their digest. The error wraps ErrQuota above a quota of the owner; its code
// is bad_input if nobody may store the message.
func (b *Bus) Admitted(ctx context.Context, subject string, h nats.Header, data []byte) (*nats.Msg, error) {
	s, unparsed := message.ParseSubject(subject)
	if s.Kind == message.KindTimer && unparsed == nil {
		return b.admitTimer(ctx, s, data)
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
		m = spared(m)
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{"0"}
		m.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{message.AnyLane(s.Job)}
	case message.KindBlob:
		stream = StreamBlob
		m, err = b.Blobs.Of(s.Owner).admitted(ctx, spared(m), s.Digest)
	case message.KindGraph:
		stream = StreamGraph
		m, err = b.Models.blobs.Of(s.Owner).admitted(ctx, spared(m), s.Digest)
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

// admitTimer returns the timer of a stored job that nobody owns, made anew of a user's deadline, so that it can name no other subject
// and no other time. It is not signed: where workers have keys they set timers themselves.
func (b *Bus) admitTimer(ctx context.Context, s message.Subject, data []byte) (*nats.Msg, error) {
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
