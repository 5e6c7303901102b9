package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// Headers of this package.
const (
	headerBlob   = "Btn-Blob"   // on a message: its payload is the blob of this digest
	headerObject = "Btn-Object" // on a blob: it is the object of this name
)

// envelope is room left for subject, headers and the server's own additions in a message.
const envelope = 4096

// Fit returns m, or in place of a payload that the server would not take, a message that names the payload's blob.
func (b *Bus) Fit(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	if int64(len(m.Data))+envelope <= b.NC.MaxPayload() {
		return m, nil
	}
	digest, err := b.PutBlob(ctx, m.Data)
	if err != nil {
		return nil, err
	}
	named := &nats.Msg{Subject: m.Subject, Header: nats.Header{}, Data: []byte(digest)}
	for k, v := range m.Header {
		named.Header[k] = v
	}
	named.Header[headerBlob] = []string{digest}
	return named, nil
}

// Payload returns what a message carries: its data, or the blob that its header names.
func (b *Bus) Payload(ctx context.Context, h nats.Header, data []byte) ([]byte, error) {
	name := h[headerBlob]
	if len(name) == 0 {
		return data, nil
	}
	if _, err := message.ParseSubject(wire.BlobSubject(name[0])); err != nil {
		return nil, fault.New(fault.BadInput, "bus: header %s: %.80q is no digest", headerBlob, name[0])
	}
	return b.GetBlob(ctx, name[0])
}

// shelf is where bytes lie under their digest: a message per digest and, for what exceeds the server's limit, an object.
type shelf struct {
	stream, bucket string
	subject        func(digest string) string
}

var (
	blobs  = shelf{StreamBlob, BucketBlob, wire.BlobSubject}    // go when no job needs them
	graphs = shelf{StreamGraph, BucketGraph, wire.GraphSubject} // stay
)

var (
	// ErrDigest: what is stored under a digest has another.
	ErrDigest = errors.New("bus: stored bytes are not those of their digest")
	// ErrLost: what a digest names is gone, in part or as a whole, or is damaged. Whoever has its bytes may put it again.
	ErrLost = errors.New("bus: stored bytes are lost")
)

// PutBlob stores data under its digest and returns that. A blob that is stored already is not stored again, but moves to the end
// of its stream if it is old: what a job relies on is younger than the job, or not much older, and stays until the job is answered.
// Nor does it stay if it is not what its digest says or if its object is gone, or every job that needs it would fail.
// What exceeds the server's limit goes to the object store, under a name of its own: writing an existing name again
// was seen to hang its readers.
func (b *Bus) PutBlob(ctx context.Context, data []byte) (digest string, err error) {
	return b.put(ctx, blobs, data)
}

func (b *Bus) put(ctx context.Context, in shelf, data []byte) (digest string, err error) {
	digest = wire.Digest(data)
	subject := in.subject(digest)
	stored, err := b.getRaw(ctx, in.stream, subject)
	var last uint64
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return "", err
	default:
		sound, err := b.intact(ctx, in, stored, digest)
		if err != nil {
			return "", err
		}
		if sound {
			if fresh, err := b.renew(ctx, in, stored); err != nil || fresh {
				return digest, err
			}
		}
		last = stored.Sequence
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	if int64(len(data))+envelope > b.NC.MaxPayload() {
		name, err := b.putObject(ctx, in, digest, data)
		if err != nil {
			return "", err
		}
		m.Data, m.Header[headerObject] = []byte(name), []string{name}
	}
	err = b.publish(ctx, spared(m), jetstream.WithExpectLastSequencePerSubject(last))
	if err = refusal(subject, err); last > 0 && errors.Is(err, errTaken) { // what was there may have made room
		err = b.publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(0))
		err = refusal(subject, err)
	}
	if err == nil {
		return digest, nil
	}
	if !errors.Is(err, errTaken) {
		return "", err
	}
	// Somebody else stored it since; an object of ours is left to expire, or to Remove.
	return digest, nil
}

