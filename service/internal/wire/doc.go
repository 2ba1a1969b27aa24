// Package wire encodes and decodes the messages of Envoy's rate limit protocol, version 3.
//
// The binary form is written by hand, because the generated types allocate for every entry and
// every status. Fuzzing holds it to them: what they accept is accepted with the same fields, and
// what they refuse is refused. The JSON form follows protojson.
package wire

import (
	"context"

	"github.com/headgate/headgate/service/internal/envoy"
)

// Decider decides requests of the protocol.
//
// It fills the response, which is empty. The text in the request is valid until Decide returns: it
// lies in the buffer of the message, which is used again for another. A Decider that keeps a part
// of the request copies it, also where it gives up because ctx has ended.
type Decider interface {
	Decide(ctx context.Context, request *envoy.Request, response *envoy.Response) error
}
