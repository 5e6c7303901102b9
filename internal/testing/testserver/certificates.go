package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are files (PEM) of an authority and of the certificates it signed for servers and
// clients on this machine.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string // of 127.0.0.1 and localhost
	ClientCert, ClientKey string
}

// NewCertificates makes an authority and two certificates, good for an hour, in a folder of the test's.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	serial := int64(0)
	sign := func(name string, of, by *x509.Certificate, key *ecdsa.PrivateKey) (cert, keyFile string, own *ecdsa.PrivateKey) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if key == nil {
			key = own
		}
		serial++
		of.SerialNumber = big.NewInt(serial)
		of.Subject = pkix.Name{CommonName: name + " " + rand.Text()} // authorities of one name are mixed up by OpenSSL
		of.NotBefore, of.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, of, by, &own.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(own)
		if err != nil {
			t.Fatal(err)
		}
		return write(name+".pem", "CERTIFICATE", der), write(name+"-key.pem", "PRIVATE KEY", private), own
	}

	authority := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	var c Certificates
	var key *ecdsa.PrivateKey
	c.CA, _, key = sign("authority", authority, authority, nil)
	local := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, one := range []struct {
		name      string
		usage     x509.ExtKeyUsage
		cert, key *string
	}{
		{"server", x509.ExtKeyUsageServerAuth, &c.ServerCert, &c.ServerKey},
		{"client", x509.ExtKeyUsageClientAuth, &c.ClientCert, &c.ClientKey},
	} {
		of := &x509.Certificate{
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{one.usage, x509.ExtKeyUsageClientAuth}, // servers of a cluster are clients of each other
			IPAddresses: local,
			DNSNames:    []string{"localhost"},
		}
		*one.cert, *one.key, _ = sign(one.name, of, authority, key)
	}
	return c
}
