// Package wire encodes and decodes the messages of Envoy's rate limit protocol, version 3.
//
// The binary form is written by hand, because the generated types allocate for every entry and
// every status. Fuzz tests compare both: they accept the same messages with the same fields. The
// JSON form is read and written with the generated types, because it is not used for speed.
package wire

import (
	"context"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// Decider decides requests of the protocol.
//
// It fills the response, which is empty. Strings in the request are valid until Decide returns,
// because they point into the buffer of the message, which is reused. A Decider must copy each
// string that it keeps, also if it returns early because ctx has ended.
type Decider interface {
	Decide(ctx context.Context, request *envoy.Request, response *envoy.Response) error
}
