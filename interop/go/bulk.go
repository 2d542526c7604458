// The bulk protocol (interop/peers/src/bulk.rs).
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

// What the server repeats.
var bulkPattern = func() []byte {
	pattern := make([]byte, 65_535)
	for index := range pattern {
		pattern[index] = byte(index % 251)
	}
	return pattern
}()

func bulkServer(arguments []string) error {
	return rawServer("bulk-server", arguments, func(stream *quic.Stream) error {
		var request [8]byte
		if _, err := io.ReadFull(stream, request[:]); err != nil {
			return err
		}
		for left := binary.BigEndian.Uint64(request[:]); left > 0; {
			length := min(left, uint64(len(bulkPattern)))
			if _, err := stream.Write(bulkPattern[:length]); err != nil {
				return err
			}
			left -= length
		}
		return stream.Close()
	})
}

func bulkClient(arguments []string) error {
	flags := flag.NewFlagSet("bulk-client", flag.ExitOnError)
	bytes := flags.Uint64("bytes", 0, "bytes to ask for on each stream")
	streams := flags.Uint64("streams", 1, "streams on each connection, all at once")
	count := flags.Uint64("connections", 1, "connections")
	client, err := newRawClient(flags, arguments)
	if err != nil {
		return err
	}
	connections, err := client.connect(*count)
	if err != nil {
		return err
	}
	started := time.Now()
	if *count == 1 && *streams == 1 {
		err = fetchBulk(connections[0], *bytes)
	} else {
		ended := make(chan error)
		for _, connection := range connections {
			for range *streams {
				go func() { ended <- fetchBulk(connection, *bytes) }()
			}
		}
		for range *count * *streams {
			err = errors.Join(err, <-ended)
		}
	}
	if err != nil {
		return err
	}
	report := struct {
		Bytes   uint64  `json:"bytes"`
		Seconds float64 `json:"seconds"`
	}{*bytes * *streams * *count, time.Since(started).Seconds()}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	return client.close(connections)
}

// fetchBulk asks for so many bytes on a stream of its own, and checks the first and the last of each piece.
func fetchBulk(connection *quic.Conn, wanted uint64) error {
	stream, err := connection.OpenStream()
	if err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, wanted)); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	// The library copies to where it is told; there is no call that lends its own buffers.
	buffer := make([]byte, 64<<10)
	expected := func(offset uint64) byte { return bulkPattern[offset%uint64(len(bulkPattern))] }
	var received uint64
	for {
		length, err := stream.Read(buffer)
		if length > 0 {
			end := received + uint64(length)
			if buffer[0] != expected(received) || buffer[length-1] != expected(end-1) {
				return fmt.Errorf("wrong content in bytes %d..%d", received, end)
			}
			received = end
		}
		if err == io.EOF && received == wanted {
			return nil
		}
		if err == io.EOF {
			return fmt.Errorf("%d bytes of %d", received, wanted)
		}
		if err != nil {
			return err
		}
	}
}
