package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
	"github.com/headgate/headgate/internal/gocode"
)

// newLimit makes the texts of a limit by which logs were replayed. name is that of a proposal.
func newLimit(name string, l headgate.Limit, by replay.By) Limit {
	bare := l.Named("")
	code, rule := gocode.Limit(l), "api"
	if l.String() != bare.String() {
		code += fmt.Sprintf(".Named(%q)", l.Name())
		name, rule = l.Name(), l.Name()[:min(len(l.Name()), 60)] // a longer one is refused
	}
	return Limit{Name: name, Limit: l.String(), Go: code, YAML: yaml(rule, bare, by)}
}

// yaml returns a rules file with one rule: the limit l for the keys that by makes.
func yaml(rule string, l headgate.Limit, by replay.By) string {
	switch strings.ToLower(rule) {
	case "true", "false", "null": // which are no text in YAML
		rule = strconv.Quote(rule)
	}
	text := "rules:\n  - name: " + rule + "\n"
	switch key := by.String(); {
	case key == "all":
	case strings.Contains(key, ","):
		text += "    key: [" + strings.ReplaceAll(key, ",", ", ") + "]\n"
	default:
		text += "    key: " + key + "\n"
	}
	return text + "    limits: " + l.String() + "\n"
}
