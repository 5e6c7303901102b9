package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"time"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/redis/go-redis/v9"
)

// Redis says how a process authenticates to Redis. The zero value takes the credentials of the URL. Its tags are the
// tags of the commands' flags.
type Redis struct {
	User                 string `name:"redis-user" placeholder:"NAME" help:"User name (ACL). Without it the default user."`
	PasswordFile         string `name:"redis-password-file" placeholder:"FILE" help:"File with the password of --redis-user."`
	SentinelUser         string `name:"redis-sentinel-user" placeholder:"NAME" help:"User name for the sentinels."`
	SentinelPasswordFile string `name:"redis-sentinel-password-file" placeholder:"FILE" help:"File with the password for the sentinels."`

	CA   string `name:"redis-ca" placeholder:"FILE" help:"Certificates (PEM) of authorities. Without it those of the system."`
	Cert string `name:"redis-cert" placeholder:"FILE" help:"Certificate (PEM) of this client."`
	Key  string `name:"redis-key" placeholder:"FILE" help:"Private key (PEM) of --redis-cert."`
}

// Client returns a client of the Redis at a URL, without connecting, whose calls end within a timeout, 0 for
// RedisTimeout:
//
//	redis://HOST:PORT/DB, unix://PATH                        one server; rediss:// with TLS
//	redis://HOST:PORT?master_name=NAME&addr=HOST:PORT…       sentinels, and the name of what they watch
//	redis://HOST:PORT?addr=HOST:PORT…, …?cluster=true        nodes of a cluster
//
// Other parameters are as for redis.ParseURL. Errors are fault.BadInput and quote no secret.
func (r Redis) Client(url string, timeout time.Duration) (Store, error) {
	store, err := newStore(r, url, timeout)
	if err != nil {
		return nil, fault.New(fault.BadInput, "connect: Redis: %w", redact.Error(err, url))
	}
	return store, nil
}

// RedisWithin returns a client of a Redis server in this process, to which dial connects. A call ends within
// OwnRedisTimeout.
func RedisWithin(dial func() (net.Conn, error)) Store {
	o := &redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return dial() }}
	setTimeouts(o, OwnRedisTimeout)
	return library{redis.NewClient(o), o.PoolSize}
}

// OwnRedisTimeout bounds a call to a Redis server in this process, which nothing but a busy machine delays.
const OwnRedisTimeout = time.Minute

// newStore returns a client of the Redis at a URL, in one of the forms of Redis.Client: for one server, for a master
// that sentinels watch, or for a cluster. The options of the first server in the URL hold for all of them.
func newStore(r Redis, text string, timeout time.Duration) (store library, err error) {
	addr, err := parseAddress(text)
	if err != nil {
		return store, err
	}
	if err := setCredentials(r, addr.first); err != nil {
		return store, err
	}
	setTimeouts(addr.first, timeout)

	// One server, or several.
	if addr.master == "" && !addr.cluster {
		return library{redis.NewClient(addr.first), addr.first.PoolSize}, nil
	}

	options := universalOptions(addr.first)
	options.Addrs = append([]string{addr.first.Addr}, addr.others...)
	options.MasterName = addr.master
	options.IsClusterMode = addr.cluster
	if addr.master != "" {
		options.SentinelUsername = r.SentinelUser
		if r.SentinelPasswordFile != "" {
			if options.SentinelPassword, err = ReadSecret(r.SentinelPasswordFile); err != nil {
				return store, fmt.Errorf("--redis-sentinel-password-file: %w", err)
			}
		}
	}
	return library{redis.NewUniversalClient(options), options.PoolSize}, nil
}

// address is the content of a URL: one server, sentinels that watch a master, or nodes of a cluster.
type address struct {
	first   *redis.Options // options for the first server
	others  []string       // HOST:PORT of further sentinels or nodes
	master  string         // name of the master that sentinels watch, or ""
	cluster bool           // the servers are nodes of a cluster
}

// parseAddress parses the URL of Redis. It takes the parameters master_name, addr and cluster out of the query, and
// leaves the rest to redis.ParseURL.
func parseAddress(text string) (addr address, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return addr, redact.ErrURL
	}
	query := u.Query()
	addr.master = query.Get("master_name")
	addr.others = query["addr"]
	cluster := query.Get("cluster")
	addr.cluster = cluster == "true" || addr.master == "" && len(addr.others) > 0

	for _, name := range []string{"master_name", "addr", "cluster"} {
		query.Del(name)
	}
	u.RawQuery = query.Encode()
	if addr.first, err = redis.ParseURL(u.String()); err != nil {
		return addr, err
	}

	// Refuse contradictions.
	switch {
	case cluster != "" && cluster != "true" && cluster != "false":
		return addr, fmt.Errorf("cluster=%s: it is true or false", cluster)
	case cluster == "true" && addr.master != "":
		return addr, errors.New("cluster and master_name are two ways: give one")
	case cluster == "false" && addr.cluster:
		return addr, errors.New("cluster=false, and yet several nodes")
	case addr.first.Network == "unix" && (addr.cluster || addr.master != ""):
		return addr, errors.New("sentinels and clusters have no unix sockets")
	case addr.cluster && addr.first.DB != 0:
		return addr, errors.New("a cluster has no databases: leave the number out")
	}
	return addr, nil
}

// setCredentials puts user, password and certificates into the options of a client. Files are read again at every
// connection.
func setCredentials(r Redis, options *redis.Options) error {
	files := certificates{r.CA, r.Cert, r.Key, "--redis"}
	switch err := files.check(); {
	case err != nil:
		return err
	case options.TLSConfig == nil && (r.CA != "" || r.Cert != ""):
		return errors.New("--redis-ca and --redis-cert are for TLS: the URL begins with rediss:// then")
	case r.User != "" && r.PasswordFile == "":
		return errors.New("--redis-user has its password in --redis-password-file")
	}
	if options.TLSConfig != nil {
		options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return files.dial(ctx, network, addr, options.DialTimeout)
		}
	}

	if r.PasswordFile != "" {
		if options.Password != "" {
			return errors.New("a password in the URL and --redis-password-file: give one")
		}
		if _, err := ReadSecret(r.PasswordFile); err != nil {
			return fmt.Errorf("--redis-password-file: %w", err)
		}
		user := r.User
		if user == "" {
			user = options.Username
		}
		options.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := ReadSecret(r.PasswordFile)
			return user, password, err
		}
	}
	return nil
}

// universalOptions returns the options of a client of one server as options for several servers. It copies each field
// that has the same name and type in both.
func universalOptions(single *redis.Options) *redis.UniversalOptions {
	several := new(redis.UniversalOptions)
	source, target := reflect.ValueOf(single).Elem(), reflect.ValueOf(several).Elem()
	for i := range target.NumField() {
		if f := source.FieldByName(target.Type().Field(i).Name); f.IsValid() && f.Type() == target.Field(i).Type() {
			target.Field(i).Set(f)
		}
	}
	return several
}
