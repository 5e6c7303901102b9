package memlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Bounds of the protocol.
const (
	controlLine = 4096    // bytes of a line without its payload
	keepBuffer  = 1 << 20 // a larger buffer for output is dropped after its use
	readBuffer  = 64 << 10
)

// conn is a client's connection. Its subscriptions are under the server's mutex.
type conn struct {
	server *Server
	net    net.Conn
	subs   map[string]*subscription // by id

	// as the client said in its first line
	noResponders bool
	echo         bool

	mu      sync.Mutex
	out     []byte // bytes for the client that are not yet written
	written sync.Cond
	closed  bool
}

// hello is the part of the client's CONNECT that matters here.
type hello struct {
	Echo         *bool `json:"echo"`
	NoResponders bool  `json:"no_responders"`
}

// serve reads the client's lines until the connection ends.
func (c *conn) serve() {
	err := c.read(bufio.NewReaderSize(c.net, readBuffer))
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		c.say("-ERR '" + err.Error() + "'\r\n")
	}
	c.server.leave(c)
}

// read interprets lines until one is not understood, or no more come.
func (c *conn) read(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil || len(line) > controlLine {
			if err == nil || errors.Is(err, bufio.ErrBufferFull) {
				err = errors.New("Maximum Control Line Exceeded")
			}
			return err
		}
		verb, rest, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		args := strings.Fields(rest)
		switch strings.ToUpper(verb) {
		case "PUB", "HPUB":
			err = c.publish(r, strings.ToUpper(verb) == "HPUB", args)
		case "SUB":
			err = c.subscribe(args)
		case "UNSUB":
			err = c.unsubscribe(args)
		case "PING":
			c.say("PONG\r\n")
		case "PONG", "":
		case "CONNECT":
			var h hello
			if err = json.Unmarshal([]byte(rest), &h); err == nil {
				c.noResponders, c.echo = h.NoResponders, h.Echo == nil || *h.Echo
			}
		default:
			err = errors.New("Unknown Protocol Operation")
		}
		if err != nil {
			return err
		}
	}
}

var errArguments = errors.New("Parser Error")

// publish reads a message: its subject, the subject of a reply if there is one, the bytes of headers if it has some, all bytes.
func (c *conn) publish(r *bufio.Reader, headers bool, args []string) error {
	sizes := 1
	if headers {
		sizes = 2
	}
	if len(args) != 1+sizes && len(args) != 2+sizes {
		return errArguments
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
		return errArguments
	case int64(all) > c.server.options.MaxPayload:
		return errors.New("Maximum Payload Violation")
	}
	bytes := make([]byte, all+2)
	if _, err := io.ReadFull(r, bytes); err != nil {
		return err
	}
	m.header, m.data = bytes[:head:head], bytes[head:all:all]
	c.server.publish(c, m, reply)
	return nil
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
			c.end(s)
		}
	}
	return nil
}

// end removes a subscription. The caller holds the server's mutex.
func (c *conn) end(s *subscription) {
	delete(c.subs, s.id)
	c.server.interest.remove(s)
}

// deliver sends a message on a subscription. The caller holds the server's mutex.
func (c *conn) deliver(s *subscription, subject, reply string, header, data []byte) {
	if reply != "" {
		reply += " "
	}
	c.mu.Lock()
	if len(header) > 0 {
		c.out = fmt.Appendf(c.out, "HMSG %s %s %s%d %d\r\n", subject, s.id, reply, len(header), len(header)+len(data))
	} else {
		c.out = fmt.Appendf(c.out, "MSG %s %s %s%d\r\n", subject, s.id, reply, len(data))
	}
	c.out = append(c.out, header...)
	c.out = append(c.out, data...)
	c.out = append(c.out, "\r\n"...)
	c.mu.Unlock()
	c.written.Signal()
	if s.got++; s.most > 0 && s.got >= s.most {
		c.end(s)
	}
}

// say sends a line.
func (c *conn) say(line string) {
	c.mu.Lock()
	c.out = append(c.out, line...)
	c.mu.Unlock()
	c.written.Signal()
}

// write sends bytes until the connection ends.
func (c *conn) write() {
	var spare []byte
	for {
		c.mu.Lock()
		for len(c.out) == 0 && !c.closed {
			c.written.Wait()
		}
		out := c.out
		c.out = spare[:0]
		c.mu.Unlock()
		if len(out) == 0 {
			c.net.Close()
			return
		}
		if _, err := c.net.Write(out); err != nil {
			c.net.Close()
			return
		}
		if spare = out; cap(spare) > keepBuffer {
			spare = nil
		}
	}
}

// close ends the connection after the bytes that are to be written.
func (c *conn) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.written.Signal()
}
