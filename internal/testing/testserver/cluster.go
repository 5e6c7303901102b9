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
	URL     string // of all, with commas
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
		var first error
		if i == 0 {
			first = err
		}
		attach(t, s.process, first)
	}
	return c
}

// StartCluster is NATSCluster without a test. The caller ends the servers.
func StartCluster(n int, o NATSOptions) (*Cluster, error) {
	c := &Cluster{Servers: make([]*NATSServer, n)}
	for i := range c.Servers {
		c.Servers[i] = &NATSServer{process: &process{}}
	}
	var routes, urls []string
	for range n {
		port, err := Unused()
		if err != nil {
			return c, err
		}
		routes = append(routes, net.JoinHostPort("127.0.0.1", port))
	}

	// A name of its own: clusters that were given each other's ports must not become one.
	name := "basetensor-" + rand.Text()
	var all errgroup.Group // at once: none is ready before most are there
	for i := range n {
		to, err := o.routes(i, routes)
		if err != nil {
			return c, err
		}
		own := o
		own.StoreDir = filepath.Join(o.StoreDir, fmt.Sprint("server-", i))
		own.Args = append([]string{
			"--cluster_name", name,
			"--cluster", "nats://" + routes[i],
			"--routes", strings.Join(to, ","),
		}, o.Args...)
		if o.Via != nil { // an address that nobody listens at: servers tell each other of it, and would find a way around
			own.Args = append(own.Args, "--cluster_advertise", "127.0.0.1:1")
		}
		s, err := newNATS(own)
		if err != nil {
			return c, err
		}
		s.Rename(fmt.Sprint("server-", i))
		c.Servers[i] = s
		urls = append(urls, s.URL)
		all.Go(s.start)
	}
	c.URL = strings.Join(urls, ",")
	return c, all.Wait()
}

// routes are the URLs by which a server reaches those at these addresses.
func (o NATSOptions) routes(from int, addresses []string) ([]string, error) {
	var urls []string
	for to, address := range addresses {
		if o.Via != nil && to == from {
			continue
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

// Named returns the server with that name, as streams tell of their leader; nil if there is none.
func (c *Cluster) Named(name string) *NATSServer {
	for _, s := range c.Servers {
		if name == s.Name {
			return s
		}
	}
	return nil
}
