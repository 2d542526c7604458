// Endpoints for raw streams, with the settings of interop/peers/src/bulk.rs.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	bulkProtocol     = "posthaste-bulk"
	bulkWindow       = 16 << 20
	bulkStreams      = 256
	bulkSocketBuffer = 4 << 20
	bulkIdleTimeout  = 300 * time.Second
)

// oneThread leaves one thread at a time to goroutines and the garbage collector: CPU per byte is compared, not parallelism.
// The runtime's other threads, which wait for the kernel, are on the same core, on which the harness starts the process.
func oneThread() {
	runtime.GOMAXPROCS(1)
}

// form is what benches vary of both ends. There is no --block-on: a goroutine is the only form that a program has.
type form struct {
	udpPayload uint
}

func (f *form) declare(flags *flag.FlagSet) {
	flags.UintVar(&f.udpPayload, "udp-payload", 1452, "bytes of the largest UDP payload")
}

func (f *form) config() (*quic.Config, error) {
	// The library's own buffers are as large, and it silently takes less than it is told.
	if f.udpPayload < 1200 || f.udpPayload > 1452 {
		return nil, fmt.Errorf("a UDP payload of %d bytes: the library has 1200 to 1452", f.udpPayload)
	}
	return &quic.Config{
		InitialStreamReceiveWindow:     bulkWindow,
		MaxStreamReceiveWindow:         bulkWindow,
		InitialConnectionReceiveWindow: bulkWindow,
		MaxConnectionReceiveWindow:     bulkWindow,
		MaxIncomingStreams:             bulkStreams,
		MaxIdleTimeout:                 bulkIdleTimeout,
		InitialPacketSize:              uint16(f.udpPayload),
		DisablePathMTUDiscovery:        true,
	}, nil
}

// asOthersAsk gives a socket the buffers that the other libraries ask for. The library asks for more, and takes them by
// force where it may, when it first uses the socket; so this comes later.
func asOthersAsk(socket *net.UDPConn) error {
	return errors.Join(socket.SetReadBuffer(bulkSocketBuffer), socket.SetWriteBuffer(bulkSocketBuffer))
}

// rawServer has each stream of each connection answered in a goroutine of its own.
func rawServer(name string, arguments []string, answer func(*quic.Stream) error) error {
	oneThread()
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "UDP address")
	cert := flags.String("cert", "", "certificate chain, PEM")
	key := flags.String("key", "", "private key, PEM")
	early := flags.Bool("early", false, "take early data (0-RTT)")
	var chosen form
	chosen.declare(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := chosen.config()
	if err != nil {
		return err
	}
	config.Allow0RTT = *early
	socket, tlsConfig, err := identified(*listen, *cert, *key, bulkProtocol)
	if err != nil {
		return err
	}
	listener, err := listening(&quic.Transport{Conn: socket}, tlsConfig, config)
	if err != nil {
		return err
	}
	if err := asOthersAsk(socket); err != nil {
		return err
	}
	fmt.Println("READY", socket.LocalAddr())
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go serveAll(connection, answer)
	}
}

// acceptor is what both kinds of listeners have.
type acceptor interface {
	Accept(context.Context) (*quic.Conn, error)
}

// listening hands over connections before their handshakes are complete only if there is to be early data.
func listening(transport *quic.Transport, tlsConfig *tls.Config, config *quic.Config) (acceptor, error) {
	if config.Allow0RTT {
		return transport.ListenEarly(tlsConfig, config)
	}
	return transport.Listen(tlsConfig, config)
}

func serveAll(connection *quic.Conn, answer func(*quic.Stream) error) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			if err := answer(stream); err != nil && !isClosed(err) {
				fmt.Fprintln(os.Stderr, "stream:", err)
			}
		}()
	}
}

// isClosed tells the end of the connection by the client from what goes wrong.
func isClosed(err error) bool {
	var closed *quic.ApplicationError
	return errors.As(err, &closed) && closed.Remote && closed.ErrorCode == 0
}

// rawClient is a client on a socket of its own.
type rawClient struct {
	transport *quic.Transport
	socket    *net.UDPConn
	server    *net.UDPAddr
	tls       *tls.Config
	config    *quic.Config
}

// newRawClient reads the options that all clients have, and those that flags has already.
func newRawClient(flags *flag.FlagSet, arguments []string) (*rawClient, error) {
	oneThread()
	server := flags.String("connect", "", "the server's UDP address")
	ca := flags.String("ca", "", "trusted root, PEM")
	var chosen form
	chosen.declare(flags)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	config, err := chosen.config()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := trusting(*ca, bulkProtocol)
	if err != nil {
		return nil, err
	}
	address, err := net.ResolveUDPAddr("udp", *server)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	return &rawClient{&quic.Transport{Conn: socket}, socket, address, tlsConfig, config}, nil
}

// connect makes connections, one after the other.
func (c *rawClient) connect(count uint64) ([]*quic.Conn, error) {
	var connections []*quic.Conn
	for range count {
		connection, err := c.transport.Dial(context.Background(), c.server, c.tls, c.config)
		if err != nil {
			return nil, err
		}
		connections = append(connections, connection)
	}
	return connections, asOthersAsk(c.socket)
}

func (c *rawClient) close(connections []*quic.Conn) error {
	for _, connection := range connections {
		if err := connection.CloseWithError(0, ""); err != nil {
			return err
		}
	}
	return c.transport.Close()
}
