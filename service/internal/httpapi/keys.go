package httpapi

import (
	"net/http"
	"slices"

	"github.com/headgate/headgate/service/internal/rules"
)

// resetKey puts a key back in its initial state under all limits of a rule, and of its override.
func (h *Handler) resetKey(w http.ResponseWriter, r *http.Request) error {
	t := target{rule: r.PathValue("rule"), key: r.PathValue("key")}
	if err := h.resolve(&t, ""); err != nil {
		return err
	}
	limits := t.terms.Limits
	for _, l := range rules.Named(t.rule, t.terms.Rule.Limits) { // behind an override
		if !slices.Contains(limits, l) {
			limits = append(slices.Clip(limits), l)
		}
	}
	for _, l := range limits {
		if err := h.options.Store.Reset(r.Context(), t.key, l); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
