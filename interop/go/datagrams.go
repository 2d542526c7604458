// The echo of messages in DATAGRAM frames (interop/peers/src/datagrams.rs).
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	datagramProtocol = "datagram-echo"
	// As the peers in Rust: messages under way at once.
	datagramsUnderWay = 16
	datagramPatience  = 20 * time.Second
)

// And their lengths, in turn.
var datagramLengths = []int{8, 9, 63, 64, 300, 1000, 1100}

func datagramMessage(index uint64) []byte {
	length := datagramLengths[index%uint64(len(datagramLengths))]
	message := binary.BigEndian.AppendUint64(nil, index)
	return append(message, bytes.Repeat([]byte{byte(index)}, length-len(message))...)
}

func datagramClient(arguments []string) error {
	flags := flag.NewFlagSet("datagram-client", flag.ExitOnError)
	address := flags.String("connect", "", "the server's UDP address")
	ca := flags.String("ca", "", "trusted root, PEM")
	count := flags.Uint64("messages", 0, "messages to send")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	tlsConfig, err := trusting(*ca, datagramProtocol)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), datagramPatience)
	defer cancel()
	connection, err := quic.DialAddr(ctx, *address, tlsConfig, &quic.Config{EnableDatagrams: true})
	if err != nil {
		return err
	}
	underWay := map[uint64]bool{}
	var sent, received uint64
	size := 0
	for received < *count {
		for sent < *count && len(underWay) < datagramsUnderWay {
			if err := connection.SendDatagram(datagramMessage(sent)); err != nil {
				return err
			}
			underWay[sent] = true
			sent++
		}
		echo, err := connection.ReceiveDatagram(ctx)
		if err != nil {
			return err
		}
		if len(echo) < 8 {
			return fmt.Errorf("a short message")
		}
		index := binary.BigEndian.Uint64(echo)
		if !underWay[index] || !bytes.Equal(echo, datagramMessage(index)) {
			return fmt.Errorf("message %d came twice or changed", index)
		}
		delete(underWay, index)
		received++
		size += len(echo)
	}
	report := map[string]uint64{"messages": received, "bytes": uint64(size)}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	return connection.CloseWithError(0, "")
}

func datagramServer(arguments []string) error {
	flags := flag.NewFlagSet("datagram-server", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "UDP address")
	cert := flags.String("cert", "", "certificate chain, PEM")
	key := flags.String("key", "", "private key, PEM")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	socket, tlsConfig, err := identified(*listen, *cert, *key, datagramProtocol)
	if err != nil {
		return err
	}
	listener, err := quic.Listen(socket, tlsConfig, &quic.Config{EnableDatagrams: true})
	if err != nil {
		return err
	}
	fmt.Println("READY", socket.LocalAddr())
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go echoDatagrams(connection)
	}
}

func echoDatagrams(connection *quic.Conn) {
	for {
		message, err := connection.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		if err := connection.SendDatagram(message); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}
