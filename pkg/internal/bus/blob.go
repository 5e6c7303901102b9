package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

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
	if _, err := wire.ParseSubject(wire.BlobSubject(name[0])); err != nil {
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
	blobs  = shelf{StreamBlob, BucketBlob, wire.BlobSubject}    // expire
	graphs = shelf{StreamGraph, BucketGraph, wire.GraphSubject} // stay
)

// ErrDigest: what is stored under a digest has another.
var ErrDigest = errors.New("bus: stored bytes are not those of their digest")

// PutBlob stores data under its digest and returns that. A blob that is stored already is not written again, unless it is
// past the half of its life: whoever puts a blob can rely on it for that long. Nor does it stay if it is not what its digest
// says, or every job that needs it would fail for that long. What exceeds the server's limit goes to the
// object store, under a name of its own: writing an existing name again was seen to hang its readers.
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
	case !b.ageing(in, stored) && intact(stored, digest):
		return digest, nil
	default:
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
	_, err = b.JS.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
	if err == nil {
		return digest, nil
	}
	if err = refusal(subject, err); !errors.Is(err, errTaken) {
		return "", err
	}
	// Somebody else stored it since; an object of ours is left to expire, or to Remove.
	return digest, nil
}

// intact reports whether a stored blob is what its digest says; of an object that is known once it is read.
func intact(m *jetstream.RawStreamMsg, digest string) bool {
	return len(m.Header[headerObject]) > 0 || wire.Digest(m.Data) == digest
}

// ageing reports whether a blob is past the half of its life.
func (b *Bus) ageing(in shelf, m *jetstream.RawStreamMsg) bool {
	b.mu.Lock()
	s := b.streams[in.stream]
	b.mu.Unlock()
	age := s.CachedInfo().Config.MaxAge
	return age > 0 && time.Since(m.Time) > age/2
}

// HasBlob reports whether the blob of a digest is there, sound, and will be for at least half its life: what PutBlob
// would not write again.
func (b *Bus) HasBlob(ctx context.Context, digest string) (bool, error) {
	m, err := b.getRaw(ctx, StreamBlob, wire.BlobSubject(digest))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && !b.ageing(blobs, m) && intact(m, digest), err
}

// GetBlob returns the blob of a digest, and checks that it is that.
func (b *Bus) GetBlob(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.get(ctx, blobs, digest)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.Infrastructure, "bus: blob %.16s… is gone: %w", digest, err)
	}
	return data, err
}

func (b *Bus) get(ctx context.Context, in shelf, digest string) ([]byte, error) {
	m, err := b.getRaw(ctx, in.stream, in.subject(digest))
	if err != nil {
		return nil, err
	}
	data := m.Data
	if name := m.Header[headerObject]; len(name) > 0 {
		if data, err = b.getObject(ctx, in, name[0]); err != nil {
			return nil, err
		}
	}
	if got := wire.Digest(data); got != digest {
		return nil, fault.New(fault.Infrastructure, "%w: %s of %.16s… has the digest %.16s…", ErrDigest, in.stream, digest, got)
	}
	return data, nil
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
	if _, err := o.Put(ctx, meta, bytes.NewReader(data)); err != nil {
		return "", refusal("object "+name, err)
	}
	return name, nil
}

// chunk is the size in which objects are cut: the client library's own, or less where the server takes less.
func (b *Bus) chunk() uint32 { return uint32(min(128<<10, max(b.NC.MaxPayload()-envelope, 1<<10))) }

func (b *Bus) getObject(ctx context.Context, in shelf, name string) ([]byte, error) {
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return nil, err
	}
	data, err := readObject(ctx, o, name)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, err)
	}
	return data, nil
}

// readObject reads an object into one list of its size: GetBytes doubles a buffer until it is large enough.
func readObject(ctx context.Context, o jetstream.ObjectStore, name string) ([]byte, error) {
	r, err := o.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		return nil, err
	}
	if info.Size > wire.MaxBlob {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", wire.ErrTooLarge, info.Size, wire.MaxBlob)
	}
	var b bytes.Buffer
	b.Grow(int(info.Size) + bytes.MinRead) // ReadFrom wants as much to see the end
	_, err = b.ReadFrom(r)
	return b.Bytes(), err
}
