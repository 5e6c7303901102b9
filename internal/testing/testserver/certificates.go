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

// Certificates are the paths of PEM files: the certificate of an authority, and certificates with their keys that it signed for servers and
// clients on this machine.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string // of 127.0.0.1 and localhost
	ClientCert, ClientKey string
}

// authority signs certificates and writes them to a folder.
type authority struct {
	t           testing.TB
	folder      string
	serial      int64 // of the last certificate
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// write writes a PEM file with one block of this kind, and returns its path.
func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a key, completes the certificate with a name, a serial number and a time of validity, signs it, and writes both to NAME.pem
// and NAME-key.pem. The signer is the authority, or the certificate itself while the authority has no key.
func (a *authority) issue(name string, certificate *x509.Certificate) (certFile, keyFile string, key *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer, signingKey := a.certificate, a.key
	if signingKey == nil {
		signer, signingKey = certificate, key
	}

	a.serial++
	certificate.SerialNumber = big.NewInt(a.serial)
	certificate.Subject = pkix.Name{CommonName: name + " " + rand.Text()} // authorities of one name are mixed up by OpenSSL
	certificate.NotBefore, certificate.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, certificate, signer, &key.PublicKey, signingKey)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+"-key.pem", "PRIVATE KEY", private), key
}

// NewCertificates makes an authority and two certificates of it, for a server and a client, in a temporary folder of the test. They are
// valid for an hour.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir()}
	root := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	var c Certificates
	c.CA, _, a.key = a.issue("authority", root)
	a.certificate = root

	for _, leaf := range []struct {
		name      string
		usage     x509.ExtKeyUsage
		cert, key *string
	}{
		{"server", x509.ExtKeyUsageServerAuth, &c.ServerCert, &c.ServerKey},
		{"client", x509.ExtKeyUsageClientAuth, &c.ClientCert, &c.ClientKey},
	} {
		*leaf.cert, *leaf.key, _ = a.issue(leaf.name, &x509.Certificate{
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{leaf.usage, x509.ExtKeyUsageClientAuth}, // servers of a cluster are clients of each other
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
			DNSNames:    []string{"localhost"},
		})
	}
	return c
}
