// Mcp limits the tool calls of an MCP server by the subject of the token, or else by session.
//
//	go run ./examples/with/mcp
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	h, err := newHandler(headgate.NewMemory(), headgate.PerMinute(20))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

func newHandler(store headgate.Store, l headgate.Limit) (http.Handler, error) {
	limit, err := limitTools(store, l)
	if err != nil {
		return nil, err
	}
	tools := mcp.NewServer(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
	tools.AddReceivingMiddleware(limit)
	mcp.AddTool(tools, &mcp.Tool{Name: "hello"}, hello)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools },
		&mcp.StreamableHTTPOptions{SessionTimeout: 10 * time.Minute}), nil // default: none
}

// limitTools denies a call as a result with an error, which the model reads. A JSON-RPC error
// would end at the client.
func limitTools(store headgate.Store, l headgate.Limit) (mcp.Middleware, error) {
	limiter, err := headgate.NewLimiter(store, l)
	if err != nil {
		return nil, err
	}
	d, err := httplimit.NewDecider(limiter,
		httplimit.OptionsOf[*mcp.CallToolRequest, any]{Key: caller})
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if call, ok := r.(*mcp.CallToolRequest); ok {
				if v := d.Decide(ctx, call, http.Header{}); v.Status != 0 {
					text := &mcp.TextContent{Text: v.Detail()}
					return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text}}, nil
				}
			}
			return next(ctx, method, r)
		}
	}, err
}

func caller(r *mcp.CallToolRequest) string {
	if r.Extra != nil && r.Extra.TokenInfo != nil && r.Extra.TokenInfo.UserID != "" {
		return "user:" + r.Extra.TokenInfo.UserID
	}
	return "session:" + r.Session.ID() // empty over stdio, where there is one client
}

type nothing struct{}

func hello(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, nothing, error) {
	return nil, nothing{}, nil
}
