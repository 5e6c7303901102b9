package testserver

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RedisOptions say how a redis-server runs. The zero value: without a file, nothing persisted.
type RedisOptions struct {
	Config string   // configuration file; port, address and folder are overridden
	Dir    string   // working folder; Redis gives it a folder of the test's
	Args   []string // further arguments, as --maxmemory 4mb
}

// RedisServer is a running redis-server.
type RedisServer struct {
	*process
	URL  string // redis://127.0.0.1:<port>
	Addr string // 127.0.0.1:<port>
}

// Redis starts a redis-server that ends with the test. It skips the test with the reason if this machine has no redis-server.
func Redis(t testing.TB, o RedisOptions) *RedisServer {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := StartRedis(o)
	if s == nil {
		s = &RedisServer{process: &process{}}
	}
	attach(t, s.process, err)
	return s
}

// StartRedis starts a redis-server in o.Dir and waits until it answers. The caller must end it by Stop or Kill. The error wraps
// ErrUnavailable if this machine has no redis-server.
func StartRedis(o RedisOptions) (*RedisServer, error) {
	path, env, err := FindRedis()
	if err != nil {
		return nil, err
	}
	config, err := absoluteConfig(o.Config)
	if err != nil {
		return nil, err
	}
	port, err := Unused()
	if err != nil {
		return nil, err
	}
	var args []string
	if config != "" {
		args = append(args, config)
	}
	args = append(args, "--port", port, "--bind", "127.0.0.1", "--dir", o.Dir, "--save", "", "--daemonize", "no")
	addr := net.JoinHostPort("127.0.0.1", port)
	s := &RedisServer{Addr: addr, URL: "redis://" + addr, process: &process{
		name: "redis-server", path: path, args: append(args, o.Args...), env: env,
		log: filepath.Join(o.Dir, "redis.log"),
	}}

	// It is ready if it answers itself, and not another server that took the port first, which has another process id.
	s.check = func() error {
		if err := expectAnswer(addr, "PING\r\n", "+PONG"); err != nil {
			return err
		}
		return s.checkIdentity()
	}
	return s, s.start()
}

// Sentinel starts a Redis Sentinel that watches a Redis server under this name and ends with the test. The sentinel has a user with a
// password beside the default user. It returns the sentinel's URL.
func Sentinel(t testing.TB, name string, watched *RedisServer, user, password string) string {
	t.Helper()
	path, env, err := FindRedis()
	if err != nil {
		attach(t, &process{}, err)
	}
	host, port, err := net.SplitHostPort(watched.Addr)
	if err != nil {
		t.Fatal(err)
	}
	sentinelPort, dir := FreePort(t), t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %q\nuser %s on >%s ~* &* +@all\nuser default on nopass ~* &* +@all\n"+
		"sentinel monitor %s %s %s 1\n", sentinelPort, dir, user, password, name, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	addr := net.JoinHostPort("127.0.0.1", sentinelPort)
	p := &process{
		name: "redis-sentinel", path: path, args: []string{config, "--sentinel"}, env: env,
		log:   filepath.Join(dir, "sentinel.log"),
		check: func() error { return expectAnswer(addr, "PING\r\n", "+PONG") },
	}
	attach(t, p, p.start())
	return "redis://" + addr
}

// checkIdentity returns an error unless the server at s.Addr reports the process id of the child that was started.
func (s *RedisServer) checkIdentity() error {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("INFO server\r\n")); err != nil {
		return err
	}
	want := fmt.Sprintf("process_id:%d", s.cmd.Process.Pid)
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if id := lines.Text(); strings.HasPrefix(id, "process_id:") {
			if id != want {
				return fmt.Errorf("%s answers, not %s", id, want)
			}
			return nil
		}
	}
	return fmt.Errorf("the server at %s does not give its process id", s.Addr)
}

// expectAnswer sends a text to a server and returns an error unless the first line of the answer begins with want.
func expectAnswer(addr, send, want string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(send)); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if len(line) < len(want) || line[:len(want)] != want {
		return fmt.Errorf("%q instead of %q", line, want)
	}
	return nil
}

// FindRedis returns the path of a redis-server and the variables that its environment needs. It takes $BTN_REDIS_SERVER, or else the one on
// PATH, or else the one that Unpack has unpacked into the cache folder. It installs nothing.
func FindRedis() (path string, env []string, err error) {
	if path = os.Getenv("BTN_REDIS_SERVER"); path != "" {
		return path, nil, nil
	}
	if path, err = exec.LookPath("redis-server"); err == nil {
		return path, nil, nil
	}
	if dir, err := cacheFolder(); err == nil {
		path, env = unpackedRedis(dir)
		if canRun(path, env) {
			return path, env, nil
		}
	}
	return "", nil, fmt.Errorf("%w: no redis-server on PATH; `go run ./internal/testing/testserver/install` gets "+
		"one on Debian and Ubuntu, "+
		"elsewhere install redis or set BTN_REDIS_SERVER", ErrUnavailable)
}
