package bus

// Bytes that exceed the limit of the server, and that nobody owns, are objects of an object store.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/network/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// ackWithin is how long the acknowledgement of a chunk may take. Up to 500 MiB of an object are in
// flight, so that it is the time in which a loaded server stores that much, not the round trip of
// one request.
const ackWithin = 2 * time.Minute

// bulk is a connection for objects: on the one for messages these would wait behind megabytes, on
// their way to the server and from it.
type bulk struct {
	mu sync.Mutex
	js jetstream.JetStream // nil until there is an object
}

// over returns the streams over the connection for objects, which has the settings of nc and ends
// with it.
func (b *bulk) over(nc *nats.Conn, api string) (jetstream.JetStream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.js != nil {
		return b.js, nil
	}

	closed := nc.StatusChanged(nats.CLOSED)
	if nc.IsClosed() { // the channel may never tell
		return nil, nats.ErrConnectionClosed
	}
	options := nc.Opts
	options.Name += " (objects)"
	own, err := options.Connect()
	if err != nil {
		nc.RemoveStatusListener(closed)
		return nil, err
	}
	if b.js, err = jetstream.NewWithAPIPrefix(own, api, jetstream.WithDefaultTimeout(ackWithin)); err != nil {
		nc.RemoveStatusListener(closed)
		own.Close()
		return nil, err
	}
	go func() {
		<-closed
		own.Close()
	}()
	return b.js, nil
}

// store returns the handle of an object store; the first call asks the server for it.
func (b *chunked) store(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	b.mu.Lock()
	o := b.objects[bucket]
	b.mu.Unlock()
	if o != nil {
		return o, nil
	}

	js, err := b.bulk.over(b.NC, b.API)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: object store %s: %w", bucket, err)
	}
	for until := time.Now().Add(patience); ; { // a question that was lost with its connection has no answer
		one, cancel := context.WithTimeout(ctx, b.AnswerWithin(answerWithin))
		o, err = js.ObjectStore(one, bucket)
		again := one.Err() != nil && ctx.Err() == nil && time.Now().Before(until)
		cancel()
		if !again {
			break
		}
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		err = fmt.Errorf("%w: %w", ErrNoStream, err)
	}
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: object store %s: %w", bucket, err)
	}

	b.mu.Lock()
	b.objects[bucket] = o
	b.mu.Unlock()
	return o, nil
}

// objectsIn returns the descriptions of a store's objects.
func (b *chunked) objectsIn(ctx context.Context, bucket string) ([]*jetstream.ObjectInfo, error) {
	described := "$O." + bucket + ".M."
	there, err := b.Subjects(ctx, "OBJ_"+bucket, described+">")
	if err != nil {
		return nil, err
	}
	var all []*jetstream.ObjectInfo
	for subject := range there {
		name, err := base64.URLEncoding.DecodeString(subject[len(described):])
		if err != nil {
			continue // not written by this program
		}
		info, err := b.described(ctx, bucket, string(name))
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, info)
		}
	}
	return all, nil
}

// putObject writes data as an object with a new name, which begins with the digest.
func (b *chunked) putObject(
	ctx context.Context, in shelf, digest string, data []byte,
) (name string, err error) {
	o, err := b.store(ctx, in.bucket)
	if err != nil {
		return "", err
	}

	name = fmt.Sprintf("%s-%s", digest, nuid.Next())
	meta := jetstream.ObjectMeta{
		Name: name,
		Opts: &jetstream.ObjectMetaOptions{ChunkSize: b.chunk()},
	}
	chunks := "$O." + in.bucket + ".C."
	if _, err := b.try(chunks); err != nil {
		return "", err
	}

	if err = putOnce(ctx, o, meta, data); err == nil {
		b.stored(chunks)
		if err = b.checkObject(ctx, in, name, len(data)); damaged(err) && ctx.Err() == nil {
			return b.putObject(ctx, in, digest, data)
		}
		return name, err
	}

	// Without an answer the stream may be storing nothing.

	if !answered(err) && !errors.Is(err, context.Canceled) {
		if err := b.probeObjects(ctx, in, chunks+name); errors.Is(err, ErrStorage) {
			return "", err
		}
	}
	return "", refusal("object "+name, err)
}

