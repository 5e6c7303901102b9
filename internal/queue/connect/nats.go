// Package connect has the identity of a process towards NATS and Redis, and the servers that it believes: credentials,
// keys and certificates, from files only. Files are read again for every connection, so that secrets change without a
// restart. Only the choice among nkeys is made once: reconnections use the same one.
package connect

import (
	"errors"
	"fmt"
	neturl "net/url"
	"os"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// NATS says how a process authenticates to NATS. At most one of Creds, NKey, User and TokenFile is given; without them
// the URL has the credentials. Its tags are the tags of the commands' flags.
type NATS struct {
	Creds        string `name:"nats-creds" placeholder:"FILE" help:"File with a user's JWT and seed, as nsc writes it."`
	Context      string `name:"context" placeholder:"NAME" help:"Context of the nats command, or its file, in place of --nats."`
	NKey         string `name:"nats-nkey" placeholder:"FILE" help:"File with a user's nkey seed; of several lines the first is used."`
	User         string `name:"nats-user" placeholder:"NAME" help:"User name; the password is in --nats-password-file."`
	PasswordFile string `name:"nats-password-file" placeholder:"FILE" help:"File with the password of --nats-user."`
	TokenFile    string `name:"nats-token-file" placeholder:"FILE" help:"File with the token of a server that asks for one."`
	Inbox        string `name:"nats-inbox" placeholder:"PREFIX" help:"Prefix of the subjects that the user may read replies on."`

	Tenant string `name:"nats-tenant" placeholder:"NAME" help:"Tenant whose user this is. Ids of its jobs are NAME.ID."`

	TLS  bool   `name:"nats-tls" help:"Refuse connections without TLS. The three flags below imply it."`
	CA   string `name:"nats-ca" placeholder:"FILE" help:"Certificates (PEM) of authorities. Without it those of the system."`
	Cert string `name:"nats-cert" placeholder:"FILE" help:"Certificate (PEM) of this client."`
	Key  string `name:"nats-key" placeholder:"FILE" help:"Private key (PEM) of --nats-cert."`
}

// Job returns the id of a job: name, with the tenant's name before it if the process has a tenant and name has none.
func (n NATS) Job(name string) string {
	if n.Tenant != "" && form.Owner(name) == "" {
		return n.Tenant + "." + name
	}
	return name
}

// Identity returns a text that names the user of a process, without secrets: the kind of the credentials, and the
// public key, the file or the name.
func (n NATS) Identity(url string) string {
	switch {
	case n.Creds != "":
		return "credentials " + n.Creds
	case n.NKey != "":
		if pair, err := userKey(n.NKey, ""); err == nil {
			if public, err := pair.PublicKey(); err == nil {
				return "nkey " + public
			}
		}
		return "nkey " + n.NKey
	case n.User != "":
		return n.User
	case n.TokenFile != "":
		return "token " + n.TokenFile
	case n.Context != "":
		return "context " + n.Context
	}
	server, _, _ := strings.Cut(url, ",")
	if parsed, err := neturl.Parse(server); err == nil && parsed.User != nil {
		if _, hasPassword := parsed.User.Password(); hasPassword {
			return parsed.User.Username()
		}
		return "token of the URL"
	}
	return "none"
}

// Options returns the options of nats.Connect. Errors have the code bad_input, name the flag and its file, and quote
// nothing of a file's content.
func (n NATS) Options() ([]nats.Option, error) {
	if err := n.check(); err != nil {
		return nil, fault.New(fault.BadInput, "connect: %w", err)
	}

	var options []nats.Option
	credentials, err := n.credentials()
	if err != nil {
		return nil, err
	}
	if credentials != nil {
		options = append(options, credentials)
	}
	if n.Inbox != "" {
		options = append(options, nats.CustomInboxPrefix(n.Inbox))
	}

	if n.TLS || n.CA != "" || n.Cert != "" {
		options = append(options, nats.Secure())
	}
	if n.CA != "" {
		options = append(options, nats.RootCAs(n.CA))
	}
	if n.Cert != "" {
		options = append(options, nats.ClientCert(n.Cert, n.Key))
	}
	return options, nil
}

// credentials returns the option with the credentials, or nil if there are none. Their files are read again at every
// connection. If the file of a password or token is gone by then, the server refuses the user.
func (n NATS) credentials() (nats.Option, error) {
	switch {
	case n.Creds != "":
		return nats.UserCredentials(n.Creds), nil
	case n.NKey != "":
		return n.nkeyOption()
	case n.User != "":
		return nats.UserInfoHandler(func() (user, password string) {
			password, _ = ReadSecret(n.PasswordFile)
			return n.User, password
		}), nil
	case n.TokenFile != "":
		return nats.TokenHandler(func() string {
			token, _ := ReadSecret(n.TokenFile)
			return token
		}), nil
	}
	return nil, nil
}

// nkeyOption returns the option by which a user proves that it has the private key of a file: it signs a nonce of the
// server.
func (n NATS) nkeyOption() (nats.Option, error) {
	const firstKey = "" // of the file
	pair, err := userKey(n.NKey, firstKey)
	if err != nil {
		return nil, fault.New(fault.BadInput, "connect: --nats-nkey: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	return nats.Nkey(public, func(nonce []byte) ([]byte, error) { // is called at every connection, and reads the file again
		pair, err := userKey(n.NKey, public)
		if err != nil {
			return nil, err
		}
		return pair.Sign(nonce)
	}), nil
}

// check returns an error if settings contradict each other, or a file does not exist or holds something else.
func (n NATS) check() error {
	credentialCount := 0
	for _, setting := range []string{n.Creds, n.NKey, n.User, n.TokenFile} {
		if setting != "" {
			credentialCount++
		}
	}
	switch {
	case credentialCount > 1:
		return errors.New("one of --nats-creds, --nats-nkey, --nats-user and --nats-token-file at most")
	case (n.User == "") != (n.PasswordFile == ""):
		return errors.New("--nats-user and --nats-password-file belong together")
	}

	if n.Creds != "" {
		if err := checkCreds(n.Creds); err != nil {
			return fmt.Errorf("--nats-creds: %w", err)
		}
	}
	for flag, file := range map[string]string{"--nats-password-file": n.PasswordFile, "--nats-token-file": n.TokenFile} {
		if file == "" {
			continue
		}
		if _, err := ReadSecret(file); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	if n.Tenant != "" && !form.IsOwner(n.Tenant) {
		return fmt.Errorf("--nats-tenant: %.80q is not [A-Za-z0-9_-]{1,64}", n.Tenant)
	}
	return certificates{n.CA, n.Cert, n.Key, "--nats"}.check()
}

// checkCreds returns an error unless a file has the parts that nats.UserCredentials reads: a JWT and a seed.
func checkCreds(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if jwt, err := nkeys.ParseDecoratedJWT(text); err != nil || strings.Count(jwt, ".") != 2 {
		return fmt.Errorf("%s has no JWT", file)
	}
	if _, err := nkeys.ParseDecoratedNKey(text); err != nil {
		return fmt.Errorf("%s has no seed", file)
	}
	return nil
}

// userKey returns a user's key from a file of seeds: the first one, or if public is not "" the one with that public
// key. A process keeps the key with which it began, and the file keeps that key until it is retired.
func userKey(file, public string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = CheckPrivate(file)
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		pair, err := nkeys.FromSeed([]byte(strings.TrimSpace(line)))
		if err != nil {
			continue // a comment, or a decoration of a seed
		}
		key, err := pair.PublicKey()
		isUser := err == nil && nkeys.IsValidPublicUserKey(key)
		if isUser && (public == "" || public == key) {
			return pair, nil
		}
	}
	if public != "" {
		return nil, fmt.Errorf("%s has no seed of the user %s any more, with which this process began", file, public)
	}
	return nil, fmt.Errorf("%s has no seed of a user", file)
}
