package cache

import (
	"context"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// The lock of a worker that died is free soon, however long the wait for a living one may be.
func TestADeadWorkersLockIsFreeSoon(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dead := open(t, s.URL, Options{})
	if taken, err := dead.setIfAbsent(ctx, "k:lock", "dead", dead.options.LockTTL); err != nil || !taken {
		t.Fatal(taken, err)
	}
	c := open(t, s.URL, Options{LockWait: time.Hour})
	v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
	if err != nil || hit || string(v) != "v" {
		t.Error(string(v), hit, err)
	}
}

// The lock of a worker that computes is kept, however long that takes: the test advances the time
// of the lock, and waits for its renewal before each further step.
func TestALivingWorkersLockIsKept(t *testing.T) {
	r := mini(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := Options{LockTTL: 400 * time.Millisecond, LockWait: time.Hour}
	a, b := open(t, "redis://"+r.Addr(), o), open(t, "redis://"+r.Addr(), o)
	begun, end := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, _, err := a.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) {
			close(begun)
			<-end
			return []byte("v"), nil
		})
		first <- err
	}()
	<-begun
	go func() {
		defer close(end)
		for range 12 {
			r.FastForward(o.LockTTL * 3 / 4)
			for r.TTL("k:lock") < o.LockTTL && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	v, hit, err := b.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
	if err != nil || !hit || string(v) != "v" {
		t.Errorf("%q, computed here: %v, %v", v, !hit, err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}