// putOnce writes an object. Where its context ends, it returns, and the written chunks are removed:
// the client library purges chunks of an abandoned object, but under the context that has ended,
// and then they would stay, with nobody to delete them.
func putOnce(ctx context.Context, o jetstream.ObjectStore, meta jetstream.ObjectMeta, data []byte) error {
	lasting := context.WithoutCancel(ctx)
	put := make(chan error, 1)
	go func() {
		_, err := o.Put(lasting, meta, whileWanted{ctx, bytes.NewReader(data)})
		if err == nil && ctx.Err() != nil {
			short, cancel := context.WithTimeout(lasting, ackWithin)
			defer cancel()
			_ = o.Delete(short, meta.Name) // else it expires
		}
		put <- err
	}()
	select {
	case err := <-put:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whileWanted is a reader that ends with a context.
type whileWanted struct {
	ctx context.Context
	*bytes.Reader
}

func (r whileWanted) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// checkObject reads a written object back in a cluster, and removes it if it is damaged: the client
// library publishes chunks again that found no leader, and then chunks change places.
func (b *chunked) checkObject(ctx context.Context, in shelf, name string, size int) error {
	if !b.inCluster() {
		return nil
	}
	var info *jetstream.ObjectInfo
	var err error
	for began := time.Now(); ; Pause(ctx, retryEvery) {
		if info, err = b.described(ctx, in.bucket, name); err == nil {
			_, err = b.readObject(ctx, in, info)
		}
		if !errors.Is(err, ErrNotFound) || time.Since(began) > lostFor || ctx.Err() != nil { // else a server may not have it yet
			break
		}
	}
	if err == nil && info.Size != uint64(size) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		return nil
	}
	if damaged(err) {
		_ = b.removeObject(ctx, in.bucket, info) // else it expires
	}
	return fault.New(fault.Infrastructure, "bus: object %s: it was stored, and read again: %w", name, err)
}

// probeObjects finds out whether the stream of an object store stores anything, by a chunk that
// belongs to no object and is purged at once.
func (b *chunked) probeObjects(ctx context.Context, in shelf, subject string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*storeWithin)
	defer cancel()
	if err := b.publish(
		ctx, &nats.Msg{Subject: subject, Data: make([]byte, probeBytes)},
	); err != nil {
		return err
	}
	return b.Purge(ctx, "OBJ_"+in.bucket, subject, 0)
}

// removeObject removes an object's chunks and its description. The client library's Delete would store a mark first, for which a
// full store may have no room.
func (b *chunked) removeObject(ctx context.Context, bucket string, info *jetstream.ObjectInfo) error {
	subjects := []string{descriptionOf(bucket, info.Name)}
	if form.IsToken(info.NUID) { // a forged description may have a wildcard there
		subjects = append(subjects, "$O."+bucket+".C."+info.NUID)
	}
	for _, subject := range subjects {
		if err := b.Purge(ctx, "OBJ_"+bucket, subject, 0); err != nil {
			return err
		}
	}
	return nil
}

// chunk returns the size of the chunks of an object: the client library's own, or less where the
// server takes less.
func (b *chunked) chunk() uint32 { return uint32(min(128<<10, max(b.NC.MaxPayload()-envelope, 1<<10))) }

// described returns the description of an object. The error wraps ErrNotFound if there is none, or no valid one. (The
// client library's GetInfo believes the publisher's headers, and waits for an answer that was lost with its connection.)
func (b *chunked) described(ctx context.Context, bucket, name string) (*jetstream.ObjectInfo, error) {
	m, err := b.Raw(ctx, "OBJ_"+bucket, descriptionOf(bucket, name))
	if err != nil {
		return nil, err
	}
	var info jetstream.ObjectInfo
	err = json.Unmarshal(m.Data, &info)
	if err != nil || info.Deleted || info.Name != name || !form.IsToken(info.NUID) || info.Opts != nil && info.Opts.Link != nil {
		return nil, fmt.Errorf("%w: object %s", ErrNotFound, name)
	}
	info.ModTime = m.Time
	return &info, nil
}

