package envoy

// Domain is what one file says about one domain. Make one with [ParseDomain], or fill it from
// another source of configuration; [NewConfig] checks it.
type Domain struct {
	Name        string
	Descriptors []Spec
	File        string   // for messages
	Line        int      // where the domain begins in File; 0: not known
	Warnings    []string // what is accepted and likely wrong, with file and line
}

// Spec is a descriptor of the configuration.
type Spec struct {
	Key            string
	Value          string     // empty: any; * stands for any text
	RateLimit      *RateLimit // nil: the descriptor only groups others, or frees a value
	Descriptors    []Spec
	ShadowMode     bool
	QuotaMode      bool
	ChargeAlways   bool
	DetailedMetric bool
	ValueToMetric  bool
	ShareThreshold bool
	Metadata       map[string]any // of the types that encoding/json decodes to
	Line           int
}

// RateLimit is the limit of a descriptor, as it was written.
type RateLimit struct {
	Unit            string // in any case
	UnitMultiplier  uint32 // 0 counts as 1
	RequestsPerUnit uint32
	Unlimited       bool
	Text            string // a limit in Headgate's text form, instead of the fields above
	Name            string
	Replaces        []string
	Line            int
}
