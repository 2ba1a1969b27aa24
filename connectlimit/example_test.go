package connectlimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/connectlimit"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/snippets"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func Example() {
	greet := func(
		_ context.Context, r *connect.Request[wrapperspb.StringValue],
	) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(wrapperspb.String("hello " + r.Msg.GetValue())), nil
	}

	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerMinute(2))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := connectlimit.New(limiter, connectlimit.Options{
		Key: connectlimit.Key(httplimit.Header("X-Api-Key")),
	})
	if err != nil {
		log.Fatal(err)
	}
	const procedure = "/greet.Greeter/Greet"
	handler := connect.NewUnaryHandler(procedure, greet, connect.WithInterceptors(limit))

	server := httptest.NewServer(handler)
	own, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httplimit.NewTransport(own, httplimit.TransportOptions{})
	if err != nil {
		log.Fatal(err)
	}
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
		&http.Client{Transport: transport}, server.URL+procedure)

	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 3 {
		_, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("ada")))
		if err == nil {
			fmt.Println("ok")
			continue
		}
		fmt.Println(connect.CodeOf(err))
	}
	// Output:
	// ok
	// ok
	// deadline_exceeded
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../docs/grpc.md", "connect", "example_test.go")
}
