// Certificates, as all modes have them.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
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

// identified is a server with one certificate chain.
func identified(cert, key string, protocols ...string) (*tls.Config, error) {
	identity, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{identity}, NextProtos: protocols}, nil
}
