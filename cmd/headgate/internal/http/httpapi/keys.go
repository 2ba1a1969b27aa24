package httpapi

import (
	"net/http"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
)

// resetKey puts a key back in its initial state under all limits of a rule, and of its override.
// All instances forget its denials.
func (h *Handler) resetKey(w http.ResponseWriter, r *http.Request) error {
	t := target{rule: r.PathValue("rule"), key: r.PathValue("key")}
	if err := h.resolve(&t, ""); err != nil {
		return err
	}
	for _, l := range t.terms.StateLimits() {
		if err := h.options.Store.Reset(r.Context(), t.key, l); err != nil {
			return err
		}
	}
	err := h.options.Overrides.Announce(r.Context(), overrides.Reset{Rule: t.rule, Key: t.key})
	if err != nil {
		return Unavailable(err, NotAnnounced)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// NotAnnounced is the detail of a reset that other instances may not have received.
const NotAnnounced = "the key was reset, but other instances may deny it until its retry_after; " +
	"reset it again"
