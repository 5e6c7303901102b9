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

// testFaults pauses, resumes, kills, stops and restarts a server. ask asks the server something: it must return an error while the server
// is paused or has ended, and nil otherwise.
func testFaults(t *testing.T, p *process, ask func() error) {
	t.Helper()
	requireNil := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	requireNil("running", ask())
	p.Pause()
	if ask() == nil {
		t.Error("answers while paused")
	}
	p.Resume()
	requireNil("resumed", ask())
	p.Kill()
	if ask() == nil {
		t.Error("answers when killed")
	}
	requireNil("start again", p.Restart())
	requireNil("after the restart", ask())
	p.Pause()
	p.Stop()
	if ask() == nil {
		t.Error("answers when stopped")
	}
	requireNil("start again", p.Restart())
	requireNil("after the second restart", ask())
}

// TestRedis takes a redis-server through its faults, and checks that it has read its configuration file.
func TestRedis(t *testing.T) {
	s := Redis(t, RedisOptions{Config: redisConfig})
	testFaults(t, s.process, func() error { return expectAnswer(s.Addr, "PING\r\n", "+PONG") })

	// The policy is that of the file, not the default.
	if err := expectAnswer(s.Addr, "CONFIG GET maxmemory-policy\r\n", "*2"); err != nil {
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

// TestNATS takes a nats-server through its faults, and checks that JetStream runs in its folder.
func TestNATS(t *testing.T) {
	s := NATS(t, NATSOptions{Config: natsConfig})
	testFaults(t, s.process, func() error {
		if err := expectAnswer(strings.TrimPrefix(s.URL, "nats://"), "", "INFO "); err != nil {
			return err
		}
		return s.checkHealth()
	})
	if log := s.Log(); !strings.Contains(log, "JetStream") || !strings.Contains(log, s.StoreDir) {
		t.Errorf("JetStream does not run in %s: %s", s.StoreDir, log)
	}
}

// TestMissingServersSaySo: without the programs, errors wrap ErrUnavailable and say how to get them.
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
	var output strings.Builder
	if err := Install(&output); !errors.Is(err, ErrUnavailable) {
		t.Errorf("install: %v, said %s", err, output.String())
	}
}

// TestBadServersFailWithTheirLog: the error for a server that ends at once has its output, and one for a missing configuration its name.
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
