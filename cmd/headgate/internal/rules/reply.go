package rules

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// Reply says what clients are told of the decisions of a rule. The zero Reply tells all.
type Reply struct {
	Hides  httplimit.Fields // the fields that do not report the limits of the rule
	Jitter int64            // the wait of a denial is longer by up to this percentage
	Denial *Denial          // the body of a denial; nil: a problem document
}

// Denial is the body of a denial. In Body, {NAME} stands for a value of [DenialValues].
type Denial struct {
	Body        string
	ContentType string
}

// DenialValues are the values in the body of a denial. None is from the client, and none needs to
// be escaped in JSON or HTML.
type DenialValues struct {
	Type, Title, Detail, Rule string
	Status                    int
	RetryAfter                string // a number, or null
	Violated                  []string
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// Fill returns the body with these values.
func (d *Denial) Fill(v DenialValues) string {
	violated, err := json.Marshal(append([]string{}, v.Violated...))
	if err != nil {
		panic(err) // cannot happen: texts
	}
	return strings.NewReplacer("{type}", v.Type, "{title}", v.Title, "{detail}", v.Detail,
		"{rule}", v.Rule, "{status}", fmt.Sprint(v.Status), "{retry_after}", v.RetryAfter,
		"{violated_policies}", string(violated)).Replace(d.Body)
}

// Validate reports the first thing that is wrong with d.
func (d *Denial) Validate() error {
	if _, _, err := mime.ParseMediaType(d.ContentType); err != nil {
		return fmt.Errorf("content_type is %q; want a media type such as text/plain", d.ContentType)
	}
	filled := d.Fill(DenialValues{
		Type: "a:b", Title: "A b", Detail: "A b.", Rule: "a", Status: 429, RetryAfter: "null",
		Violated: []string{"a"},
	})
	if unknown := placeholder.FindString(filled); unknown != "" {
		return fmt.Errorf("body has %s; want {type}, {title}, {detail}, {rule}, {status}, "+
			"{retry_after} or {violated_policies}", unknown)
	}
	if strings.Contains(d.ContentType, "json") && !json.Valid([]byte(filled)) {
		return fmt.Errorf("body is not JSON, but content_type is %s; want JSON such as "+
			`{"message": "{detail}"}, or a content_type such as text/plain`, d.ContentType)
	}
	return nil
}

// later returns wait, longer by up to the jitter, in whole units.
func (r *Reply) later(wait, unit time.Duration) time.Duration {
	if r.Jitter == 0 || wait == headgate.Never {
		return wait
	}
	most := int64(wait) / 100 * r.Jitter / int64(unit)
	return wait + time.Duration(rand.Int64N(most+1)*int64(unit))
}

// ParseField reads the name of header fields, or none.
func ParseField(text string) (httplimit.Fields, error) {
	names := []string{"RateLimit", "X-RateLimit", "Retry-After", "none"}
	i := slices.Index(names, text)
	if i < 0 {
		return 0, fmt.Errorf("%q is not a header field; want %s", text, strings.Join(names, ", "))
	}
	return httplimit.Fields(1 << i), nil
}
