// A quic-go client and server that speak the interop contract (interop/README.md), over HTTP/3 and raw streams.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// By the first argument; the others are its own.
var modes = map[string]func(arguments []string) error{
	"client":           client,
	"server":           server,
	"datagram-client":  datagramClient,
	"datagram-server":  datagramServer,
	"bulk-client":      bulkClient,
	"bulk-server":      bulkServer,
	"request-client":   requestClient,
	"request-server":   requestServer,
	"handshake-client": handshakeClient,
}

func main() {
	err := errors.New("usage: peer-quic-go MODE OPTIONS, with one of these modes: " +
		strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	if len(os.Args) > 1 && modes[os.Args[1]] != nil {
		err = modes[os.Args[1]](os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fetched is one line of the client's report.
type fetched struct {
	URL        string `json:"url"`
	Protocol   string `json:"protocol"`
	Status     int    `json:"status"`
	Bytes      int    `json:"bytes"`
	SHA256     string `json:"sha256"`
	Connection string `json:"connection"`
}

// options of the client.
type options struct {
	parallel  int
	outputDir string
	version   quic.Version
	again     string
	moveAfter int64
	moveTo    string
	urls      []string
}

func client(arguments []string) error {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	ca := flags.String("ca", "", "trusted root, PEM")
	version := flags.Int("quic-version", 1, "the version of QUIC, 1 or 2")
	// It updates its keys of itself: for the first time after 100 packets.
	flags.Bool("update-keys", false, "update the keys meanwhile")
	var chosen options
	flags.IntVar(&chosen.parallel, "parallel", 1, "requests in flight at once")
	flags.StringVar(&chosen.outputDir, "output-dir", "", "bodies go here")
	flags.StringVar(&chosen.again, "again", "", "a second connection: resumed or early")
	flags.Int64Var(&chosen.moveAfter, "move-after", 0, "move to another socket after so many bytes")
	flags.StringVar(&chosen.moveTo, "move-to", "127.0.0.1", "local address of that socket")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	chosen.urls = flags.Args()
	chosen.version = quic.Version1
	if *version == 2 {
		chosen.version = quic.Version2
	}
	tlsConfig, err := trusting(*ca)
	if err != nil {
		return err
	}
	tlsConfig.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	if err := fetchAll(&chosen, tlsConfig, http.MethodGet); err != nil {
		return err
	}
	switch chosen.again {
	case "resumed":
		return fetchAll(&chosen, tlsConfig, http.MethodGet)
	case "early":
		return fetchAll(&chosen, tlsConfig, http3.MethodGet0RTT)
	}
	return nil
}

// fetchAll fetches all URLs over a connection of its own.
func fetchAll(chosen *options, tlsConfig *tls.Config, method string) error {
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	quicTransport := &quic.Transport{Conn: socket}
	defer quicTransport.Close()
	moving := &mover{after: chosen.moveAfter, to: chosen.moveTo}
	defer moving.close()
	transport := &http3.Transport{
		TLSClientConfig: tlsConfig,
		QUICConfig:      &quic.Config{Versions: []quic.Version{chosen.version}},
		Dial: func(ctx context.Context, address string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			remote, err := net.ResolveUDPAddr("udp", address)
			if err != nil {
				return nil, err
			}
			connection, err := quicTransport.DialEarly(ctx, remote, tlsConfig, config)
			moving.connection.Store(connection)
			return connection, err
		},
	}
	defer transport.Close()
	http3Client := &http.Client{Transport: transport}

	var output sync.Mutex
	var waiting sync.WaitGroup
	var failures []error
	urls := make(chan string)
	for range chosen.parallel {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			for url := range urls {
				line, err := fetch(http3Client, method, url, chosen.outputDir, moving)
				output.Lock()
				if err == nil {
					err = json.NewEncoder(os.Stdout).Encode(line)
				}
				if err != nil {
					failures = append(failures, fmt.Errorf("%s: %w", url, err))
				}
				output.Unlock()
			}
		}()
	}
	for _, url := range chosen.urls {
		urls <- url
	}
	close(urls)
	waiting.Wait()
	return errors.Join(failures...)
}

// mover takes the connection to another socket once enough has arrived.
type mover struct {
	after      int64
	to         string
	connection atomic.Pointer[quic.Conn]
	received   atomic.Int64
	once       sync.Once
	transport  *quic.Transport
	err        error
}

func (m *mover) Write(data []byte) (int, error) {
	if m.received.Add(int64(len(data))) >= m.after && m.after > 0 {
		m.once.Do(func() { m.err = m.move() })
	}
	return len(data), m.err
}

func (m *mover) move() error {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(m.to)})
	if err != nil {
		return err
	}
	m.transport = &quic.Transport{Conn: socket}
	path, err := m.connection.Load().AddPath(m.transport)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := path.Probe(ctx); err != nil {
		return err
	}
	return path.Switch()
}

func (m *mover) close() {
	if m.transport != nil {
		m.transport.Close()
	}
}

func fetch(http3Client *http.Client, method, url, outputDir string, moving *mover) (*fetched, error) {
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		return nil, err
	}
	connection := "unknown"
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		connection = info.Conn.LocalAddr().String()
	}}
	response, err := http3Client.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.TeeReader(response.Body, moving))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	if err := os.WriteFile(filepath.Join(outputDir, path.Base(url)), body, 0o600); err != nil {
		return nil, err
	}
	protocol := "h3"
	if response.ProtoMajor != 3 {
		protocol = response.Proto
	}
	digest := sha256.Sum256(body)
	return &fetched{url, protocol, response.StatusCode, len(body), hex.EncodeToString(digest[:]), connection}, nil
}

// advertised tells browsers that the port they ask speaks HTTP/3: Chromium sends no more than six requests at a time to
// one that has not said it.
func advertised(handler http.Handler, port int) http.Handler {
	field := fmt.Sprintf("h3=\":%d\"; ma=86400", port)
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Alt-Svc", field)
		handler.ServeHTTP(response, request)
	})
}

func server(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "UDP address")
	cert := flags.String("cert", "", "certificate chain, PEM")
	key := flags.String("key", "", "private key, PEM")
	root := flags.String("root", "", "directory to serve")
	retry := flags.Bool("retry", false, "send a Retry to every new client")
	// As the client.
	flags.Bool("update-keys", false, "update the keys meanwhile")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	socket, tlsConfig, err := identified(*listen, *cert, *key)
	if err != nil {
		return err
	}
	http3Server := &http3.Server{
		Handler:   advertised(http.FileServer(http.Dir(*root)), socket.LocalAddr().(*net.UDPAddr).Port),
		TLSConfig: http3.ConfigureTLSConfig(tlsConfig),
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return *retry },
	}
	listener, err := transport.ListenEarly(http3Server.TLSConfig, &quic.Config{Allow0RTT: true})
	if err != nil {
		return err
	}
	fmt.Println("READY", socket.LocalAddr())
	return http3Server.ServeListener(listener)
}
