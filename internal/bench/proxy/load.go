package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ryehq/rye/proxy"
)

type result struct {
	rate float64       // requests per second, eight clients
	wait time.Duration // median, one client
}

// roots is the origin's CA, beside the proxy's in dir.
func roots(dir string) *x509.CertPool {
	pool := x509.NewCertPool()
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "origin", proxy.CertFile)); err == nil {
		pool.AppendCertsFromPEM(b)
	}
	return pool
}

// selfSigned makes the origin's certificate.
func selfSigned(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, proxy.CertFile), cert, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, proxy.KeyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
}

// measure sends requests of 4 KiB over kept connections, HTTP/1.1. Any that fails ends it.
func measure(target string, via *url.URL, n int) (result, error) {
	const clients = 8
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: clients}
	defer tr.CloseIdleConnections()
	if via != nil {
		tr.Proxy = http.ProxyURL(via)
	}
	c := &http.Client{Transport: tr, Timeout: 20 * time.Second}
	body := append([]byte(`{"model":"m","messages":[{"role":"user","content":"`), bytes.Repeat([]byte("some text, "), 360)...)
	body = append(body, `"}]}`...)
	ask := func() error {
		res, err := c.Post(target, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if got, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 || got != answerSize {
			return fmt.Errorf("status %d, %d bytes, %v", res.StatusCode, got, err)
		}
		return nil
	}
	for range 20 { // connections and certificates are made
		if err := ask(); err != nil {
			return result{}, err
		}
	}
	var waits []int64
	for range n / 3 {
		t := time.Now()
		if err := ask(); err != nil {
			return result{}, err
		}
		waits = append(waits, int64(time.Since(t)))
	}
	var left atomic.Int64
	left.Store(int64(n))
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	for range clients {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := ask(); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	return result{float64(n) / time.Since(start).Seconds(), time.Duration(median(waits))}, nil
}
