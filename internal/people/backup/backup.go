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

// Counts says how many entries a copy has, or how many were restored from it.
type Counts struct {
	Registered, Names int // registered models, and names of such
	Jobs, Answers     int // jobs without an answer, and answers
	AlreadyThere      int // how many of these were there already; a job counts if it has an answer

	Skipped []bus.Skipped // messages or entries that cannot be read
}

// skip decides about the error of a message or an entry, which may be nil. If its content is at fault, skip notes it and returns nil, so
// that the caller goes on; else it returns the error.
func (c *Counts) skip(subject string, err error) error {
	isAbsent := errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrLost)
	if isAbsent || !bus.IsUnreadable(err) {
		return err
	}
	c.Skipped = append(c.Skipped, bus.Skipped{Subject: subject, Why: err})
	return nil
}

// recordHeaders is the extended header of an entry that has the headers of its message, named as tar names attributes
// of files.
const recordHeaders = "SCHILY.xattr.user.basetensor.headers" // as a file has them that tar knows

// Limits of the messages that are fetched at a time.
const (
	batchMessages = 256
	batchBytes    = 4 << 20
)

// Write writes a copy. Workers may be at work meanwhile: it copies the answers, then the jobs that had none, then the
// answers that came in between. So a job that is answered meanwhile is in the copy as a job, as an answer, or as both.
func Write(ctx context.Context, b *bus.Bus, output io.Writer) (counts Counts, err error) {
	archive := tar.NewWriter(output)
	if err := writeRegistered(ctx, b.Models, archive, &counts); err != nil {
		return counts, err
	}
	answered := map[string]bool{} // jobs
	writeAnswers := func(from uint64) (lastSequence uint64, err error) {
		return forEachMessage(ctx, b, bus.StreamAnswer, from, &counts, func(m *jetstream.RawStreamMsg, job string, data []byte) error {
			answered[job] = true
			counts.Answers++
			return writeEntry(archive, m.Subject, m.Header, data, time.Time{})
		})
	}
	writeJob := func(m *jetstream.RawStreamMsg, job string, data []byte) error {
		if answered[job] {
			return nil
		}
		counts.Jobs++
		return writeEntry(archive, m.Subject, nil, data, time.Time{})
	}

	// The answers, the jobs without an answer, and the answers that came meanwhile.
	lastSequence, err := writeAnswers(1)
	if err != nil {
		return counts, err
	}
	if _, err = forEachMessage(ctx, b, bus.StreamModel, 1, &counts, writeJob); err != nil {
		return counts, err
	}
	if _, err = writeAnswers(lastSequence + 1); err != nil {
		return counts, err
	}
	return counts, fault.Wrap(fault.Infrastructure, archive.Close())
}

// writeRegistered copies the registered models and their names.
func writeRegistered(ctx context.Context, models *bus.Models, archive *tar.Writer, counts *Counts) error {
	list, err := models.List(ctx)
	if err != nil {
		return err
	}
	counts.Skipped = list.Skipped

	// The models; one may be removed meanwhile.
	for _, model := range list.Models {
		subject := message.Subject{Kind: message.KindGraph, Owner: model.Owner, Digest: model.Digest}.String()
		data, err := models.Get(ctx, model.Owner, model.Digest)
		switch {
		case err == nil:
			err = writeEntry(archive, subject, nil, data, model.Time)
			counts.Registered++
		case errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrLost): // removed since
			err = nil
		default:
			err = counts.skip(subject, err)
		}
		if err != nil {
			return err
		}
	}

	// The names.
	for _, alias := range list.Names {
		data, err := json.Marshal(&alias)
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		if err := writeEntry(archive, alias.Subject(), nil, data, time.Time{}); err != nil {
			return err
		}
		counts.Names++
	}
	return nil
}

