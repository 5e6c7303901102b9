package testserver

import (
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Cluster is several nats-servers that replicate their streams.
type Cluster struct {
	Servers []*NATSServer
	URL     string // the URLs of all servers, separated by commas
}

// NATSCluster starts n nats-servers of one cluster for a test, each with a folder of its own in o.StoreDir, and waits until JetStream has a
// leader.
func NATSCluster(t testing.TB, n int, o NATSOptions) *Cluster {
	t.Helper()
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	c, err := StartCluster(n, o)
	for i, s := range c.Servers {
		var startError error
		if i == 0 { // one report of it is enough
			startError = err
		}
		attach(t, s.process, startError)
	}
	return c
}

// StartCluster starts a cluster as NATSCluster does, without a test. The caller must end the servers. If there is an error, the cluster has
// the servers that were started so far.
func StartCluster(n int, o NATSOptions) (*Cluster, error) {
	c := &Cluster{Servers: make([]*NATSServer, n)}
	for i := range c.Servers {
		c.Servers[i] = &NATSServer{process: &process{}}
	}

	// The addresses at which the servers accept each other.
	var routes, urls []string
	for range n {
		port, err := Unused()
		if err != nil {
			return c, err
		}
		routes = append(routes, net.JoinHostPort("127.0.0.1", port))
	}

	// The name is random: clusters that get each other's ports by chance must not join.
	name := "basetensor-" + rand.Text()
	var starts errgroup.Group // all start at once, since none is ready before most are there
	for i := range n {
		routeURLs, err := o.routeURLs(i, routes)
		if err != nil {
			return c, err
		}
		options := o
		options.StoreDir = filepath.Join(o.StoreDir, fmt.Sprint("server-", i))
		options.Args = append([]string{
			"--cluster_name", name,
			"--cluster", "nats://" + routes[i],
			"--routes", strings.Join(routeURLs, ","),
		}, o.Args...)

		// Servers tell each other the address that they advertise, and would connect to it instead of the one of Via. Nobody listens at
		// this one.
		if o.Via != nil {
			options.Args = append(options.Args, "--cluster_advertise", "127.0.0.1:1")
		}

		s, err := newNATS(options)
		if err != nil {
			return c, err
		}
		s.Rename(fmt.Sprint("server-", i))
		c.Servers[i] = s
		urls = append(urls, s.URL)
		starts.Go(s.start)
	}
	c.URL = strings.Join(urls, ",")
	return c, starts.Wait()
}

// routeURLs returns the URLs by which server from reaches the servers at these addresses: the addresses themselves, or what Via returns for
// each of the others.
func (o NATSOptions) routeURLs(from int, addresses []string) ([]string, error) {
	var urls []string
	for to, address := range addresses {
		if o.Via != nil && to == from {
			continue // a server needs no way to itself
		}
		if o.Via != nil {
			var err error
			if address, err = o.Via(from, to, address); err != nil {
				return nil, err
			}
		}
		urls = append(urls, "nats://"+address)
	}
	return urls, nil
}

// Named returns the server of this name, such as the one that a stream reports as its leader. It is nil if there is none.
func (c *Cluster) Named(name string) *NATSServer {
	for _, s := range c.Servers {
		if name == s.Name {
			return s
		}
	}
	return nil
}
