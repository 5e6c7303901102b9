package memlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of the protocol.
const (
	controlLine = 4096    // bytes of a line without its payload
	keepBuffer  = 4 << 20 // a larger buffer is dropped after its use; a batch of an object's chunks is 2 MiB
)

// conn is the client's end of a connection. What the client writes is interpreted at once, in its own goroutine. Subscriptions are under
// the server's mutex.
type conn struct {
	server *Server
	subs   map[string]*subscription // by id

	// as the client said in its first line
	noResponders bool
	echo         bool

	writing sync.Mutex
	in      []byte // bytes of the client that are not yet a whole line, with its payload

	mu      sync.Mutex
	out     []byte // bytes for the client
	read    int    // of out, that it has read
	changed sync.Cond
	closed  bool
	until   time.Time   // a read fails from then on; zero: never
	alarm   *time.Timer // for until
}

// hello is the part of the client's CONNECT that matters here.
type hello struct {
	Echo         *bool `json:"echo"`
	NoResponders bool  `json:"no_responders"`
}

// Write interprets the client's bytes.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.isClosed() {
		return 0, io.ErrClosedPipe
	}
	all := b
	if len(c.in) > 0 {
		c.in = append(c.in, b...)
		all = c.in
	}
	n, err := c.interpret(all)
	if c.in = append(c.in[:0], all[n:]...); len(c.in) == 0 && cap(c.in) > keepBuffer {
		c.in = nil
	}
	if err != nil {
		c.say("-ERR '" + err.Error() + "'\r\n")
		c.server.leave(c)
		c.end(false)
	}
	return len(b), nil
}

// interpret interprets whole lines and returns the number of their bytes.
func (c *conn) interpret(all []byte) (n int, err error) {
	for {
		rest := all[n:]
		end := bytes.IndexByte(rest, '\n')
		if end >= controlLine || end < 0 && len(rest) > controlLine {
			return n, errors.New("Maximum Control Line Exceeded")
		}
		if end < 0 {
			return n, nil
		}
		verb, args, _ := strings.Cut(strings.TrimRight(string(rest[:end]), "\r\n"), " ")
		payload := 0
		switch verb = strings.ToUpper(verb); verb {
		case "PUB", "HPUB":
			if payload, err = c.publish(rest[end+1:], verb == "HPUB", args); payload < 0 {
				return n, nil
			}
		case "SUB":
			err = c.subscribe(strings.Fields(args))
		case "UNSUB":
			err = c.unsubscribe(strings.Fields(args))
		case "PING":
			c.say("PONG\r\n")
		case "PONG", "":
		case "CONNECT":
			var h hello
			if err = json.Unmarshal([]byte(args), &h); err == nil {
				c.noResponders, c.echo = h.NoResponders, h.Echo == nil || *h.Echo
			}
		default:
			err = errors.New("Unknown Protocol Operation")
		}
		if err != nil {
			return n, err
		}
		n += end + 1 + payload
	}
}

var errArguments = errors.New("Parser Error")

