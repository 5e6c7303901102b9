package testserver

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	redisConfig = "../../../deploy/redis.conf"
	natsConfig  = "../../../deploy/nats-server.conf"
)

// exercise takes a server through its faults. ask must fail while the server is paused or gone.
func exercise(t *testing.T, p *process, ask func() error) {
	t.Helper()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("running", ask())
	p.Pause()
	if ask() == nil {
		t.Error("answers while paused")
	}
	p.Resume()
	must("resumed", ask())
	p.Kill()
	if ask() == nil {
		t.Error("answers when killed")
	}
	must("start again", p.Restart())
	must("after the restart", ask())
	p.Pause()
	p.Stop()
	if ask() == nil {
		t.Error("answers when stopped")
	}
	must("start again", p.Restart())
	must("after the second restart", ask())
}

func TestRedis(t *testing.T) {
	s := Redis(t, RedisOptions{Config: redisConfig})
	exercise(t, s.process, func() error { return exchange(s.Addr, "PING\r\n", "+PONG") })
	// The file was read: the policy is its own, not the default.
	if err := exchange(s.Addr, "CONFIG GET maxmemory-policy\r\n", "*2"); err != nil {
		t.Error(err)
	}
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	c.Write([]byte("CONFIG GET maxmemory-policy\r\n"))
	var got strings.Builder
	b := make([]byte, 256)
	for !strings.Contains(got.String(), "allkeys-lru") {
		n, err := c.Read(b)
		if err != nil {
			t.Fatalf("%q: %v", got.String(), err)
		}
		got.Write(b[:n])
	}
}

func TestNATS(t *testing.T) {
	s := NATS(t, NATSOptions{Config: natsConfig})
	exercise(t, s.process, func() error {
		if err := exchange(strings.TrimPrefix(s.URL, "nats://"), "", "INFO "); err != nil {
			return err
		}
		return s.healthy()
	})
	if log := s.Log(); !strings.Contains(log, "JetStream") || !strings.Contains(log, s.StoreDir) {
		t.Errorf("JetStream does not run in %s: %s", s.StoreDir, log)
	}
}

func TestMissingServersSaySo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("BTN_REDIS_SERVER", "")
	t.Setenv("BTN_NATS_SERVER", "")
	if _, err := StartRedis(RedisOptions{}); !errors.Is(err, ErrUnavailable) ||
		!strings.Contains(err.Error(), "testserver/install") {
		t.Errorf("redis: %v", err)
	}
	if _, err := StartNATS(NATSOptions{}); !errors.Is(err, ErrUnavailable) ||
		!strings.Contains(err.Error(), "BTN_NATS_SERVER") {
		t.Errorf("nats: %v", err)
	}
	var said strings.Builder
	if err := Install(&said); !errors.Is(err, ErrUnavailable) {
		t.Errorf("install: %v, said %s", err, said.String())
	}
}

func TestBadServersFailWithTheirLog(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho cannot open the thing >&2\nexit 3\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BTN_REDIS_SERVER", script)
	if _, err := StartRedis(RedisOptions{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "cannot open the thing") {
		t.Errorf("%v", err)
	}
	if _, err := StartRedis(RedisOptions{Dir: dir, Config: "nowhere.conf"}); err == nil ||
		!strings.Contains(err.Error(), "nowhere.conf") {
		t.Errorf("%v", err)
	}
}
