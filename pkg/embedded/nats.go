package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyWithin is how long a started server may take to recover its streams and accept connections.
const readyWithin = 30 * time.Second

// startNATS starts a server with JetStream in dir. It installs no signal handlers and writes no pid or port files.
func startNATS(o Options, dir string) (*server.Server, error) {
	opts := &server.Options{
		ServerName:             "basetensor",
		DontListen:             !o.Listen,
		NoSigs:                 true,
		NoLog:                  o.Logger == nil,
		MaxPayload:             o.MaxPayload,
		JetStream:              true,
		StoreDir:               dir,
		DisableJetStreamBanner: true,
	}
	if o.Listen {
		opts.Host, opts.Port = o.Host, o.Port
		if o.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
		if o.MonitorPort != 0 {
			opts.HTTPHost, opts.HTTPPort = o.Host, o.MonitorPort
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded: nats-server: %w", err)
	}
	if o.Logger != nil {
		srv.SetLoggerV2(natsLogger{o.Logger}, false, false, false)
	}
	srv.Start()
	if !srv.ReadyForConnections(readyWithin) {
		stopNATS(srv)
		return nil, fmt.Errorf("embedded: nats-server is not ready after %v (port taken, or folder %s not writable?)", readyWithin, dir)
	}
	if !srv.JetStreamEnabled() {
		stopNATS(srv)
		return nil, errors.New("embedded: nats-server started without JetStream; see its log")
	}
	return srv, nil
}

func stopNATS(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// storeFolder returns where streams live and whether it is ours to remove. JetStream wants a folder even for
// streams in memory.
func storeFolder(o Options) (dir string, temporary bool, err error) {
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
type natsLogger struct{ log *slog.Logger }

func (l natsLogger) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}
func (l natsLogger) Warnf(format string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(format, v...)) }
func (l natsLogger) Errorf(format string, v ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}

// Fatalf logs: what a process does about a dead server is its own decision.
func (l natsLogger) Fatalf(format string, v ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}
func (l natsLogger) Debugf(string, ...any) {}
func (l natsLogger) Tracef(string, ...any) {}
