// Requests and replies, and handshakes with two of them each (interop/peers/src/requests.rs).
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	requestWarmUp   = 2_000
	handshakeWarmUp = 50
	requestsEach    = 2
)

var (
	requestBytes = bytes.Repeat([]byte{'?'}, 100)
	replyBytes   = bytes.Repeat([]byte{'!'}, 1_000)
)

func requestServer(arguments []string) error {
	return rawServer("request-server", arguments, func(stream *quic.Stream) error {
		if err := readExactly(stream, requestBytes); err != nil {
			return err
		}
		if _, err := stream.Write(replyBytes); err != nil {
			return err
		}
		return stream.Close()
	})
}

func makeRequest(connection *quic.Conn) error {
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(requestBytes); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return readExactly(stream, replyBytes)
}

// readExactly reads a stream to its end, which must be all that is expected.
func readExactly(stream *quic.Stream, expected []byte) error {
	// One byte more is too many, and shows the end otherwise.
	received := make([]byte, len(expected)+1)
	length, err := io.ReadFull(stream, received)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if !bytes.Equal(received[:length], expected) {
		return fmt.Errorf("%d wrong bytes", length)
	}
	return nil
}

func requestClient(arguments []string) error {
	flags := flag.NewFlagSet("request-client", flag.ExitOnError)
	count := flags.Uint64("requests", 0, "requests to make")
	inFlight := flags.Uint64("in-flight", 1, "requests in flight at once")
	over := flags.Uint64("connections", 1, "connections, which the requests use in turn")
	client, err := newRawClient(flags, arguments)
	if err != nil {
		return err
	}
	connections, err := client.connect(*over)
	if err != nil {
		return err
	}
	var next atomic.Uint64
	request := func() error {
		return makeRequest(connections[(next.Add(1)-1)%uint64(len(connections))])
	}
	// Each connection has its share of the warm-up.
	if err := sideBySide(*inFlight, max(requestWarmUp, 2**over), request); err != nil {
		return err
	}
	if err := measured(*count, func() error { return sideBySide(*inFlight, *count, request) }); err != nil {
		return err
	}
	return client.close(connections)
}

// sideBySide has a number of goroutines make so many requests together.
func sideBySide(inFlight, count uint64, request func() error) error {
	var begun atomic.Uint64
	ended := make(chan error)
	for range inFlight {
		go func() {
			for begun.Add(1) <= count {
				if err := request(); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range inFlight {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}

// measured tells the harness that the warm-up is over, waits for its word, and prints how long the work took.
func measured(count uint64, work func() error) error {
	fmt.Println("READY")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("the harness: %w", err)
	}
	started := time.Now()
	if err := work(); err != nil {
		return err
	}
	report := struct {
		Requests uint64  `json:"requests"`
		Seconds  float64 `json:"seconds"`
	}{count, time.Since(started).Seconds()}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func handshakeClient(arguments []string) error {
	flags := flag.NewFlagSet("handshake-client", flag.ExitOnError)
	count := flags.Uint64("count", 0, "connections to make")
	inFlight := flags.Uint64("in-flight", 1, "connections that are made at once")
	again := flags.String("again", "", "what becomes of sessions: resumed or early")
	client, err := newRawClient(flags, arguments)
	if err != nil {
		return err
	}
	if *again != "" {
		client.tls.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	}
	made := &handshakes{client: client, again: *again, most: int(2 * *inFlight)}
	if err := sideBySide(*inFlight, handshakeWarmUp, made.one); err != nil {
		return err
	}
	err = measured(*count, func() error {
		made.meant.Store(0)
		if err := sideBySide(*inFlight, *count, made.one); err != nil {
			return err
		}
		if meant := made.meant.Load(); meant*10 < *count*9 {
			return fmt.Errorf("%d of %d handshakes were what they should be", meant, *count)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return client.close(made.open)
}

// handshakes makes connections and keeps the latest open for a while: tickets come behind the replies.
type handshakes struct {
	client *rawClient
	again  string
	most   int
	meant  atomic.Uint64
	lock   sync.Mutex
	open   []*quic.Conn
}

func (h *handshakes) one() error {
	dial := h.client.transport.Dial
	if h.again == "early" {
		dial = h.client.transport.DialEarly
	}
	connection, err := dial(context.Background(), h.client.server, h.client.tls, h.client.config)
	if err != nil {
		return err
	}
	ended := make(chan error)
	for range requestsEach {
		go func() { ended <- makeRequest(connection) }()
	}
	for range requestsEach {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	<-connection.HandshakeComplete()
	if state := connection.ConnectionState(); h.isMeant(state.TLS.DidResume, state.Used0RTT) {
		h.meant.Add(1)
	}
	return h.keep(connection)
}

func (h *handshakes) isMeant(isResumed, isEarly bool) bool {
	switch h.again {
	case "early":
		return isEarly
	case "resumed":
		return isResumed && !isEarly
	default:
		return !isResumed
	}
}

func (h *handshakes) keep(connection *quic.Conn) error {
	h.lock.Lock()
	h.open = append(h.open, connection)
	var oldest *quic.Conn
	if len(h.open) > h.most {
		oldest, h.open = h.open[0], h.open[1:]
	}
	h.lock.Unlock()
	if oldest == nil {
		return nil
	}
	return oldest.CloseWithError(0, "")
}
