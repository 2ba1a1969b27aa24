package main

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// schema stands for the code that gqlgen generates.
type schema struct{}

var parsed = gqlparser.MustLoadSchema(&ast.Source{Input: `
	type Query { users(first: Int!): [User!]! }
	type User { name: String! }
`})

func (schema) Schema() *ast.Schema { return parsed }

// Complexity is that of a list: as many times that of a user.
func (schema) Complexity(
	_ context.Context, _, field string, child int, args map[string]any,
) (int, bool) {
	first, _ := args["first"].(int64)
	return int(first) * child, field == "users"
}

func (schema) Exec(context.Context) graphql.ResponseHandler {
	return graphql.OneShot(&graphql.Response{Data: []byte(`{"users":[]}`)})
}
