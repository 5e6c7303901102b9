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

// conn is the client's end of a connection. What the client writes is interpreted at once, in its own goroutine.
// Subscriptions are under the server's mutex.
type conn struct {
	server *Server
	subs   map[string]*subscription // by id

	// as the client said in its first line
	noResponders bool
	echo         bool

	writing      sync.Mutex
	pendingInput []byte // bytes of the client that are not yet a whole line with its payload; under writing

	mu            sync.Mutex
	output        []byte    // bytes for the client
	outputRead    int       // number of bytes of output that the client has read
	changed       sync.Cond // output, closed or the passing of readDeadline
	closed        bool
	readDeadline  time.Time   // a read fails from then on; zero: never
	deadlineTimer *time.Timer // wakes readers at readDeadline
}

// connectOptions is the part of the client's CONNECT that matters here.
type connectOptions struct {
	Echo         *bool `json:"echo"`
	NoResponders bool  `json:"no_responders"`
}

// Write interprets bytes from the client. An incomplete line waits for the next call. After an error of the client the
// connection ends.
func (c *conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.isClosed() {
		return 0, io.ErrClosedPipe
	}
	input := b
	if len(c.pendingInput) > 0 {
		c.pendingInput = append(c.pendingInput, b...)
		input = c.pendingInput
	}

	// Interpret the input, and keep what is incomplete.
	n, err := c.interpret(input)
	if c.pendingInput = append(c.pendingInput[:0], input[n:]...); len(c.pendingInput) == 0 && cap(c.pendingInput) > keepBuffer {
		c.pendingInput = nil
	}
	if err != nil {
		c.sendLine("-ERR '" + err.Error() + "'\r\n")
		c.server.removeConn(c)
		c.end(false) // false: the client may still read the error
	}
	return len(b), nil
}

