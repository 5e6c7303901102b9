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
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Counts are the entries of a copy, or the ones restored from it.
type Counts struct {
	Registered, Names int // registered models, and names of such
	Jobs, Answers     int
	Known             int // of Registered, Names and Answers, and Jobs that have an answer: were there already

	Skipped []bus.Skipped // messages or entries that cannot be read
}

// skip notes a message or an entry that is passed over, and returns nil if the fault is its own; else it returns the error.
func (c *Counts) skip(subject string, err error) error {
	if errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrLost) || !bus.Unreadable(err) {
		return err
	}
	c.Skipped = append(c.Skipped, bus.Skipped{Subject: subject, Why: err})
	return nil
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
	if err := writeRegistered(ctx, b.Models, out, &c); err != nil {
		return c, err
	}
	answered := map[string]bool{}
	answers := func(from uint64) (last uint64, err error) {
		return each(ctx, b, bus.StreamAnswer, from, &c, func(m *jetstream.RawStreamMsg, job string, data []byte) error {
			answered[job] = true
			c.Answers++
			return put(out, m.Subject, m.Header, data, time.Time{})
		})
	}
	last, err := answers(1)
	if err != nil {
		return c, err
	}
	if _, err = each(ctx, b, bus.StreamModel, 1, &c, func(m *jetstream.RawStreamMsg, job string, data []byte) error {
		if answered[job] {
			return nil
		}
		c.Jobs++
		return put(out, m.Subject, nil, data, time.Time{})
	}); err != nil {
		return c, err
	}
	if _, err = answers(last + 1); err != nil {
		return c, err
	}
	return c, fault.Wrap(fault.Infrastructure, out.Close())
}

