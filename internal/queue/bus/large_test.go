package bus_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/basetensor/basetensor/pkg/embedded"
)

// TestLargeObjectsAreNotDropped: an object of 400 MiB is stored although the disk, which syncs every chunk, is slower than the sender.
func TestLargeObjectsAreNotDropped(t *testing.T) {
	ctx, b := open(t, embedded.Options{Dir: t.TempDir(), Sync: true})
	ctx = context.WithoutCancel(ctx) // as long as it takes
	js, err := jetstream.New(b.NC, jetstream.WithDefaultTimeout(10*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	o, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "large", Storage: jetstream.FileStorage})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Put(ctx, jetstream.ObjectMeta{Name: "object"}, bytes.NewReader(make([]byte, 400<<20))); err != nil {
		t.Error(err)
	}
}
