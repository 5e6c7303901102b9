package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Serving returns the TLS configuration of a server with the certificate and key in two files; nil without files. flags
// is the prefix of their flags. The files are read again at every connection, so that a new certificate needs no
// restart.
func Serving(flags, cert, key string) (*tls.Config, error) {
	c := certificates{cert: cert, key: key, flags: flags}
	if err := c.check(); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	if cert == "" {
		return nil, nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := c.pair()
			return &pair, err
		},
	}, nil
}

// Private returns an error for a file of secret keys that everybody on this machine may read or write. A group may: the secrets of
// Kubernetes have one.
func Private(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s is open to everybody (mode %#o): chmod 600 %s, and change the key if others use this machine", file, mode, file)
	}
	return nil
}

// Secret reads a password or a token: the file's text without line ends behind it.
func Secret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	s := strings.TrimRight(string(text), "\r\n")
	if s == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return s, nil
}

// certificates are the files of one side's TLS, and the prefix of its flags.
type certificates struct {
	ca, cert, key string
	flags         string
}

func (c certificates) check() error {
	if (c.cert == "") != (c.key == "") {
		return fmt.Errorf("%s-cert and %s-key belong together", c.flags, c.flags)
	}
	if c.ca != "" {
		if _, err := c.pool(); err != nil {
			return fmt.Errorf("%s-ca: %w", c.flags, err)
		}
	}
	if c.cert != "" {
		if _, err := c.pair(); err != nil {
			return fmt.Errorf("%s-cert and %s-key: %w", c.flags, c.flags, err)
		}
	}
	return nil
}

// pool are the certificates that are believed, nil for the system's.
func (c certificates) pool() (*x509.CertPool, error) {
	if c.ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificates", c.ca)
	}
	return pool, nil
}

// pair is the certificate that this side shows.
func (c certificates) pair() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	var path *os.PathError
	if err != nil && !errors.As(err, &path) { // the library's own words may quote the file's content
		return pair, fmt.Errorf("%s and %s are no certificate and its key", c.cert, c.key)
	}
	return pair, err
}

// dial connects to a server with TLS, within a timeout. The files are read for every connection.
func (c certificates) dial(ctx context.Context, network, addr string, timeout time.Duration) (net.Conn, error) {
	pool, err := c.pool()
	if err != nil {
		return nil, fmt.Errorf("%s-ca: %w", c.flags, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if c.cert != "" {
		pair, err := c.pair()
		if err != nil {
			return nil, fmt.Errorf("%s-cert and %s-key: %w", c.flags, c.flags, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: config}
	return d.DialContext(ctx, network, addr)
}
