package bus

// Remains of writers that died while they stored bytes as an object: chunks without an object, and objects without a message that names
// them.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Orphans counts the remains of dead writers in an object store.
type Orphans struct {
	Chunks  int    // objects that have chunks and no description
	Objects int    // objects that no stored message names
	Bytes   uint64 // of Objects
}

// Ages from which on remains are nobody's: a living writer stores the next chunk, or the message that names its object, sooner.
const (
	chunksAlone  = time.Minute
	objectsAlone = time.Hour
)

// orphans are the remains in the object store of a shelf.
type orphans struct {
	chunks  []string // subjects
	objects []*jetstream.ObjectInfo
}

// orphansIn finds the remains in the object store of a shelf, with a look at every object.
func (b *chunked) orphansIn(ctx context.Context, in shelf) (o orphans, err error) {
	objects, err := b.objectsIn(ctx, in.bucket)
	if err != nil {
		return o, err
	}
	if o.chunks, err = b.looseChunks(ctx, in, objects); err != nil {
		return o, err
	}
	for _, info := range objects {
		if b.Since(info.ModTime) < objectsAlone {
			continue
		}
		digest, _, _ := strings.Cut(info.Name, "-")
		named, err := b.Raw(ctx, in.stream, in.subject(digest))
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && !slices.Contains(named.Header[headerObject], info.Name):
			o.objects = append(o.objects, info)
		case err != nil:
			return o, err
		}
	}
	return o, nil
}

// looseChunks returns the subjects of chunks older than chunksAlone that belong to none of the objects.
func (b *chunked) looseChunks(ctx context.Context, in shelf, objects []*jetstream.ObjectInfo) (loose []string, err error) {
	stream, chunks := "OBJ_"+in.bucket, "$O."+in.bucket+".C."
	there, err := b.Subjects(ctx, stream, chunks+">")
	if err != nil {
		return nil, err
	}
	for _, info := range objects {
		delete(there, chunks+info.NUID)
	}
	for subject := range there {
		last, err := b.Raw(ctx, stream, subject)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return nil, err
		case b.Since(last.Time) >= chunksAlone:
			loose = append(loose, subject)
		}
	}
	return loose, nil
}

// Orphans counts the remains of dead writers by bucket. It takes one look-up for every object.
func (b *chunked) Orphans(ctx context.Context) (map[string]Orphans, error) {
	counts := map[string]Orphans{}
	for _, in := range []shelf{blobs, graphs} {
		o, err := b.orphansIn(ctx, in)
		if err != nil {
			return nil, err
		}
		c := Orphans{Chunks: len(o.chunks), Objects: len(o.objects)}
		for _, info := range o.objects {
			c.Bytes += info.Size
		}
		counts[in.bucket] = c
	}
	return counts, nil
}

// DropOrphans removes the remains of dead writers from both buckets, as an operator.
func (b *chunked) DropOrphans(ctx context.Context) error {
	for _, in := range []shelf{blobs, graphs} {
		o, err := b.orphansIn(ctx, in)
		if err != nil {
			return err
		}
		for _, subject := range o.chunks {
			if err := b.Purge(ctx, "OBJ_"+in.bucket, subject, 0); err != nil {
				return err
			}
		}
		for _, info := range o.objects {
			if err := b.removeObject(ctx, in.bucket, info); err != nil {
				return err
			}
		}
	}
	return nil
}
