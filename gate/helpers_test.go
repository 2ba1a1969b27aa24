package gate

import (
	"errors"

	"github.com/headgate/headgate"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func isInvalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}
