package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// readyWithin is the maximum time for a started server to recover its streams and accept connections.
	readyWithin = time.Minute

	// ownWithin bounds the waits of server and connections within the process for each other: both live as long as the
	// process, and are slow while other processes have the processors.
	ownWithin = time.Minute
)

// streamBuffer bounds a stream's bytes that wait to be stored: two objects may be on their way at once, and the client library has up
// to 4,000 chunks of 128 KiB of each in flight. With the server's own 128 MiB it drops chunks of large objects where the disk or the
// processors are slower than the sender, and the object is never whole.
const streamBuffer = 2 * 4000 * (128 << 10)

// startNATS starts a server with JetStream in dir. It installs no signal handlers and writes no pid or port files.
func startNATS(o Options, dir string) (*server.Server, error) {
	opts := &server.Options{
		ServerName:             "basetensor",
		DontListen:             !o.Listen,
		NoSigs:                 true,
		MaxPayload:             o.MaxPayload,
		JetStream:              true,
		StoreDir:               dir,
		SyncAlways:             o.Sync,
		DisableJetStreamBanner: true,
		StreamMaxBufferedSize:  streamBuffer,
		WriteDeadline:          ownWithin,
		AuthTimeout:            ownWithin.Seconds(),
	}
	if o.Listen {
		opts.Host, opts.Port, opts.Authorization = o.Host, o.Port, o.Token
		if o.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded: nats-server: %w", err)
	}
	log := natsLogger{log: o.Logger, fatal: make(chan string, 1)}
	srv.SetLoggerV2(log, false, false, false) // no debugging, no traces
	srv.Start()
	if err := waitUntilReady(srv, log.fatal); err != nil {
		stopNATS(srv)
		return nil, err
	}
	if !srv.JetStreamEnabled() {
		stopNATS(srv)
		return nil, errors.New("embedded: nats-server started without JetStream; see its log")
	}
	return srv, nil
}

// waitUntilReady waits until the server accepts connections or says why it never will.
func waitUntilReady(srv *server.Server, fatal <-chan string) error {
	for end := time.Now().Add(readyWithin); time.Now().Before(end); {
		select {
		case why := <-fatal:
			return fmt.Errorf("embedded: nats-server: %s", why)
		default:
		}
		if srv.ReadyForConnections(50 * time.Millisecond) { // then fatal is looked at again
			return nil
		}
	}
	return fmt.Errorf("embedded: nats-server is not ready after %v", readyWithin)
}

// stopNATS stops a server and waits for its end.
func stopNATS(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// openStoreFolder returns the folder of the streams, and whether it is a temporary one. JetStream wants a folder even
// for streams in memory.
func openStoreFolder(o Options) (dir string, isTemporary bool, err error) {
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return "", false, fmt.Errorf("embedded: %w", err)
		}
		return o.Dir, false, nil
	}
	dir, err = os.MkdirTemp("", "basetensor-")
	if err != nil {
		return "", false, fmt.Errorf("embedded: %w", err)
	}
	return dir, true, nil
}

// natsLogger passes the server's warnings and errors on; its notices are of interest to its own operators only.
type natsLogger struct {
	log   *slog.Logger
	fatal chan string // the first fatal error
}

// Noticef logs at the level debug.
func (l natsLogger) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}

// Warnf logs a warning.
func (l natsLogger) Warnf(format string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(format, v...)) }

// Errorf logs an error.
func (l natsLogger) Errorf(format string, v ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}

// Fatalf logs an error and keeps the first one, which Start returns. It does not end the process.
func (l natsLogger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}

// Debugf drops a message.
func (l natsLogger) Debugf(string, ...any) {}

// Tracef drops a message.
func (l natsLogger) Tracef(string, ...any) {}