// intact reports whether a stored blob is what its digest says; of an object, whether all of it is there: that it is damaged is found
// when it is read.
func (b *Bus) intact(ctx context.Context, in shelf, m *jetstream.RawStreamMsg, digest string) (bool, error) {
	name := m.Header[headerObject]
	if len(name) == 0 {
		return wire.Digest(m.Data) == digest, nil
	}
	_, err := b.object(ctx, in, name[0])
	if errors.Is(err, ErrLost) {
		return false, nil
	}
	return err == nil, err
}

// renew has a blob younger than its stream's Times.Renew, by moving it to the end of the stream. An object moves with its pointer, and
// that only in the first half of the object's life: false says that it has to be written again. Registered models do not age.
func (b *Bus) renew(ctx context.Context, in shelf, m *jetstream.RawStreamMsg) (fresh bool, err error) {
	b.mu.Lock()
	c := b.streams[in.stream].CachedInfo().Config
	b.mu.Unlock()
	if c.MaxAge == 0 || time.Since(m.Time) < min(TimesOf(c.Metadata).Renew, c.MaxAge/2) {
		return true, nil
	}
	if name := m.Header[headerObject]; len(name) > 0 {
		written, err := b.objectTime(ctx, in, name[0])
		if errors.Is(err, ErrNotFound) || err == nil && time.Since(written) > c.MaxAge/2 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	err = b.publish(ctx, bare(m), jetstream.WithExpectLastSequencePerSubject(m.Sequence))
	if err == nil {
		return true, nil
	}
	if err = refusal(m.Subject, err); errors.Is(err, errTaken) { // somebody else renewed it, or it has just gone
		return b.Has(ctx, in.stream, m.Subject)
	}
	return false, err
}

// objectTime is when an object was written. The error wraps ErrNotFound if there is none.
func (b *Bus) objectTime(ctx context.Context, in shelf, name string) (time.Time, error) {
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return time.Time{}, err
	}
	info, err := o.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return time.Time{}, fmt.Errorf("%w: object %s", ErrNotFound, name)
	}
	if err != nil {
		return time.Time{}, fault.New(fault.Infrastructure, "bus: object %s: %w", name, err)
	}
	return info.ModTime, nil
}

// HasBlob reports whether the blob of a digest is there and sound, and renews it: it stays for a job that relies on it from now on.
func (b *Bus) HasBlob(ctx context.Context, digest string) (bool, error) {
	m, err := b.getRaw(ctx, StreamBlob, wire.BlobSubject(digest))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if sound, err := b.intact(ctx, blobs, m, digest); err != nil || !sound {
		return false, err
	}
	return b.renew(ctx, blobs, m)
}

// GetBlob returns the blob of a digest, and checks that it is that. The error wraps ErrLost if it is not there, or not sound; then the
// next PutBlob writes it anew.
func (b *Bus) GetBlob(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.get(ctx, blobs, digest)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.Infrastructure, "%w: blob %.16s…: %w", ErrLost, digest, err)
	}
	return data, err
}

// get reads what is stored under a digest. What turns out to be unreadable loses its place to whoever puts it next.
func (b *Bus) get(ctx context.Context, in shelf, digest string) ([]byte, error) {
	m, err := b.getRaw(ctx, in.stream, in.subject(digest))
	if err != nil {
		return nil, err
	}
	data := m.Data
	if name := m.Header[headerObject]; len(name) > 0 {
		if data, err = b.getObject(ctx, in, name[0]); err != nil {
			if errors.Is(err, ErrLost) {
				b.drop(ctx, in, m.Sequence)
			}
			return nil, err
		}
	}
	if got := wire.Digest(data); got != digest {
		b.drop(ctx, in, m.Sequence)
		return nil, fault.New(fault.Infrastructure, "%w: %w: %s of %.16s… has the digest %.16s…", ErrLost, ErrDigest, in.stream, digest, got)
	}
	return data, nil
}

// drop deletes one stored message. If that fails somebody else will find what is wrong with it.
func (b *Bus) drop(ctx context.Context, in shelf, sequence uint64) {
	if s, err := b.Stream(ctx, in.stream); err == nil {
		s.DeleteMsg(ctx, sequence)
	}
}

func (b *Bus) store(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	b.mu.Lock()
	o := b.objects[bucket]
	b.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o, err := b.JS.ObjectStore(ctx, bucket)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: object store %s: %w", bucket, err)
	}
	b.mu.Lock()
	b.objects[bucket] = o
	b.mu.Unlock()
	return o, nil
}

