// Certificates and sockets, as all modes have them.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// trusting is a client that trusts the roots in a file of PEM and no others.
func trusting(ca string, protocols ...string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", ca)
	}
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: protocols}, nil
}

// identified is a server with one certificate chain, on a socket of its own.
func identified(listen, cert, key string, protocols ...string) (*net.UDPConn, *tls.Config, error) {
	identity, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, nil, err
	}
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, nil, err
	}
	socket, err := net.ListenUDP("udp", address)
	return socket, &tls.Config{Certificates: []tls.Certificate{identity}, NextProtos: protocols}, err
}
