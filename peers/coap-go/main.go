// The CoAP tests with go-coap as client and as server, over UDP, DTLS and TCP; peers/README.md has the steps and the resources.
//
//	coap-go ask all|get URI [IDENTITY KEY]
//	coap-go serve coap|coaps|coap+tcp ADDRESS:PORT [IDENTITY KEY]
package main

import (
	"fmt"
	"os"
	"time"

	piondtls "github.com/pion/dtls/v3"
	"github.com/plgd-dev/go-coap/v3/net/blockwise"
	"github.com/plgd-dev/go-coap/v3/options"
)

// What goes up and down in blocks.
var body = func() []byte {
	bytes := make([]byte, 1<<20)
	for at := range bytes {
		bytes[at] = byte(at*7 + at/251)
	}
	return bytes
}()

// For each step and each body: go-coap gives up after 3 s by default.
const patience = 60 * time.Second

// go-coap takes 64 KiB by default.
var (
	room   = options.WithMaxMessageSize(2 << 20)
	blocks = options.WithBlockwise(true, blockwise.SZX1024, patience)
)

// What DTLS needs at both ends.
type secret struct {
	identity, key string
}

func secretOf(arguments []string) secret {
	if len(arguments) < 2 {
		return secret{}
	}
	return secret{arguments[0], arguments[1]}
}

func (s secret) keyFor([]byte) ([]byte, error) {
	return []byte(s.key), nil
}

const cipher = piondtls.TLS_PSK_WITH_AES_128_CCM_8

func main() {
	var err error
	switch arguments := os.Args[1:]; arguments[0] {
	case "ask":
		err = ask(arguments[1], arguments[2], secretOf(arguments[3:]))
	case "serve":
		err = serve(arguments[1], arguments[2], secretOf(arguments[3:]))
	default:
		err = fmt.Errorf("%s is neither ask nor serve", arguments[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
