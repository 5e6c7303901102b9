// Package memlog is a NATS server in the memory of this process: the protocol of clients, and the part of JetStream
// that this program uses. It serves connections within the process (nats.InProcessServer), has no port, no file, and no
// clock but package time: within testing/synctest its time is the bubble's.
//
// Streams keep messages by the limits policy or as work queues; consumers are durable, pulled, and acknowledged message
// by message. Configurations that ask for more are refused. TestLikeTheServer compares every reply with that of a real
// nats-server.
package memlog

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Options configure a Server.
type Options struct {
	MaxPayload int64 // bytes of a message with its headers, default 1 MiB
	MaxMemory  int64 // bytes that streams may reserve together, default DefaultMemory
	// Cluster is the name of a cluster that the server is one of, as far as clients see; "" for none. Then a direct get may be
	// answered by a replica that lags (Read, with Lose).
	Cluster string
	// Fate decides about events; nil: nothing fails. It is called under the server's mutex and must not call the server.
	Fate func(Event) Fate
}

// DefaultMemory is the number of bytes that streams may reserve together without Options.MaxMemory.
const DefaultMemory = 4 << 30

const defaultPayload = 1 << 20 // bytes

// Server is a running server.
type Server struct {
	options Options

	mu       sync.Mutex
	conns    map[*conn]bool
	interest interest
	streams  map[string]*stream
	closed   bool
}

// New returns a server without streams.
func New(o Options) *Server {
	if o.MaxPayload <= 0 {
		o.MaxPayload = defaultPayload
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMemory
	}
	return &Server{
		options:  o,
		conns:    map[*conn]bool{},
		interest: interest{literal: map[string][]*subscription{}, lastWild: map[string][]*subscription{}},
		streams:  map[string]*stream{},
	}
}

// Fresh returns a server with the streams and consumers of this one, but without messages.
func (s *Server) Fresh(o Options) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := New(o)
	for name, st := range s.streams {
		copied := fresh.newStream(st.config)
		for name, c := range st.consumers {
			copied.consumers[name] = copied.newConsumer(name, c.config)
		}
		fresh.streams[name] = copied
	}
	return fresh
}

// Idle reports whether nothing is under way. A message is under way if it waits for delivery to a consumer, if a worker has
// not acknowledged it yet (pending), or if it has a schedule by which it is delivered later. Consumers with the name except
// do not count.
func (s *Server) Idle(except string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		for _, c := range st.consumers {
			if c.name != except && c.undelivered+len(c.pending) > 0 {
				return false
			}
		}
		for _, m := range st.messages {
			if _, isScheduled := scheduledTime(m); isScheduled {
				return false
			}
		}
	}
	return true
}

// InProcessConn returns the client's end of a new connection.
func (s *Server) InProcessConn() (net.Conn, error) {
	c := &conn{server: s, subs: map[string]*subscription{}, echo: true}
	c.changed.L = &c.mu
	const hello = `INFO {"server_id":"MEMORY","server_name":"basetensor","version":"%s","proto":1,` +
		`"headers":true,"jetstream":true,"max_payload":%d,"cluster":%q}`
	c.output = fmt.Appendf(nil, hello+"\r\n", version, s.options.MaxPayload, s.options.Cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, net.ErrClosed
	}
	s.conns[c] = true
	return c, nil
}

// version is the nats-server whose replies these are.
const version = "2.15.2"

// MaxMemory returns the number of bytes that streams may reserve together.
func (s *Server) MaxMemory() int64 { return s.options.MaxMemory }

// Cut ends all connections, as a server does that restarts. Clients may connect again.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endConnections()
}

// endConnections ends all connections. The caller holds the mutex.
func (s *Server) endConnections() {
	for c := range s.conns {
		s.removeConnLocked(c)
		c.end(true)
	}
}

// Close ends all connections and timers. The server takes no new connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, st := range s.streams {
		st.stop()
	}
	s.endConnections()
}

// removeConn forgets a connection and its subscriptions.
func (s *Server) removeConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeConnLocked(c)
}

// removeConnLocked is removeConn for a caller who holds the mutex.
func (s *Server) removeConnLocked(c *conn) {
	delete(s.conns, c)
	for _, sub := range c.subs {
		s.interest.remove(sub)
	}
	c.subs = nil
}

// message is a message on its way, or in a stream. Its bytes do not change.
type message struct {
	sequence uint64
	subject  string
	header   []byte // in the form of the protocol, with its first line; empty: none
	data     []byte
	storedAt time.Time // when its stream stored it
}

// size returns the number of bytes that a message counts in its stream.
func (m *message) size() int64 { return int64(len(m.subject) + len(m.header) + len(m.data) + 16) }

// Prefixes of subjects that are requests to the server.
const (
	apiPrefix = "$JS.API."
	ackPrefix = "$JS.ACK."
)

// route sends a client's message to the subscriptions of its subject, and handles it if it is for the server itself or
// for a stream. If nobody receives it, and it has a reply subject, its client may get a status that says so.
func (s *Server) route(c *conn, m message, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasReceived := s.send(c, m.subject, m.subject, reply, m.header, m.data)
	switch {
	case strings.HasPrefix(m.subject, ackPrefix):
		s.acknowledge(m, reply)
		wasReceived = true
	case strings.HasPrefix(m.subject, apiPrefix):
		wasReceived = s.handleAPI(strings.TrimPrefix(m.subject, apiPrefix), m.data, reply) || wasReceived
	default:
		if st := s.streamOf(m.subject); st != nil {
			wasReceived = true
			st.receive(m, reply)
		}
	}
	if !wasReceived && reply != "" && c.noResponders {
		s.sendStatus(reply, "503", "")
	}
}

// send delivers a message to the subscriptions of the subject target, and reports whether there were any. subject is
// the message's own one, which differs from target if a consumer delivers it. The subscriptions of the publisher do not
// get it if the publisher wants no echo. The caller holds the mutex.
func (s *Server) send(publisher *conn, target, subject, reply string, header, data []byte) bool {
	wasReceived := false
	for _, sub := range s.interest.receivers(target) {
		if sub.conn == publisher && !publisher.echo {
			continue
		}
		wasReceived = true
		sub.conn.deliver(sub, subject, reply, header, data)
	}
	return wasReceived
}

// sendStatus sends a message without data whose first line has a status code and a text. pairs are names and values of
// headers in turn. The caller holds the mutex.
func (s *Server) sendStatus(target, code, text string, pairs ...string) {
	if text != "" {
		text = " " + text
	}
	header := fmt.Appendf(nil, "NATS/1.0 %s%s\r\n", code, text)
	for i := 0; i+1 < len(pairs); i += 2 {
		header = fmt.Appendf(header, "%s: %s\r\n", pairs[i], pairs[i+1])
	}
	s.send(nil, target, target, "", append(header, "\r\n"...), nil)
}

// streamOf returns the stream that takes messages on a subject, or nil. The caller holds the mutex.
func (s *Server) streamOf(subject string) *stream {
	for _, st := range s.streams {
		for _, filter := range st.config.Subjects {
			if matches(filter, subject) {
				return st
			}
		}
	}
	return nil
}