// forEachMessage calls visit with each message of a stream from a sequence on, with its job and its payload. It skips
// the messages that cannot be read and counts them. last is the last sequence that it has seen.
func forEachMessage(
	ctx context.Context, b *bus.Bus, stream string, from uint64, counts *Counts,
	visit func(m *jetstream.RawStreamMsg, job string, data []byte) error,
) (last uint64, err error) {
	for last = from - 1; ; {
		messages, err := b.Log.Batch(ctx, stream, last+1, batchMessages, batchBytes)
		if err != nil || len(messages) == 0 {
			return last, err
		}
		for _, m := range messages {
			last = m.Sequence

			// Read it: its subject, and its payload, which may be in another place.
			subject := m.Subject
			parsed, err := message.ParseSubject(subject)
			var data []byte
			if err != nil { // nobody can name it
				err = fault.Wrap(fault.BadInput, err)
			} else if m, err = b.Log.Repair(ctx, stream, m); err == nil {
				data, err = b.Blobs.Payload(ctx, parsed.Owner, m.Header, m.Data)
			}

			// Visit it, or skip it if it cannot be read.
			if err == nil {
				err = visit(m, parsed.Job, data)
			} else {
				err = counts.skip(subject, err)
			}
			if err != nil {
				return last, err
			}
		}
	}
}

// writeEntry writes one entry of the archive: a message's payload, named by its subject. headers may be nil.
func writeEntry(archive *tar.Writer, subject string, headers nats.Header, data []byte, stored time.Time) error {
	header := &tar.Header{Name: subject, Mode: 0o600, Size: int64(len(data)), ModTime: stored, Format: tar.FormatPAX}
	if ownHeaders := bus.AuthorHeaders(headers); len(ownHeaders) > 0 {
		text, err := json.Marshal(ownHeaders)
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		header.PAXRecords = map[string]string{recordHeaders: string(text)}
	}
	err := archive.WriteHeader(header)
	if err == nil {
		_, err = archive.Write(data)
	}
	return fault.Wrap(fault.Infrastructure, err)
}

// retryPause is how long Read waits if there is no room for a job.
const retryPause = 200 * time.Millisecond

// Read restores a copy. It leaves existing entries as they are, so the same copy may be read again after a failure. An
// entry whose content is wrong is skipped.
//
// Jobs are submitted as their clients did: those that have an answer are not computed again, deadlines start again, and
// Read waits while a lane or a stream is full. Memory is in proportion to the largest entry, and to the bytes that the
// archive has.
func Read(ctx context.Context, b *bus.Bus, jobs *client.Client, input io.Reader) (counts Counts, err error) {
	counter := &zeroCounter{Reader: input}
	archive := tar.NewReader(counter)
	for ctx.Err() == nil {
		// Read the next entry. The archive is whole if it ends with zeros.
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			if counter.zeros >= endBytes {
				return counts, nil
			}
			err = errors.New("the archive has no end: it was cut off")
		}
		var e *entry
		if err == nil {
			e, err = readEntry(header, archive)
		}
		if err != nil {
			return counts, fault.New(fault.BadInput, "backup: after %d registered models, %d names, %d jobs and %d answers: %w",
				counts.Registered, counts.Names, counts.Jobs, counts.Answers, err)
		}

		// Store it, or skip it if its content is wrong.
		if err := counts.skip(header.Name, e.restore(ctx, b, jobs, &counts)); err != nil {
			return counts, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	return counts, fault.Wrap(fault.Cancelled, ctx.Err())
}

// entry is one entry of a copy.
type entry struct {
	message.Subject        // of a model, an answer or a job; Owner is that of a name too
	alias           string // name of a registered model, owned by Owner; "" if the entry is no name
	header          *tar.Header
	data            []byte // its content
}

// readEntry reads an entry. It refuses one that is no plain file, whose name is nothing that a copy holds, or that is
// larger than a message of its kind can be: an archive of a few bytes may claim terabytes of zeros.
func readEntry(h *tar.Header, in io.Reader) (*entry, error) {
	// It is a file without holes.
	e := &entry{header: h}
	isPlain := h.Typeflag == tar.TypeReg
	for record := range h.PAXRecords {
		isPlain = isPlain && !strings.HasPrefix(record, sparsePrefix)
	}
	if !isPlain {
		return nil, fmt.Errorf("%.200q is no plain file (type %q): a copy has neither sparse files nor others", h.Name, h.Typeflag)
	}

	// Its name says what it is, and how large it may be.
	maxSize := int64(wire.MaxMessage)
	if owner, name, ok := bus.ParseAlias(h.Name); ok {
		e.Owner, e.alias = owner, name
	} else {
		var err error
		if e.Subject, err = message.ParseSubject(h.Name); err != nil {
			return nil, err
		}
		switch e.Kind {
		case message.KindGraph, message.KindModel:
			maxSize = wire.MaxModel
		case message.KindAnswer:
		default:
			return nil, fmt.Errorf("%s is nothing that a copy holds", h.Name)
		}
	}
	if h.Size > maxSize {
		return nil, fmt.Errorf("%s has %d bytes, at most %d", h.Name, h.Size, maxSize)
	}

	var err error
	e.data, err = io.ReadAll(in)
	return e, err
}

// sparsePrefix begins the names of extended headers of a file with holes.
const sparsePrefix = "GNU.sparse."

// restore stores an entry and counts it. An error that is Unreadable is about the entry's content.
func (e *entry) restore(ctx context.Context, b *bus.Bus, jobs *client.Client, counts *Counts) error {
	switch {
	case e.alias != "":
		wasThere, err := b.Models.RestoreName(ctx, e.Owner, e.alias, e.data)
		counts.Names += countOf(err == nil)
		counts.AlreadyThere += countOf(wasThere)
		return err
	case e.Kind == message.KindGraph:
		return restoreModel(ctx, b, e.Subject, e.data, counts)
	case e.Kind == message.KindAnswer:
		return restoreAnswer(ctx, b.Log, e.header, e.data, counts)
	}
	return restoreJob(ctx, jobs, e.Job, e.data, counts)
}

// endBytes is the number of zero bytes that end an archive. The reader of tar takes every end of file for the end.
const endBytes = 1024

// zeroCounter is a reader that counts the zero bytes at the end of what was read so far.
type zeroCounter struct {
	io.Reader
	zeros int // trailing zero bytes
}

// Read reads from the underlying reader, and counts in zeros the bytes of 0 with which all that was read so far ends.
func (t *zeroCounter) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	nonZero := bytes.TrimRight(p[:n], "\x00") // what was read, without the zeros at its end
	if len(nonZero) > 0 {
		t.zeros = 0
	}
	t.zeros += n - len(nonZero)
	return n, err
}

