// A quic-go HTTP/3 client and server that speak the interop contract (interop/README.md).
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "client":
		err = client(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "server":
		err = server(os.Args[2:])
	default:
		err = errors.New("usage: peer-quic-go client|server OPTIONS")
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

func client(arguments []string) error {
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	ca := flags.String("ca", "", "trusted root, PEM")
	parallel := flags.Int("parallel", 1, "requests in flight at once")
	outputDir := flags.String("output-dir", "", "bodies go here")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate", *ca)
	}
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, QUICConfig: &quic.Config{}}
	defer transport.Close()
	http3Client := &http.Client{Transport: transport}

	var output sync.Mutex
	var waiting sync.WaitGroup
	var failures []error
	urls := make(chan string)
	for range *parallel {
		waiting.Add(1)
		go func() {
			defer waiting.Done()
			for url := range urls {
				line, err := fetch(http3Client, url, *outputDir)
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
	for _, url := range flags.Args() {
		urls <- url
	}
	close(urls)
	waiting.Wait()
	return errors.Join(failures...)
}

func fetch(http3Client *http.Client, url string, outputDir string) (*fetched, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
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
	body, err := io.ReadAll(response.Body)
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

func server(arguments []string) error {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "UDP address")
	cert := flags.String("cert", "", "certificate chain, PEM")
	key := flags.String("key", "", "private key, PEM")
	root := flags.String("root", "", "directory to serve")
	retry := flags.Bool("retry", false, "send a Retry to every new client")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	identity, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", *listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	http3Server := &http3.Server{
		Handler:   http.FileServer(http.Dir(*root)),
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{identity}}),
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
