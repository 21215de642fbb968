package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/dtls"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/message/pool"
	"github.com/plgd-dev/go-coap/v3/mux"
	"github.com/plgd-dev/go-coap/v3/tcp"
	"github.com/plgd-dev/go-coap/v3/udp"
)

func dial(base *url.URL, secret secret) (mux.Conn, error) {
	switch base.Scheme {
	case "coap":
		return udp.Dial(base.Host, room, blocks)
	case "coap+tcp":
		return tcp.Dial(base.Host, room, blocks)
	case "coaps":
		return dtls.Dial(base.Host, dtls.NewDTLSClientOptions(
			piondtls.WithPSK(secret.keyFor),
			piondtls.WithPSKIdentityHint([]byte(secret.identity)),
			piondtls.WithCipherSuites(cipher),
		), room, blocks)
	default:
		return nil, fmt.Errorf("%s: not coap, coaps or coap+tcp", base)
	}
}

type client struct {
	conn mux.Conn
	ctx  context.Context
}

// Does the steps and prints what each gets.
func ask(steps, uri string, secret secret) error {
	base, err := url.Parse(uri)
	if err != nil {
		return err
	}
	conn, err := dial(base, secret)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := client{conn, ctx}
	if steps == "get" {
		return client.ask("get", codes.GET, base.Path, nil)
	}
	for _, step := range []func() error{client.smallSteps, client.observe, client.largeSteps} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c client) smallSteps() error {
	small := []struct {
		step   string
		code   codes.Code
		target string
		body   []byte
		change func(*pool.Message)
	}{
		{"con", codes.GET, "/hello", nil, nil},
		{"non", codes.GET, "/hello", nil, func(request *pool.Message) { request.SetType(message.NonConfirmable) }},
		{"slow", codes.GET, "/slow?ms=1500", nil, nil},
		{"core", codes.GET, "/.well-known/core?rt=lamp", nil, nil},
		{"missing", codes.GET, "/missing", nil, nil},
		{"critical", codes.GET, "/hello", nil, unknown(65001)},
		{"elective", codes.GET, "/hello", nil, unknown(65000)},
		{"put", codes.PUT, "/note", []byte("start"), nil},
		{"post", codes.POST, "/note", []byte("ed"), nil},
		{"get", codes.GET, "/note", nil, nil},
		{"ipatch", codes.IPATCH, "/settings", []byte("color=red"), nil},
		{"fetch", codes.FETCH, "/settings", []byte("color"), nil},
	}
	for _, small := range small {
		request, err := c.request(small.code, small.target, small.body)
		if err != nil {
			return err
		}
		if small.change != nil {
			small.change(request)
		}
		if err := c.tellAnswer(small.step, request); err != nil {
			return err
		}
	}
	if err := c.conn.Ping(c.ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	fmt.Print("ping\t0.00\ttrue\n")
	return nil
}

func unknown(number message.OptionID) func(*pool.Message) {
	return func(request *pool.Message) { request.SetOptionBytes(number, []byte("x")) }
}

// Each state is awaited before the next one is put, so that none may be left out.
func (c client) observe() error {
	request, err := c.request(codes.GET, "/note", nil)
	if err != nil {
		return err
	}
	request.SetObserve(0)
	states := make(chan string, 16)
	observation, err := c.conn.DoObserve(request, func(state *pool.Message) { states <- line(state) })
	if err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	if err := c.tellState("observe", states); err != nil {
		return err
	}
	for _, text := range []string{"one", "two", "three"} {
		request, err := c.request(codes.PUT, "/note", []byte(text))
		if err != nil {
			return err
		}
		if _, err := c.conn.Do(request); err != nil {
			return fmt.Errorf("put %s: %w", text, err)
		}
		if err := c.tellState("notification", states); err != nil {
			return err
		}
	}
	return observation.Cancel(c.ctx)
}

func (c client) tellState(step string, states <-chan string) error {
	select {
	case state := <-states:
		fmt.Printf("%s\t%s\n", step, state)
		return nil
	case <-c.ctx.Done():
		return fmt.Errorf("no %s came", step)
	}
}

func (c client) largeSteps() error {
	if err := c.ask("delete", codes.DELETE, "/note", nil); err != nil {
		return err
	}
	if err := c.ask("up", codes.PUT, "/body", body); err != nil {
		return err
	}
	return c.ask("down", codes.GET, "/body", nil)
}

func (c client) ask(step string, code codes.Code, target string, body []byte) error {
	request, err := c.request(code, target, body)
	if err != nil {
		return err
	}
	return c.tellAnswer(step, request)
}

func (c client) request(code codes.Code, target string, body []byte) (*pool.Message, error) {
	token, err := message.GetToken()
	if err != nil {
		return nil, err
	}
	request := c.conn.AcquireMessage(c.ctx)
	request.SetCode(code)
	request.SetToken(token)
	path, query, hasQuery := strings.Cut(target, "?")
	if err := request.SetPath(path); err != nil {
		return nil, err
	}
	if hasQuery {
		request.AddQuery(query)
	}
	if body != nil {
		request.SetContentFormat(message.TextPlain)
		request.SetBody(bytes.NewReader(body))
	}
	return request, nil
}

func (c client) tellAnswer(step string, request *pool.Message) error {
	answer, err := c.conn.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	fmt.Printf("%s\t%s\n", step, line(answer))
	return nil
}

// The code and the payload of a response.
func line(response *pool.Message) string {
	payload, err := response.ReadBody()
	if err != nil {
		return err.Error()
	}
	text := string(payload)
	if len(payload) == len(body) {
		text = map[bool]string{false: "body False", true: "body True"}[bytes.Equal(payload, body)]
	}
	return fmt.Sprintf("%d.%02d\t%s", response.Code()>>5, response.Code()&31, text)
}
