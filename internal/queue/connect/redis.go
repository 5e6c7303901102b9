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

// Redis is how a process presents itself to Redis. The zero value presents the credentials of the
// URL. Its tags are the tags of the commands' flags.
type Redis struct {
	User                 string `name:"redis-user" placeholder:"NAME" help:"User name (ACL). Without it the default user."`
	PasswordFile         string `name:"redis-password-file" placeholder:"FILE" help:"File with the password of --redis-user."`
	SentinelUser         string `name:"redis-sentinel-user" placeholder:"NAME" help:"User name for the sentinels."`
	SentinelPasswordFile string `name:"redis-sentinel-password-file" placeholder:"FILE" help:"File with the password for the sentinels."`

	CA   string `name:"redis-ca" placeholder:"FILE" help:"Certificates (PEM) of authorities. Without it those of the system."`
	Cert string `name:"redis-cert" placeholder:"FILE" help:"Certificate (PEM) of this client."`
	Key  string `name:"redis-key" placeholder:"FILE" help:"Private key (PEM) of --redis-cert."`
}

// Client returns a client of the Redis at a URL, without connecting, whose calls end within a timeout, 0 for RedisTimeout:
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

// RedisWithin returns a client of a Redis within this process, to which dial connects. A call ends within OwnRedisTimeout.
func RedisWithin(dial func() (net.Conn, error)) Store {
	o := &redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return dial() }}
	tune(o, OwnRedisTimeout)
	return library{redis.NewClient(o), o.PoolSize}
}

// OwnRedisTimeout bounds a call to a Redis within this process, which nothing but a busy machine delays.
const OwnRedisTimeout = time.Minute

func newStore(r Redis, text string, timeout time.Duration) (s library, err error) {
	at, err := readAddress(text)
	if err != nil {
		return s, err
	}
	if err := present(r, at.first); err != nil {
		return s, err
	}
	tune(at.first, timeout)
	if at.master == "" && !at.cluster {
		return library{redis.NewClient(at.first), at.first.PoolSize}, nil
	}

	many := universal(at.first)
	many.Addrs = append([]string{at.first.Addr}, at.others...)
	many.MasterName = at.master
	many.IsClusterMode = at.cluster
	if at.master != "" {
		many.SentinelUsername = r.SentinelUser
		if r.SentinelPasswordFile != "" {
			if many.SentinelPassword, err = Secret(r.SentinelPasswordFile); err != nil {
				return s, fmt.Errorf("--redis-sentinel-password-file: %w", err)
			}
		}
	}
	return library{redis.NewUniversalClient(many), many.PoolSize}, nil
}

// address is the content of a URL: one server, sentinels that watch a master, or nodes of a
// cluster.
type address struct {
	first   *redis.Options
	others  []string // HOST:PORT
	master  string
	cluster bool
}

func readAddress(text string) (at address, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return at, redact.ErrURL
	}
	query := u.Query()
	at.master = query.Get("master_name")
	at.others = query["addr"]
	cluster := query.Get("cluster")
	at.cluster = cluster == "true" || at.master == "" && len(at.others) > 0

	for _, own := range []string{"master_name", "addr", "cluster"} {
		query.Del(own)
	}
	u.RawQuery = query.Encode()
	if at.first, err = redis.ParseURL(u.String()); err != nil {
		return at, err
	}

	switch {
	case cluster != "" && cluster != "true" && cluster != "false":
		return at, fmt.Errorf("cluster=%s: it is true or false", cluster)
	case cluster == "true" && at.master != "":
		return at, errors.New("cluster and master_name are two ways: give one")
	case cluster == "false" && at.cluster:
		return at, errors.New("cluster=false, and yet several nodes")
	case at.first.Network == "unix" && (at.cluster || at.master != ""):
		return at, errors.New("sentinels and clusters have no unix sockets")
	case at.cluster && at.first.DB != 0:
		return at, errors.New("a cluster has no databases: leave the number out")
	}
	return at, nil
}

// present puts user, password and certificates into the options of a client.
func present(r Redis, o *redis.Options) error {
	files := certificates{r.CA, r.Cert, r.Key, "--redis"}
	switch err := files.check(); {
	case err != nil:
		return err
	case o.TLSConfig == nil && (r.CA != "" || r.Cert != ""):
		return errors.New("--redis-ca and --redis-cert are for TLS: the URL begins with rediss:// then")
	case r.User != "" && r.PasswordFile == "":
		return errors.New("--redis-user has its password in --redis-password-file")
	}
	if o.TLSConfig != nil {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return files.dial(ctx, network, addr, o.DialTimeout)
		}
	}

	if r.PasswordFile != "" {
		if o.Password != "" {
			return errors.New("a password in the URL and --redis-password-file: give one")
		}
		if _, err := Secret(r.PasswordFile); err != nil {
			return fmt.Errorf("--redis-password-file: %w", err)
		}
		user := r.User
		if user == "" {
			user = o.Username
		}
		o.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := Secret(r.PasswordFile)
			return user, password, err
		}
	}
	return nil
}

// universal converts the options of a client of one server to those for several, which have the same names.
func universal(o *redis.Options) *redis.UniversalOptions {
	many := new(redis.UniversalOptions)
	from, to := reflect.ValueOf(o).Elem(), reflect.ValueOf(many).Elem()
	for i := range to.NumField() {
		if f := from.FieldByName(to.Type().Field(i).Name); f.IsValid() && f.Type() == to.Field(i).Type() {
			to.Field(i).Set(f)
		}
	}
	return many
}
