// A registry of container images and charts for tests, on the loopback address: registry PORT SOCKET. It keeps everything in memory. SOCKET is
// the same as a Unix socket: it can be reached from another network namespace, where `registry PORT SOCKET forward` passes connections to it on.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func forward(from net.Conn, socket string) {
	defer from.Close()
	to, err := net.Dial("unix", socket)
	if err != nil {
		log.Print(err)
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, from)
		to.(*net.UnixConn).CloseWrite()
	}()
	io.Copy(from, to)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: registry PORT SOCKET [forward]")
	}
	port, socket := os.Args[1], os.Args[2]
	tcp, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 3 {
		for {
			connection, err := tcp.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go forward(connection, socket)
		}
	}
	unix, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	go server.Serve(unix)
	log.Fatal(server.Serve(tcp))
}