// interpret interprets the complete lines at the beginning of input, with their payloads, and returns the number of
// their bytes. The rest of the input waits for more.
func (c *conn) interpret(input []byte) (n int, err error) {
	for {
		rest := input[n:]
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
			if payload, err = c.readPublish(rest[end+1:], verb == "HPUB", args); payload < 0 { // not all of it is here
				return n, nil
			}
		case "SUB":
			err = c.subscribe(strings.Fields(args))
		case "UNSUB":
			err = c.unsubscribe(strings.Fields(args))
		case "PING":
			c.sendLine("PONG\r\n")
		case "PONG", "":
		case "CONNECT":
			var options connectOptions
			if err = json.Unmarshal([]byte(args), &options); err == nil {
				c.noResponders, c.echo = options.NoResponders, options.Echo == nil || *options.Echo
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

// splitArgs divides the arguments of a line, in memory that the caller provides. ok is false if there are more than that
// has room for.
func splitArgs(line string, memory *[4]string) (args []string, ok bool) {
	args = memory[:0]
	for line = strings.Trim(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		if len(args) == len(memory) {
			return nil, false
		}
		end := strings.IndexAny(line, " \t")
		if end < 0 {
			end = len(line)
		}
		args, line = append(args, line[:end]), line[end:]
	}
	return args, true
}

// readPublish interprets a message from the client. argLine is what follows PUB or HPUB in the line before the message:
// the subject, a subject for the reply if there is one, and the numbers of bytes. For HPUB (hasHeaders) these are the bytes
// of the headers and the bytes of headers and payload together; for PUB only the latter. input begins with these bytes and
// a line end. readPublish returns how many bytes they are with the line end, or −1 if input does not have all of them yet.
func (c *conn) readPublish(input []byte, hasHeaders bool, argLine string) (int, error) {
	var memory [4]string // as many arguments as there may be
	args, ok := splitArgs(argLine, &memory)
	sizeCount := 1 // number of arguments that are sizes
	if hasHeaders {
		sizeCount = 2
	}
	if !ok || len(args) != 1+sizeCount && len(args) != 2+sizeCount {
		return 0, errArguments
	}
	m := message{subject: args[0]}
	reply := ""
	if len(args) == 2+sizeCount {
		reply = args[1]
	}
	size, err := strconv.Atoi(args[len(args)-1])
	headerSize := 0
	if hasHeaders && err == nil {
		headerSize, err = strconv.Atoi(args[len(args)-2])
	}
	switch {
	case err != nil || headerSize < 0 || size < headerSize:
		return 0, errArguments
	case int64(size) > c.server.options.MaxPayload:
		return 0, errors.New("Maximum Payload Violation")
	case len(input) < size+len("\r\n"):
		return -1, nil
	}

	content := bytes.Clone(input[:size:size])
	m.header, m.data = content[:headerSize:headerSize], content[headerSize:]
	c.server.route(c, m, reply)
	return size + len("\r\n"), nil
}

// subscribe begins a subscription. args are its filter, its queue if there is one, and its id.
func (c *conn) subscribe(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errArguments
	}
	s := &subscription{conn: c, filter: args[0], id: args[len(args)-1]}
	if len(args) == 3 {
		s.queue = args[1]
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.subs[s.id] == nil && c.subs != nil { // c.subs is nil after the connection has ended
		c.subs[s.id] = s
		c.server.interest.add(s)
	}
	return nil
}

// unsubscribe ends a subscription. args are its id and, if it is to end after a number of messages, that number.
func (c *conn) unsubscribe(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return errArguments
	}
	maxMessages := 0 // the subscription ends at once
	if len(args) == 2 {
		var err error
		if maxMessages, err = strconv.Atoi(args[1]); err != nil {
			return errArguments
		}
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if s := c.subs[args[0]]; s != nil {
		if s.maxMessages = maxMessages; s.delivered >= maxMessages {
			c.removeSubscription(s)
		}
	}
	return nil
}

// removeSubscription removes a subscription. The caller holds the server's mutex.
func (c *conn) removeSubscription(s *subscription) {
	delete(c.subs, s.id)
	c.server.interest.remove(s)
}

// deliver sends a message to the client for a subscription: the line "MSG subject id [reply] [bytes of headers] bytes
// of all", with an H before it if there are headers, and then the bytes. The caller holds the server's mutex.
func (c *conn) deliver(s *subscription, subject, reply string, header, data []byte) {
	c.mu.Lock()
	out := c.output
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
	c.output = append(out, "\r\n"...)
	c.changed.Signal()
	c.mu.Unlock()
	// The client may have limited the number of messages of the subscription.
	if s.delivered++; s.maxMessages > 0 && s.delivered >= s.maxMessages {
		c.removeSubscription(s)
	}
}

// sendLine sends a line to the client.
func (c *conn) sendLine(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output = append(c.output, line...)
	c.changed.Signal()
}

// Read waits for bytes for the client and returns them. It fails after the connection was closed, or the deadline for
// reads has passed.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.outputRead == len(c.output) && !c.closed && !c.isPastDeadline() {
		c.changed.Wait()
	}
	if c.outputRead < len(c.output) {
		n := copy(b, c.output[c.outputRead:])
		c.outputRead += n
		switch {
		case c.outputRead == len(c.output):
			if c.outputRead, c.output = 0, c.output[:0]; cap(c.output) > keepBuffer {
				c.output = nil // a large buffer is not kept
			}
		case c.outputRead > keepBuffer && c.outputRead > len(c.output)/2: // a client that is always behind
			c.outputRead, c.output = 0, append(c.output[:0], c.output[c.outputRead:]...) // the unread bytes move to the start
		}
		return n, nil
	}
	if c.closed {
		return 0, io.EOF
	}
	return 0, os.ErrDeadlineExceeded
}

// isPastDeadline reports whether the deadline for reads has passed. The caller holds c.mu.
func (c *conn) isPastDeadline() bool {
	return !c.readDeadline.IsZero() && !time.Now().Before(c.readDeadline)
}

// SetReadDeadline lets reads fail from a time on, or if it is zero, never.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadlineTimer != nil {
		c.deadlineTimer.Stop()
		c.deadlineTimer = nil
	}
	if c.readDeadline = t; !t.IsZero() {
		c.deadlineTimer = time.AfterFunc(time.Until(t), c.changed.Broadcast)
	}
	return nil
}

// SetWriteDeadline does nothing, because writes do not wait.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of reads.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// Close ends the connection.
func (c *conn) Close() error {
	c.server.removeConn(c)
	c.end(true)
	return nil
}

// end closes the connection. If atOnce, bytes that the client has not read are lost.
func (c *conn) end(atOnce bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; atOnce {
		c.output, c.outputRead = nil, 0
	}
	if c.deadlineTimer != nil {
		c.deadlineTimer.Stop()
	}
	c.changed.Broadcast()
}

// isClosed reports whether the connection is closed.
func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// LocalAddr returns the name of all connections.
func (c *conn) LocalAddr() net.Addr { return memoryAddr{} }

// RemoteAddr returns the name of all connections.
func (c *conn) RemoteAddr() net.Addr { return memoryAddr{} }

// memoryAddr is the address of both ends: this process.
type memoryAddr struct{}

// Network is the kind of network.
func (memoryAddr) Network() string { return "memory" }

// String is the address.
func (memoryAddr) String() string { return "memory" }
