package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// A client keeps a budget of 1,000,000 tokens a day. A request costs what its answer says that the
// model has used; until then, an estimate.
func ExampleTokenCost() {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage": {"input_tokens": 30, "output_tokens": 200}}`)
	}))
	ctx := context.Background()

	limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerDay(1_000_000))
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httplimit.NewTransport(limiter, httplimit.TransportOptions{
		Tokens: &httplimit.TokenCost{Estimate: 2000, Input: 1, Output: 4},
		Key:    func(*http.Request) string { return "team" }, // the default is the host
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}

	left := func() (hundreds int64) {
		d, err := limiter.Peek(ctx, "team")
		if err != nil {
			log.Fatal(err)
		}
		return (d.Remaining + 50) / 100 // some tokens have come back meanwhile
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, model.URL+"/v1/responses",
		strings.NewReader(`{"model": "m", "max_output_tokens": 1000, "input": "Hello"}`))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := client.Do(ask)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("hundreds of tokens while it is answered:", left())
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	model.Close()
	fmt.Println("afterwards:", left())
	// Output:
	// hundreds of tokens while it is answered: 9960
	// afterwards: 9992
}

// The program of docs/tokens.md is a part of the example.
func TestDocumentTokens(t *testing.T) {
	page, err := os.ReadFile("../docs/tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_tokens_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```go\n")
	program, _, _ = strings.Cut(program, "```")
	if !strings.Contains(string(example), "\n\t"+strings.ReplaceAll(
		strings.TrimSpace(program), "\n", "\n\t")) {
		t.Errorf("the example does not run:\n%s", program)
	}
}
