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

// ServerTLS returns the TLS configuration of a server whose certificate and key are in two files. It is nil if no files
// are given. flags is the prefix of their flags, for errors. The files are read again at every connection, so that a
// new certificate needs no restart.
func ServerTLS(flags, cert, key string) (*tls.Config, error) {
	c := certificates{cert: cert, key: key, flagPrefix: flags}
	if err := c.check(); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	if cert == "" {
		return nil, nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := c.ownCertificate()
			return &pair, err
		},
	}, nil
}

// CheckPrivate returns an error if everybody on this machine may read or write a file of secret keys. A group may, because
// the secrets of Kubernetes have one.
func CheckPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s is open to everybody (mode %#o): chmod 600 %s, and change the key if others use this machine", file, mode, file)
	}
	return nil
}

// ReadSecret returns the password or token in a file: its text without the line ends at the end.
func ReadSecret(file string) (string, error) {
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

// certificates are the names of the TLS files of one side of a connection, and the prefix of the flags that name them.
type certificates struct {
	ca, cert, key string
	flagPrefix    string
}

// check returns an error if a file cannot be read or has no certificate, or if only one of certificate and key is
// given.
func (c certificates) check() error {
	if (c.cert == "") != (c.key == "") {
		return fmt.Errorf("%s-cert and %s-key belong together", c.flagPrefix, c.flagPrefix)
	}
	if c.ca != "" {
		if _, err := c.authorities(); err != nil {
			return fmt.Errorf("%s-ca: %w", c.flagPrefix, err)
		}
	}
	if c.cert != "" {
		if _, err := c.ownCertificate(); err != nil {
			return fmt.Errorf("%s-cert and %s-key: %w", c.flagPrefix, c.flagPrefix, err)
		}
	}
	return nil
}

// authorities returns the certificates of the authorities that are believed, nil for those of the system.
func (c certificates) authorities() (*x509.CertPool, error) {
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

// ownCertificate returns the certificate that this side shows, with its key.
func (c certificates) ownCertificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	var path *os.PathError
	if err != nil && !errors.As(err, &path) { // the library's own words may quote the file's content
		return pair, fmt.Errorf("%s and %s are no certificate and its key", c.cert, c.key)
	}
	return pair, err
}

// dial connects to a server with TLS, within a timeout. It reads the files at every call.
func (c certificates) dial(ctx context.Context, network, addr string, timeout time.Duration) (net.Conn, error) {
	pool, err := c.authorities()
	if err != nil {
		return nil, fmt.Errorf("%s-ca: %w", c.flagPrefix, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if c.cert != "" {
		pair, err := c.ownCertificate()
		if err != nil {
			return nil, fmt.Errorf("%s-cert and %s-key: %w", c.flagPrefix, c.flagPrefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: config}
	return d.DialContext(ctx, network, addr)
}
