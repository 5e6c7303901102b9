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
		routes = append(routes, "nats://"+net.JoinHostPort("127.0.0.1", port))
	}

	// A name of its own: clusters that were given each other's ports must not become one.
	name := "basetensor-" + rand.Text()
	var all errgroup.Group // at once: none is ready before most are there
	for i := range n {
		own := o
		own.StoreDir = filepath.Join(o.StoreDir, fmt.Sprint("server-", i))
		own.Args = append([]string{
			"--server_name", fmt.Sprint("server-", i),
			"--cluster_name", name,
			"--cluster", routes[i],
			"--routes", strings.Join(routes, ","),
		}, o.Args...)
		s, err := newNATS(own)
		if err != nil {
			return c, err
		}
		c.Servers[i] = s
		urls = append(urls, s.URL)
		all.Go(s.start)
	}
	c.URL = strings.Join(urls, ",")
	return c, all.Wait()
}

// Named returns the server with that name, as streams tell of their leader; nil if there is none.
func (c *Cluster) Named(name string) *NATSServer {
	for i, s := range c.Servers {
		if name == fmt.Sprint("server-", i) {
			return s
		}
	}
	return nil
}
