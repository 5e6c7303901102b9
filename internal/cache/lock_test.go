package cache

import (
	"context"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testserver"
)

// The lock of a worker that died is free soon, however long the wait for a living one may be.
func TestADeadWorkersLockIsFreeSoon(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dead := open(t, s.URL, Options{LockTTL: 0})
	if taken, err := dead.redis.SetNX(ctx, "k:lock", "dead", dead.o.LockTTL).Result(); err != nil || !taken {
		t.Fatal(taken, err)
	}
	c := open(t, s.URL, Options{LockWait: time.Hour})
	v, hit, err := c.GetOrCompute(ctx, "k", func(context.Context) ([]byte, error) { return []byte("v"), nil })
	if err != nil || hit || string(v) != "v" {
		t.Error(string(v), hit, err)
	}
}

// The lock of a worker that computes is kept, however long that takes.
func TestALivingWorkersLockIsKept(t *testing.T) {
	s := testserver.Redis(t, testserver.RedisOptions{Config: config})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := Options{LockTTL: 400 * time.Millisecond, LockWait: time.Hour}
	a, b := open(t, s.URL, o), open(t, s.URL, o)
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
	go func() { // the lock has been given its time anew often enough that without it it would be gone
		defer close(end)
		for renewed, last := 0, time.Duration(0); renewed < 12 && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			left, err := a.redis.PTTL(ctx, "k:lock").Result()
			if err != nil {
				return
			}
			if left > last {
				renewed++
			}
			last = left
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
