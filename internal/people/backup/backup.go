// Package backup copies the irreplaceable content of the streams out of them and back: registered models, jobs without an
// answer, and answers. A copy is a tar archive with an entry per message, named by its subject.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Counts are the entries of a copy, or the ones restored from it.
type Counts struct {
	Registered, Jobs, Answers int // Registered: models, and their names
	Known                     int // of Registered and Answers, and Jobs that have an answer: were there already
}

// recordHeaders is the extended header of an entry with the headers of its message.
const recordHeaders = "SCHILY.xattr.user.basetensor.headers" // as a file has them that tar knows

const (
	batch      = 256
	batchBytes = 4 << 20
)

// Write makes a copy. Workers may be at work meanwhile: first come the answers, then the jobs that had none, then the answers that
// came in between, so that a job which is answered meanwhile is in the copy as a job, as an answer, or as both.
func Write(ctx context.Context, b *bus.Bus, to io.Writer) (c Counts, err error) {
	out := tar.NewWriter(to)
	list, err := b.Graphs(ctx)
	if err != nil {
		return c, err
	}
	for _, g := range list {
		data, err := b.GetGraph(ctx, g.Owner, g.Digest)
		if errors.Is(err, bus.ErrNotFound) {
			continue // removed since
		}
		if err != nil {
			return c, err
		}
		if err := put(out, message.Subject{Kind: message.KindGraph, Owner: g.Owner, Digest: g.Digest}.String(), nil, data, g.Time); err != nil {
			return c, err
		}
		c.Registered++
	}

	aliases, err := b.Aliases(ctx)
	if err != nil {
		return c, err
	}
	for _, a := range aliases {
		data, err := json.Marshal(&a)
		if err != nil {
			return c, fault.Wrap(fault.Internal, err)
		}
		if err := put(out, a.Subject(), nil, data, time.Time{}); err != nil {
			return c, err
		}
		c.Registered++
	}

	answered := map[string]bool{}
	answers := func(from uint64) (last uint64, err error) {
		return each(ctx, b, bus.StreamAnswer, from, func(e bus.Entry, job string, data []byte) error {
			answered[job] = true
			c.Answers++
			return put(out, e.Subject, e.Header, data, time.Time{})
		})
	}
	last, err := answers(1)
	if err != nil {
		return c, err
	}
	if _, err = each(ctx, b, bus.StreamModel, 1, func(e bus.Entry, job string, data []byte) error {
		if answered[job] {
			return nil
		}
		c.Jobs++
		return put(out, e.Subject, nil, data, time.Time{})
	}); err != nil {
		return c, err
	}
	if _, err = answers(last + 1); err != nil {
		return c, err
	}
	return c, fault.Wrap(fault.Infrastructure, out.Close())
}

// each calls f with the messages of a stream that can be read, with their payloads, and returns the last sequence that it saw.
func each(
	ctx context.Context, b *bus.Bus, stream string, from uint64, f func(e bus.Entry, job string, data []byte) error,
) (last uint64, err error) {
	for last = from - 1; ; {
		list, err := b.Batch(ctx, stream, last+1, batch, batchBytes)
		if err != nil || len(list) == 0 {
			return last, err
		}
		for _, e := range list {
			last = e.Sequence
			s, err := message.ParseSubject(e.Subject)
			if err != nil {
				continue // nobody can name it
			}
			data, err := b.Payload(ctx, s.Owner, e.Header, e.Data)
			if errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrLost) || errors.Is(err, bus.ErrDigest) {
				continue // its large payload went, and with it the job
			}
			if err != nil {
				return last, err
			}
			if err := f(e, s.Job, data); err != nil {
				return last, err
			}
		}
	}
}

