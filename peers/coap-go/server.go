package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/mux"
	coapnet "github.com/plgd-dev/go-coap/v3/net"
	"github.com/plgd-dev/go-coap/v3/options"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/udp"
)

// Serves until standard input ends.
func serve(scheme, address string, secret secret) error {
	handler := options.WithMux(&site{settings: map[string]string{}, observers: map[string]*observer{}})
	var run func() error
	switch scheme {
	case "coap":
		listener, err := coapnet.NewListenUDP("udp4", address)
		if err != nil {
			return err
		}
		run = func() error { return udp.NewServer(handler, room, blocks).Serve(listener) }
	case "coap+tcp":
		listener, err := coapnet.NewTCPListener("tcp4", address)
		if err != nil {
			return err
		}
		run = func() error { return tcp.NewServer(handler, room, blocks).Serve(listener) }
	case "coaps":
		listener, err := coapnet.NewDTLSListener("udp4", address, coapnet.NewDTLSServerOptions(
			piondtls.WithPSK(secret.keyFor),
			piondtls.WithPSKIdentityHint([]byte(secret.identity)),
			piondtls.WithCipherSuites(cipher),
			// Without any, pion ends the handshake of a client that offers use_srtp (RFC 5764), as dimpl does in each.
			piondtls.WithSRTPProtectionProfiles(piondtls.SRTP_AEAD_AES_128_GCM),
		))
		if err != nil {
			return err
		}
		run = func() error { return dtls.NewServer(handler, room, blocks).Serve(listener) }
	default:
		return fmt.Errorf("%s: not coap, coaps or coap+tcp", scheme)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("serving")
	return run()
}

type observer struct {
	conn  mux.Conn
	token message.Token
	// Of the last notification.
	messageID int32
}

// The resources of the tests.
type site struct {
	mutex     sync.Mutex
	note      []byte
	changes   uint32
	settings  map[string]string
	observers map[string]*observer
}

func (s *site) ServeCOAP(w mux.ResponseWriter, r *mux.Message) {
	if r.Type() == message.Reset {
		s.forget(r.MessageID())
		return
	}
	path, err := r.Path()
	if err != nil {
		reply(w, codes.NotFound, message.TextPlain, nil)
		return
	}
	payload, err := r.ReadBody()
	if err != nil {
		reply(w, codes.BadRequest, message.TextPlain, []byte(err.Error()))
		return
	}
	switch path {
	case "/hello":
		reply(w, codes.Content, message.TextPlain, []byte("hello world"))
	case "/slow":
		time.Sleep(wait(r))
		reply(w, codes.Content, message.TextPlain, []byte("waited"))
	case "/.well-known/core":
		reply(w, codes.Content, message.AppLinkFormat, []byte(`</hello>;rt="lamp"`))
	case "/note":
		s.serveNote(w, r, payload)
	case "/settings":
		s.serveSettings(w, payload)
	case "/body":
		serveBody(w, r.Code(), payload)
	default:
		reply(w, codes.NotFound, message.TextPlain, nil)
	}
}

func wait(r *mux.Message) time.Duration {
	queries, _ := r.Queries()
	for _, query := range queries {
		if milliseconds, err := strconv.Atoi(strings.TrimPrefix(query, "ms=")); err == nil {
			return time.Duration(milliseconds) * time.Millisecond
		}
	}
	return 0
}

func (s *site) serveNote(w mux.ResponseWriter, r *mux.Message, payload []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch r.Code() {
	case codes.GET:
		reply(w, codes.Content, message.TextPlain, s.note)
		s.register(w, r)
	case codes.PUT:
		s.change(payload)
		reply(w, codes.Changed, message.TextPlain, nil)
	case codes.POST:
		s.change(append(bytes.Clone(s.note), payload...))
		reply(w, codes.Changed, message.TextPlain, nil)
	case codes.DELETE:
		s.change(nil)
		reply(w, codes.Deleted, message.TextPlain, nil)
	default:
		reply(w, codes.MethodNotAllowed, message.TextPlain, nil)
	}
}

// Notes that a GET begins or ends an observation.
func (s *site) register(w mux.ResponseWriter, r *mux.Message) {
	observe, err := r.Observe()
	if err != nil {
		return
	}
	key := fmt.Sprintf("%s %x", w.Conn().RemoteAddr(), r.Token())
	if observe != 0 {
		delete(s.observers, key)
		return
	}
	s.observers[key] = &observer{w.Conn(), bytes.Clone(r.Token()), -1}
	w.Message().SetObserve(s.changes)
}

func (s *site) change(note []byte) {
	s.note = note
	s.changes++
	for key, observer := range s.observers {
		if observer.conn.Context().Err() != nil {
			delete(s.observers, key)
			continue
		}
		state := observer.conn.AcquireMessage(observer.conn.Context())
		state.SetCode(codes.Content)
		state.SetType(message.NonConfirmable)
		state.SetToken(observer.token)
		state.SetObserve(s.changes)
		state.SetContentFormat(message.TextPlain)
		state.SetBody(bytes.NewReader(note))
		if err := observer.conn.WriteMessage(state); err != nil {
			delete(s.observers, key)
		}
		observer.messageID = state.MessageID()
		observer.conn.ReleaseMessage(state)
	}
}

// A client that rejects a notification observes no longer (RFC 7641 §3.6). go-coap hands such a RST to the application, and sends
// what this answers as a message of its own.
func (s *site) forget(messageID int32) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for key, observer := range s.observers {
		if observer.messageID == messageID {
			delete(s.observers, key)
		}
	}
}

func (s *site) serveSettings(w mux.ResponseWriter, payload []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if name, value, isChange := strings.Cut(string(payload), "="); isChange {
		s.settings[name] = value
		reply(w, codes.Changed, message.TextPlain, nil)
		return
	}
	reply(w, codes.Content, message.TextPlain, []byte(s.settings[string(payload)]))
}

func serveBody(w mux.ResponseWriter, code codes.Code, payload []byte) {
	switch {
	case code == codes.GET:
		reply(w, codes.Content, message.AppOctets, body)
	case bytes.Equal(payload, body):
		reply(w, codes.Changed, message.TextPlain, nil)
	default:
		reply(w, codes.BadRequest, message.TextPlain, nil)
	}
}

func reply(w mux.ResponseWriter, code codes.Code, format message.MediaType, payload []byte) {
	var content io.ReadSeeker
	if payload != nil {
		content = bytes.NewReader(payload)
	}
	if err := w.SetResponse(code, format, content); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
}
