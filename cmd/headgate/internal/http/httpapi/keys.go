package httpapi

import (
	"context"
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
)

// resetKey puts a key back in its initial state under all limits of a rule, and of its override.
// All instances forget its denials. Keys that the rule itself would not make can be reset, too,
// because a program may take from any key.
func (h *Handler) resetKey(w http.ResponseWriter, r *http.Request) error {
	t := target{rule: r.PathValue("rule"), key: r.PathValue("key")}
	if err := h.resolve(&t, ""); err != nil {
		return err
	}
	limits := t.terms.StateLimits()
	var failed error
	for i := 0; i < len(limits) && failed == nil; i++ {
		failed = h.options.Store.Reset(r.Context(), t.key, limits[i])
	}
	// After a failure too, because some limits may have been reset.
	err := h.options.Overrides.Announce(context.WithoutCancel(r.Context()),
		overrides.Reset{Rule: t.rule, Key: t.key})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return Unavailable(err, NotAnnounced)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// NotAnnounced is the detail of a reset that other instances may not have received.
const NotAnnounced = "the key was reset, but other instances may deny it until its retry_after; " +
	"reset it again"