// put writes an entry.
func put(out *tar.Writer, subject string, headers nats.Header, data []byte, stored time.Time) error {
	h := &tar.Header{Name: subject, Mode: 0o600, Size: int64(len(data)), ModTime: stored, Format: tar.FormatPAX}
	if own := bus.Plain(headers); len(own) > 0 {
		text, err := json.Marshal(own)
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		h.PAXRecords = map[string]string{recordHeaders: string(text)}
	}
	err := out.WriteHeader(h)
	if err == nil {
		_, err = out.Write(data)
	}
	return fault.Wrap(fault.Infrastructure, err)
}

// pause is how long Read waits when there is no room for a job.
const pause = 200 * time.Millisecond

// Read restores a copy. Existing entries stay as they are, so the same copy may be read again after a failure. Jobs are submitted as
// their clients did: those that have an answer are not computed again, deadlines start again, and Read waits where a lane or a stream
// is full.
func Read(ctx context.Context, b *bus.Bus, to *client.Client, from io.Reader) (c Counts, err error) {
	tail := &tail{Reader: from}
	in := tar.NewReader(tail)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			if tail.zeros >= endBytes {
				return c, nil
			}
			err = errors.New("the archive has no end: it was cut off")
		}
		var s message.Subject
		var owner, name string
		alias := false
		if err == nil {
			if owner, name, alias = bus.ParseAlias(h.Name); !alias {
				s, err = message.ParseSubject(h.Name)
			}
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(in)
		}
		if err != nil {
			return c, fault.New(fault.BadInput, "backup: after %+v: %w", c, err)
		}
		switch {
		case alias:
			var had bool
			had, err = b.RestoreAlias(ctx, owner, name, data)
			c.Registered++
			c.Known += one(had)
		case s.Kind == message.KindGraph:
			err = readGraph(ctx, b, s, data, &c)
		case s.Kind == message.KindAnswer:
			err = readAnswer(ctx, b, h, data, &c)
		case s.Kind == message.KindModel:
			err = readJob(ctx, to, data, &c)
		default:
			err = fault.New(fault.BadInput, "backup: %s is nothing that a copy holds", h.Name)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// endBytes is the number of zero bytes that end an archive; the reader of tar takes any end of file for one.
const endBytes = 1024

// tail counts the zero bytes at the end of what was read.
type tail struct {
	io.Reader
	zeros int
}

// Read reads, and counts.
func (t *tail) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	rest := bytes.TrimRight(p[:n], "\x00")
	if len(rest) > 0 {
		t.zeros = 0
	}
	t.zeros += n - len(rest)
	return n, err
}

func readGraph(ctx context.Context, b *bus.Bus, s message.Subject, data []byte, c *Counts) error {
	had, err := b.Has(ctx, bus.StreamGraph, s.String())
	if err != nil {
		return err
	}
	digest, err := b.PutGraphOf(ctx, s.Owner, data)
	if err == nil && digest != s.Digest {
		return fault.New(fault.BadInput, "backup: the bytes have the digest %s", digest)
	}
	c.Registered++
	c.Known += one(had)
	return err
}

func readAnswer(ctx context.Context, b *bus.Bus, h *tar.Header, data []byte, c *Counts) error {
	headers := nats.Header{}
	if text := h.PAXRecords[recordHeaders]; text != "" {
		if err := json.Unmarshal([]byte(text), &headers); err != nil {
			return fault.New(fault.BadInput, "backup: headers: %w", err)
		}
	}
	earlier, err := b.Once(ctx, bus.StreamAnswer, &nats.Msg{Subject: h.Name, Header: headers, Data: data})
	c.Answers++
	c.Known += one(earlier != nil)
	return err
}

func readJob(ctx context.Context, to *client.Client, data []byte, c *Counts) error {
	var r wire.Request
	if err := wire.Decode(data, &r); err != nil {
		return err
	}
	_, err := to.Answer(ctx, r.Job)
	if err == nil || !errors.Is(err, client.ErrNotFound) && fault.CodeOf(err) == fault.Infrastructure {
		c.Jobs++
		c.Known += one(err == nil)
		return err
	}
	for {
		_, err := to.Submit(ctx, r)
		if !errors.Is(err, client.ErrFull) {
			c.Jobs++
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