// descriptionOf is the subject of an object's description.
func descriptionOf(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// object returns the description of an object all of whose chunks are stored. The error wraps
// ErrLost if they are not.
func (b *chunked) object(ctx context.Context, in shelf, name string) (*jetstream.ObjectInfo, error) {
	info, err := b.described(ctx, in.bucket, name)
	if errors.Is(err, ErrNotFound) {
		return nil, fault.New(fault.Infrastructure, "%w: object %s: %v", ErrLost, name, err)
	}
	if err != nil {
		return nil, err
	}

	chunks := "$O." + in.bucket + ".C." + info.NUID
	there, err := b.Subjects(ctx, "OBJ_"+in.bucket, chunks)
	if err != nil {
		return nil, err
	}
	if have := there[chunks]; have != uint64(info.Chunks) {
		return nil, fault.New(
			fault.Infrastructure, "%w: object %s has %d of %d chunks", ErrLost, name, have,
			info.Chunks,
		)
	}
	return info, nil
}

// getObject reads an object. The error wraps ErrLost if it is not there, or damaged.
func (b *chunked) getObject(ctx context.Context, in shelf, name string) ([]byte, error) {
	info, err := b.object(ctx, in, name)
	if err != nil {
		return nil, err
	}
	if info.Size > message.MaxBlob {
		return nil, fault.New(
			fault.Infrastructure, "%w: object %s: %d bytes, at most %d", wire.ErrTooLarge, name,
			info.Size, message.MaxBlob,
		)
	}

	data, err := b.readObject(ctx, in, info)
	if damaged(err) && ctx.Err() == nil { // or broken off, which a second attempt tells
		data, err = b.readObject(ctx, in, info)
	}

	switch {
	case ctx.Err() != nil:
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, ctx.Err())
	case damaged(err):
		return nil, fault.New(fault.Infrastructure, "%w: object %s: %w", ErrLost, name, err)
	case err != nil:
		return nil, fault.New(fault.Infrastructure, "bus: object %s: %w", name, err)
	}
	return data, nil
}

// damaged reports whether the bytes read from an object differ from the written ones.
func damaged(err error) bool {
	return errors.Is(err, jetstream.ErrDigestMismatch) || errors.Is(err, io.ErrUnexpectedEOF)
}

// An object is read within leastRead, and a second more for every readPerSecond bytes. Without a
// deadline the client library would give up after 5 s, however large the object is.
const (
	leastRead     = 30 * time.Second
	readPerSecond = 1 << 20
)

// Maximum chunks and bytes of a batch, which has attemptWithin in a cluster.
const (
	chunksAtOnce = 64
	bytesAtOnce  = 2 << 20
)

// readObject reads an object by its chunks, again from where it was if a sender leads no more, which it does not say. The client library
// would use a consumer, which can deliver on any subject: a user with the right to create one could write anywhere that the server may.
func (b *chunked) readObject(ctx context.Context, in shelf, info *jetstream.ObjectInfo) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, leastRead+time.Duration(info.Size/readPerSecond)*time.Second)
	defer cancel()
	js, err := b.bulk.over(b.NC, b.API)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, info.Size)
	for next := uint64(1); uint64(len(data)) < info.Size; {
		var chunks []Entry
		err := b.persist(ctx, func(ctx context.Context) (err error) {
			chunks, err = b.batch(ctx, js.Conn(), "OBJ_"+in.bucket, "$O."+in.bucket+".C."+info.NUID, next, chunksAtOnce, bytesAtOnce)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(chunks) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		for _, c := range chunks {
			next = c.Sequence + 1
			if data = append(data, c.Data...); uint64(len(data)) > info.Size {
				return nil, jetstream.ErrDigestMismatch
			}
		}
	}
	if sum := sha256.Sum256(data); info.Digest != "SHA-256="+base64.URLEncoding.EncodeToString(sum[:]) {
		return nil, jetstream.ErrDigestMismatch
	}
	return data, nil
}
