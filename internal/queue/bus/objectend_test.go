package bus

import (
	"context"
	"errors"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// readObject returns when its context ends, also while no chunk comes.
func TestReadingAnObjectEndsWithItsContext(t *testing.T) {
	nc, err := nats.Connect(testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"}).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b, err := New(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := nc.SubscribeSync("$JS.API.DIRECT.GET.OBJ_" + BucketBlob) // takes the requests, and answers none
	if err == nil {
		err = nc.Flush() // objects have a connection of their own
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() {
		_, err := b.readObject(ctx, blobs, &jetstream.ObjectInfo{Size: 1})
		returned <- err
	}()
	if _, err := asked.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
