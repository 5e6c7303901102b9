package bus

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// slowStore is an object store whose pieces do not come.
type slowStore struct {
	jetstream.ObjectStore
	object slowObject
}

func (s slowStore) Get(context.Context, string, ...jetstream.GetObjectOpt) (jetstream.ObjectResult, error) {
	return s.object, nil
}

type slowObject struct {
	jetstream.ObjectResult
	asked, over, closed chan struct{}
}

func (o slowObject) Read([]byte) (int, error) {
	close(o.asked)
	<-o.over
	return 0, io.EOF
}

func (o slowObject) Close() error { close(o.closed); return nil }

// Who reads an object returns when its context ends, also while the next piece does not come; the object is closed when the
// library has done with it.
func TestReadingAnObjectEndsWithItsContext(t *testing.T) {
	o := slowObject{asked: make(chan struct{}), over: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() {
		_, err := readOnce(ctx, slowStore{object: o}, "x", 1)
		returned <- err
	}()
	<-o.asked
	cancel()
	select {
	case err := <-returned:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	case <-time.After(leastRead / 3):
		t.Error("it does not return")
	}
	close(o.over)
	<-o.closed
}