// publish reads a message: its subject, the subject of a reply if there is one, the bytes of headers if it has some, all bytes. It returns
// the bytes of its payload with their end, or −1 where they are not all there.
func (c *conn) publish(rest []byte, headers bool, line string) (int, error) {
	var fields [4]string
	args := fields[:0]
	for line = strings.Trim(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		if len(args) == len(fields) {
			return 0, errArguments
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		args, line = append(args, line[:end]), line[end:]
	}
	sizes := 1
	if headers {
		sizes = 2
	}
	if len(args) != 1+sizes && len(args) != 2+sizes {
		return 0, errArguments
	}
	m := message{subject: args[0]}
	reply := ""
	if len(args) == 2+sizes {
		reply = args[1]
	}
	all, err := strconv.Atoi(args[len(args)-1])
	head := 0
	if headers && err == nil {
		head, err = strconv.Atoi(args[len(args)-2])
	}
	switch {
	case err != nil || head < 0 || all < head:
		return 0, errArguments
	case int64(all) > c.server.options.MaxPayload:
		return 0, errors.New("Maximum Payload Violation")
	case len(rest) < all+2:
		return -1, nil
	}
	content := bytes.Clone(rest[:all:all])
	m.header, m.data = content[:head:head], content[head:]
	c.server.publish(c, m, reply)
	return all + 2, nil
}

// subscribe reads a subscription: filter, queue if there is one, id.
func (c *conn) subscribe(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errArguments
	}
	s := &subscription{of: c, filter: args[0], id: args[len(args)-1]}
	if len(args) == 3 {
		s.queue = args[1]
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.subs[s.id] == nil && c.subs != nil {
		c.subs[s.id] = s
		c.server.interest.add(s)
	}
	return nil
}

// unsubscribe ends a subscription, at once or after a number of messages.
func (c *conn) unsubscribe(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return errArguments
	}
	most := 0
	if len(args) == 2 {
		var err error
		if most, err = strconv.Atoi(args[1]); err != nil {
			return errArguments
		}
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if s := c.subs[args[0]]; s != nil {
		if s.most = most; s.got >= most {
			c.drop(s)
		}
	}
	return nil
}

// drop removes a subscription. The caller holds the server's mutex.
func (c *conn) drop(s *subscription) {
	delete(c.subs, s.id)
	c.server.interest.remove(s)
}

// deliver sends a message on a subscription. The caller holds the server's mutex.
func (c *conn) deliver(s *subscription, subject, reply string, header, data []byte) {
	c.mu.Lock()
	out := c.out
	if len(header) > 0 {
		out = append(out, 'H')
	}
	out = append(append(out, "MSG "...), subject...)
	out = append(append(out, ' '), s.id...)
	if reply != "" {
		out = append(append(out, ' '), reply...)
	}
	if len(header) > 0 {
		out = strconv.AppendInt(append(out, ' '), int64(len(header)), 10)
	}
	out = strconv.AppendInt(append(out, ' '), int64(len(header)+len(data)), 10)
	out = append(append(append(out, "\r\n"...), header...), data...)
	c.out = append(out, "\r\n"...)
	c.changed.Signal()
	c.mu.Unlock()
	if s.got++; s.most > 0 && s.got >= s.most {
		c.drop(s)
	}
}

// say sends a line.
func (c *conn) say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = append(c.out, line...)
	c.changed.Signal()
}

// Read returns bytes for the client when there are some.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.read == len(c.out) && !c.closed && !c.late() {
		c.changed.Wait()
	}
	if c.read < len(c.out) {
		n := copy(b, c.out[c.read:])
		c.read += n
		switch {
		case c.read == len(c.out):
			if c.read, c.out = 0, c.out[:0]; cap(c.out) > keepBuffer {
				c.out = nil
			}
		case c.read > keepBuffer && c.read > len(c.out)/2: // a client that is always behind
			c.read, c.out = 0, append(c.out[:0], c.out[c.read:]...)
		}
		return n, nil
	}
	if c.closed {
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

// late reports whether reads fail by now. The caller holds c.mu.
func (c *conn) late() bool { return !c.until.IsZero() && !time.Now().Before(c.until) }

// SetReadDeadline has reads fail from a time on.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alarm != nil {
		c.alarm.Stop()
		c.alarm = nil
	}
	if c.until = t; !t.IsZero() {
		c.alarm = time.AfterFunc(time.Until(t), c.changed.Broadcast)
	}
	return nil
}

// SetWriteDeadline does nothing: a write waits for nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline has reads fail from a time on.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// Close ends the connection.
func (c *conn) Close() error {
	c.server.leave(c)
	c.end(true)
	return nil
}

// end ends the connection, at once or after the bytes for the client.
func (c *conn) end(atOnce bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; atOnce {
		c.out, c.read = nil, 0
	}
	if c.alarm != nil {
		c.alarm.Stop()
	}
	c.changed.Broadcast()
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// LocalAddr returns the name of all connections.
func (c *conn) LocalAddr() net.Addr { return place{} }

// RemoteAddr returns the name of all connections.
func (c *conn) RemoteAddr() net.Addr { return place{} }

// place is the address of both ends: this process.
type place struct{}

// Network is the kind of network.
func (place) Network() string { return "memory" }

// String is the address.
func (place) String() string { return "memory" }
