package httpapi

import (
	"context"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/internal/problem"
)

// resetKey puts a key back in its initial state under all limits of a rule, and of its override.
// All instances forget its denials.
func (h *Handler) resetKey(w http.ResponseWriter, r *http.Request) error {
	rule, key, err := fromPath(r)
	if err != nil {
		return err
	}
	key, failed := h.options.Engine.Reset(r.Context(), rule, key)
	if p := toProblem(failed); failed != nil && p.Status != http.StatusServiceUnavailable {
		return p
	}
	// After a failure too, because some limits may have been reset.
	err = h.options.Overrides.Announce(context.WithoutCancel(r.Context()),
		overrides.Reset{Rule: rule, Key: key})
	switch {
	case failed != nil:
		return Unavailable(failed, "the key may or may not have been reset; reset it again")
	case err != nil:
		return Unavailable(err, NotAnnounced)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// fromPath returns the rule and the key in the path of r. A query would be the rest of a key.
func fromPath(r *http.Request) (rule, key string, err error) {
	rule, key = r.PathValue("rule"), r.PathValue("key")
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		err = &problem.Problem{Status: http.StatusBadRequest, Field: "key",
			Detail: "the path takes no parameters; in a key, write %3F for ?"}
	}
	return rule, key, err
}

// NotAnnounced is the detail of a reset that other instances may not have received.
const NotAnnounced = "the key was reset, but other instances may deny it until its retry_after; " +
	"reset it again"