func (b *Bus) putObject(ctx context.Context, in shelf, digest string, data []byte) (name string, err error) {
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s-%s", digest, nuid.Next())
	meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: b.chunk()}}
	chunks := "$O." + in.bucket + ".C."
	if _, err := b.try(chunks); err != nil {
		return "", err
	}
	if _, err = o.Put(ctx, meta, bytes.NewReader(data)); err == nil {
		b.stored(chunks)
		return name, nil
	}
	if !answered(err) && !errors.Is(err, context.Canceled) {
		if err := b.probeObjects(ctx, in, chunks+name); errors.Is(err, ErrStorage) {
			return "", err
		}
	}
	return "", refusal("object "+name, err)
}

// probeObjects finds out whether the stream of an object store stores anything, by a chunk of no object that goes at once.
func (b *Bus) probeObjects(ctx context.Context, in shelf, subject string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*storeWithin)
	defer cancel()
	if err := b.publish(ctx, &nats.Msg{Subject: subject, Data: make([]byte, probeBytes)}); err != nil {
		return err
	}
	s, err := b.Stream(ctx, "OBJ_"+in.bucket)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// chunk is the size in which objects are cut: the client library's own, or less where the server takes less.
func (b *Bus) chunk() uint32 { return uint32(min(128<<10, max(b.NC.MaxPayload()-envelope, 1<<10))) }

// object looks whether all chunks of an object are stored. The error wraps ErrLost if they are not.
func (b *Bus) object(ctx context.Context, in shelf, name string) (*jetstream.ObjectInfo, error) {
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return nil, err
	}
	info, err := o.GetInfo(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrBadObjectMeta):
		return nil, fault.New(fault.Infrastructure, "%w: object %s: %w", ErrLost, name, err)
	case err != nil:
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, err)
	}
	chunks := "$O." + in.bucket + ".C." + info.NUID
	there, err := b.Subjects(ctx, "OBJ_"+in.bucket, chunks)
	if err != nil {
		return nil, err
	}
	if have := there[chunks]; have != uint64(info.Chunks) {
		return nil, fault.New(fault.Infrastructure, "%w: object %s has %d of %d chunks", ErrLost, name, have, info.Chunks)
	}
	return info, nil
}

func (b *Bus) getObject(ctx context.Context, in shelf, name string) ([]byte, error) {
	info, err := b.object(ctx, in, name)
	if err != nil {
		return nil, err
	}
	if info.Size > message.MaxBlob {
		return nil, fault.New(fault.Infrastructure, "%w: object %s: %d bytes, at most %d", wire.ErrTooLarge, name, info.Size, message.MaxBlob)
	}
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return nil, err
	}
	data, err := readObject(ctx, o, name, int(info.Size))
	if damaged(err) && ctx.Err() == nil { // or broken off: who is not sure reads again
		data, err = readObject(ctx, o, name, int(info.Size))
	}
	switch {
	case ctx.Err() != nil:
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, ctx.Err())
	case damaged(err), errors.Is(err, jetstream.ErrObjectNotFound):
		return nil, fault.New(fault.Infrastructure, "%w: object %s: %w", ErrLost, name, err)
	case err != nil:
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, err)
	}
	return data, nil
}

// damaged reports whether what was read of an object is not what was written.
func damaged(err error) bool {
	return errors.Is(err, jetstream.ErrDigestMismatch) || errors.Is(err, io.ErrUnexpectedEOF)
}

// An object is read within leastRead, and a second more for so many bytes. Without a deadline the client library would give up after
// 5 s, however large the object is.
const (
	leastRead     = 30 * time.Second
	readPerSecond = 1 << 20
)

// readObject reads an object into one list of its size: GetBytes doubles a buffer until it is large enough.
func readObject(ctx context.Context, o jetstream.ObjectStore, name string, size int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, leastRead+time.Duration(size/readPerSecond)*time.Second)
	defer cancel()
	r, err := o.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	b.Grow(size + bytes.MinRead) // ReadFrom wants as much to see the end
	if _, err = b.ReadFrom(r); err == nil && b.Len() != size {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}
