package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Each minute has a line for each rule that denied something, with its top key.
func TestDenialLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &denialLog{
			log: slog.New(slog.NewTextHandler(&out, nil)), tops: map[string]*ruleDenials{},
			key: strings.ToUpper,
		}
		go l.run(t.Context())
		web, login := &rules.Rule{Name: "web"}, &rules.Rule{Name: "login"}
		for i := range 10 {
			key := "ip:b"
			if i > 6 {
				key = "ip:a"
			}
			l.add(&rules.Event{Rule: web, Key: key, Outcome: rules.Denied, Banned: i > 6})
			l.add(&rules.Event{Rule: login, Key: key, Outcome: rules.Allowed})
		}
		time.Sleep(denialInterval + time.Second)
		l.add(&rules.Event{Rule: login, Key: "k", Outcome: rules.Denied})
		time.Sleep(2 * denialInterval)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		wants := []string{
			`rule=web denied=10 of_banned_keys=3 top_key=IP:B of_top_key=7`,
			`rule=login denied=1 of_banned_keys=0 top_key=K of_top_key=1`,
		}
		if len(lines) != 2 || !strings.HasSuffix(lines[0], wants[0]) || !strings.HasSuffix(lines[1], wants[1]) {
			t.Errorf("got\n%s", out.String())
		}
	})
}
