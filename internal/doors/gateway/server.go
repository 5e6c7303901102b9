package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Server serves a Gateway.
type Server struct {
	URL string

	gateway *Gateway
	http    *http.Server
	done    chan struct{}
}

// Bounds of connections.
const (
	headerTime  = 30 * time.Second // a busy machine may take long between connecting and asking
	headerBytes = 64 << 10
	idleTime    = 2 * time.Minute
	endTime     = 5 * time.Second // that requests under way get when the server ends
)

// Serve listens on addr and serves g, with Config.TLS over TLS. Port 0 picks a free one; URL has it.
func Serve(addr string, g *Gateway) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "gateway: %w", err)
	}
	scheme := "http://"
	if g.config.TLS != nil {
		scheme = "https://"
	}
	s := &Server{
		URL:     scheme + listener.Addr().String(),
		gateway: g,
		http: &http.Server{
			Handler:           g.Handler(),
			ReadHeaderTimeout: headerTime,
			MaxHeaderBytes:    headerBytes,
			IdleTimeout:       idleTime,
			TLSConfig:         g.config.TLS,
			ConnContext:       withHead,
			ConnState:         forgetHead,
			ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug), // failed handshakes are not the gateway's errors
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if g.config.TLS != nil {
			s.http.ServeTLS(listener, "", "") // returns when Close is called
			return
		}
		s.http.Serve(headListener{listener})
	}()
	return s, nil
}

// Close stops listening, ends the streams of events, and gives requests under way a few seconds to finish.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	s.gateway.Close()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}
