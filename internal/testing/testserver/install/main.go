// Install finds or gets the servers that the tests start, and reports the result. It never fails a
// build: tests whose server is missing skip with the reason. With -unpack it leaves the system
// alone even as root.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// main gets a redis-server and a nats-server, and prints where they are or why they are missing.
func main() {
	unpack := flag.Bool("unpack", false, "unpack redis-server into the cache folder, never install it")
	flag.Parse()
	get := testserver.Install
	if *unpack {
		get = testserver.Unpack
	}
	if err := get(os.Stdout); err != nil {
		fmt.Println("redis-server:", err)
	}
	if path, err := testserver.FindNATS(); err != nil {
		fmt.Println("nats-server:", err)
	} else {
		fmt.Println("nats-server: built", path)
	}
}