// restoreModel registers a model if its bytes have the digest of its subject.
func restoreModel(ctx context.Context, b *bus.Bus, s message.Subject, data []byte, counts *Counts) error {
	if digest := wire.Digest(data); digest != s.Digest {
		return fault.New(fault.BadInput, "backup: the bytes have the digest %s", digest)
	}
	wasThere, err := b.Log.Has(ctx, bus.StreamGraph, s.String())
	if err == nil {
		_, err = b.Models.Put(ctx, s.Owner, data)
	}
	counts.Registered += countOf(err == nil)
	counts.AlreadyThere += countOf(err == nil && wasThere)
	return err
}

// restoreAnswer stores an answer with its headers, unless the job has one.
func restoreAnswer(ctx context.Context, log *bus.Log, header *tar.Header, data []byte, counts *Counts) error {
	headers := nats.Header{}
	if text := header.PAXRecords[recordHeaders]; text != "" {
		if err := json.Unmarshal([]byte(text), &headers); err != nil {
			return fault.New(fault.BadInput, "backup: headers: %w", err)
		}
	}
	earlier, err := log.PutOnce(ctx, bus.StreamAnswer, &nats.Msg{Subject: header.Name, Header: headers, Data: data})
	counts.Answers += countOf(err == nil)
	counts.AlreadyThere += countOf(err == nil && earlier != nil)
	return err
}

// restoreJob submits a job unless it has an answer, and waits while there is no room for it.
func restoreJob(ctx context.Context, jobs *client.Client, job string, data []byte, counts *Counts) error {
	var request wire.Request
	if err := wire.Decode(data, &request); err != nil {
		return err
	}
	if request.Job != job {
		return fault.New(fault.BadInput, "backup: it is of job %s", request.Job)
	}

	// A job that has an answer is done. An answer that is there but cannot be read does not count: the job is submitted again.
	_, err := jobs.Answer(ctx, request.Job)
	isUnknown := !errors.Is(err, client.ErrNotFound) && fault.CodeOf(err) == fault.Infrastructure // nobody could say
	switch {
	case err == nil:
		counts.Jobs++
		counts.AlreadyThere++
		return nil
	case isUnknown:
		return err
	}

	// Submit it, again and again while there is no room.
	for {
		_, err := jobs.Submit(ctx, request)
		if !errors.Is(err, client.ErrFull) {
			counts.Jobs += countOf(err == nil) // 1 or 0
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// countOf returns 1 if condition is true, else 0.
func countOf(condition bool) int {
	if condition {
		return 1
	}
	return 0
}
