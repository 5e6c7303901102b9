package gateway

// Requests whose length is said twice, in two ways: a proxy in front may have believed the other one, and take the rest for a request of
// somebody else. net/http drops one of the two headers, so the bytes of the connection are looked at.

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
)

// headConn keeps the first bytes of the request that is being read, headerBytes and a buffer of net/http at most.
type headConn struct {
	net.Conn
	mu      sync.Mutex
	head    []byte
	isAhead bool // head begins with the byte that net/http reads ahead while a request is answered: the first of the next one
}

// mostHead is the number of bytes that a headConn keeps.
const mostHead = headerBytes + 8<<10

// Read reads from the connection and keeps a copy of the first bytes of a request. It relies on a habit of net/http: only while a
// request is answered, net/http reads a single byte, to see whether the client goes away. That byte is the first of the next request.
func (c *headConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(b) == 1 && n == 1 {
		c.head, c.isAhead = nil, true
	}
	c.head = append(c.head, b[:min(n, mostHead-len(c.head))]...)
	return n, err
}

// CloseWrite ends the connection on this side: net/http does it before it closes one whose client is still sending.
func (c *headConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// headListener accepts connections that keep the first bytes of requests.
type headListener struct{ net.Listener }

// Accept returns the next connection as a headConn.
func (l headListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: c}, nil
}

// headKey is the key of a request's headConn in its context.
type headKey struct{}

// withHead puts a connection into the context of its requests. It is for http.Server.ConnContext.
func withHead(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, headKey{}, c)
}

// forgetHead is called by http.Server.ConnState when the state of a connection changes. When the connection becomes idle, its request was
// answered, and forgetHead drops the first bytes that were kept of it. If the kept bytes are already those of the next request (isAhead),
// they stay.
func forgetHead(c net.Conn, state http.ConnState) {
	if conn, ok := c.(*headConn); ok && state == http.StateIdle {
		conn.mu.Lock()
		if !conn.isAhead {
			conn.head = nil
		}
		conn.isAhead = false
		conn.mu.Unlock()
	}
}

// checkFraming refuses a request with both Content-Length and Transfer-Encoding, which a proxy and the gateway may read
// differently. net/http drops one of the two headers, so the first bytes of the request, as the connection kept them,
// are looked at. They are missing if they came in one piece with the end of the request before: a request with
// Transfer-Encoding is then refused as well. Over TLS, which no proxy reads on its way, nothing is checked.
func (c *call) checkFraming() error {
	conn, isPlain := c.request.Context().Value(headKey{}).(*headConn) // without TLS
	if !isPlain || len(c.request.TransferEncoding) == 0 {
		return nil
	}
	conn.mu.Lock()
	head, _, _ := bytes.Cut(conn.head, []byte("\r\n\r\n"))
	head = bytes.ToLower(head)
	conn.mu.Unlock()
	if !bytes.HasPrefix(head, bytes.ToLower([]byte(c.request.Method+" "))) {
		return badRequest("a request with Transfer-Encoding has to wait for the answer to the one before")
	}
	for line := range bytes.Lines(head) {
		if bytes.HasPrefix(line, []byte("content-length:")) {
			return badRequest("the request has Content-Length and Transfer-Encoding: one of them")
		}
	}
	return nil
}
