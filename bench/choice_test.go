package main

import (
	"slices"
	"testing"
)

func TestChoice(t *testing.T) {
	field := func() []Entry {
		return []Entry{{Name: headgateName}, {Name: redisRateName}, {Name: "throttled"}, {Name: "other"}}
	}
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{headgateName, redisRateName, "throttled", "other"}},
		{"thro", []string{redisRateName, "throttled"}}, // beside whom ratios are taken against
		{"headgate,oth", []string{headgateName, redisRateName, "other"}},
	}
	for _, tt := range tests {
		var c choice
		if tt.text != "" {
			var err error
			if c, err = parseChoice(tt.text); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, e := range c.entries(redisStore, field()) {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q chooses %q, want %q", tt.text, got, tt.want)
		}
	}
}

// What is chosen is what a plan runs.
func TestPlanOfOptions(t *testing.T) {
	o, err := parse([]string{"-quick", "-callers", "3,70", "-workloads", "hot,20k/s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := o.plan()
	if !slices.Equal(p.levels, []int{3, 70}) || !slices.Equal(p.sharers, []int{3, 70}) {
		t.Errorf("levels are %v and %v", p.levels, p.sharers)
	}
	if ws := p.workloads.workloads(p.redisWorkloads()); len(ws) != 1 || ws[0].Name != "one hot key" {
		t.Errorf("%d workloads", len(ws))
	}
	if ls := p.pacedLoads(); len(ls) != 1 || len(ls[0].due) != 1000 {
		t.Errorf("%d paced loads", len(ls))
	}
}