// writeRegistered copies the registered models and their names.
func writeRegistered(ctx context.Context, models *bus.Models, out *tar.Writer, c *Counts) error {
	all, err := models.List(ctx)
	if err != nil {
		return err
	}
	c.Skipped = all.Skipped
	for _, g := range all.Models {
		subject := message.Subject{Kind: message.KindGraph, Owner: g.Owner, Digest: g.Digest}.String()
		data, err := models.Get(ctx, g.Owner, g.Digest)
		switch {
		case err == nil:
			err = put(out, subject, nil, data, g.Time)
			c.Registered++
		case errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrLost): // removed since
			err = nil
		default:
			err = c.skip(subject, err)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range all.Names {
		data, err := json.Marshal(&a)
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		if err := put(out, a.Subject(), nil, data, time.Time{}); err != nil {
			return err
		}
		c.Names++
	}
	return nil
}

// each calls f with the messages of a stream that can be read, with their payloads, and returns the last sequence that it saw. The others
// are skipped.
func each(
	ctx context.Context, b *bus.Bus, stream string, from uint64, c *Counts, f func(m *jetstream.RawStreamMsg, job string, data []byte) error,
) (last uint64, err error) {
	for last = from - 1; ; {
		list, err := b.Log.Batch(ctx, stream, last+1, batch, batchBytes)
		if err != nil || len(list) == 0 {
			return last, err
		}
		for _, m := range list {
			last = m.Sequence
			subject := m.Subject
			s, err := message.ParseSubject(subject)
			var data []byte
			if err != nil { // nobody can name it
				err = fault.Wrap(fault.BadInput, err)
			} else if m, err = b.Log.Repair(ctx, stream, m); err == nil {
				data, err = b.Blobs.Payload(ctx, s.Owner, m.Header, m.Data)
			}
			if err == nil {
				err = f(m, s.Job, data)
			} else {
				err = c.skip(subject, err)
			}
			if err != nil {
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
// is full. An entry whose content is wrong is skipped. Memory is in proportion to the largest entry, and to the bytes that the archive has.
func Read(ctx context.Context, b *bus.Bus, to *client.Client, from io.Reader) (c Counts, err error) {
	tail := &tail{Reader: from}
	in := tar.NewReader(tail)
	for ctx.Err() == nil {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			if tail.zeros >= endBytes {
				return c, nil
			}
			err = errors.New("the archive has no end: it was cut off")
		}
		var e *entry
		if err == nil {
			e, err = readEntry(h, in)
		}
		if err != nil {
			return c, fault.New(fault.BadInput, "backup: after %d registered models, %d names, %d jobs and %d answers: %w",
				c.Registered, c.Names, c.Jobs, c.Answers, err)
		}
		if err := c.skip(h.Name, e.restore(ctx, b, to, &c)); err != nil {
			return c, fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return c, fault.Wrap(fault.Cancelled, ctx.Err())
}

// entry is one entry of a copy.
type entry struct {
	message.Subject        // of a model, an answer or a job
	alias           string // the name of registered models, "" for none; Owner is whose it is
	header          *tar.Header
	data            []byte
}

// readEntry reads an entry. It refuses one that is no plain file, whose name is nothing that a copy holds, or that is larger than a message
// of its kind: an archive of a few bytes may claim terabytes of zeros.
func readEntry(h *tar.Header, in io.Reader) (*entry, error) {
	e := &entry{header: h}
	plain := h.Typeflag == tar.TypeReg
	for record := range h.PAXRecords {
		plain = plain && !strings.HasPrefix(record, sparseRecords)
	}
	if !plain {
		return nil, fmt.Errorf("%.200q is no plain file (type %q): a copy has neither sparse files nor others", h.Name, h.Typeflag)
	}
	most := int64(wire.MaxMessage)
	if owner, name, ok := bus.ParseAlias(h.Name); ok {
		e.Owner, e.alias = owner, name
	} else {
		var err error
		if e.Subject, err = message.ParseSubject(h.Name); err != nil {
			return nil, err
		}
		switch e.Kind {
		case message.KindGraph, message.KindModel:
			most = wire.MaxModel
		case message.KindAnswer:
		default:
			return nil, fmt.Errorf("%s is nothing that a copy holds", h.Name)
		}
	}
	if h.Size > most {
		return nil, fmt.Errorf("%s has %d bytes, at most %d", h.Name, h.Size, most)
	}
	var err error
	e.data, err = io.ReadAll(in)
	return e, err
}

// sparseRecords begin the extended headers of a file with holes.
const sparseRecords = "GNU.sparse."

// restore stores an entry. An error that is Unreadable is about the entry's content.
func (e *entry) restore(ctx context.Context, b *bus.Bus, to *client.Client, c *Counts) error {
	switch {
	case e.alias != "":
		had, err := b.Models.RestoreName(ctx, e.Owner, e.alias, e.data)
		c.Names += one(err == nil)
		c.Known += one(had)
		return err
	case e.Kind == message.KindGraph:
		return readGraph(ctx, b, e.Subject, e.data, c)
	case e.Kind == message.KindAnswer:
		return readAnswer(ctx, b.Log, e.header, e.data, c)
	}
	return readJob(ctx, to, e.Job, e.data, c)
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
	if digest := wire.Digest(data); digest != s.Digest {
		return fault.New(fault.BadInput, "backup: the bytes have the digest %s", digest)
	}
	had, err := b.Log.Has(ctx, bus.StreamGraph, s.String())
	if err == nil {
		_, err = b.Models.Put(ctx, s.Owner, data)
	}
	c.Registered += one(err == nil)
	c.Known += one(err == nil && had)
	return err
}

func readAnswer(ctx context.Context, log *bus.Log, h *tar.Header, data []byte, c *Counts) error {
	headers := nats.Header{}
	if text := h.PAXRecords[recordHeaders]; text != "" {
		if err := json.Unmarshal([]byte(text), &headers); err != nil {
			return fault.New(fault.BadInput, "backup: headers: %w", err)
		}
	}
	earlier, err := log.PutOnce(ctx, bus.StreamAnswer, &nats.Msg{Subject: h.Name, Header: headers, Data: data})
	c.Answers += one(err == nil)
	c.Known += one(err == nil && earlier != nil)
	return err
}

func readJob(ctx context.Context, to *client.Client, job string, data []byte, c *Counts) error {
	var r wire.Request
	if err := wire.Decode(data, &r); err != nil {
		return err
	}
	if r.Job != job {
		return fault.New(fault.BadInput, "backup: it is of job %s", r.Job)
	}
	_, err := to.Answer(ctx, r.Job)
	if err == nil || !errors.Is(err, client.ErrNotFound) && fault.CodeOf(err) == fault.Infrastructure {
		c.Jobs += one(err == nil)
		c.Known += one(err == nil)
		return err
	}
	for {
		_, err := to.Submit(ctx, r)
		if !errors.Is(err, client.ErrFull) {
			c.Jobs += one(err == nil)
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
