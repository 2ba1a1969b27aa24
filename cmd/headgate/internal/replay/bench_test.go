package replay_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/replay"
)

const benchLines = 300_000

// BenchmarkReplay runs logs of 300,000 lines and up to 20,000 clients, some of
// them busier than others, at 500 requests a second.
func BenchmarkReplay(b *testing.B) {
	combined := generate(combinedLine)
	asJSON := generate(jsonLine)
	for _, c := range []struct {
		name, by string
		log      []byte
		limits   []string
	}{
		{"combined", "ip", combined, []string{"60/m"}},
		{"combined-3-limits", "ip", combined, []string{"60/m", "10/s fixed-window", "60/m sliding-window"}},
		{"combined-detail", "ip", combined, []string{"60/m", "10/s fixed-window", "60/m sliding-window"}},
		{"combined-by-path", "ip,path", combined, []string{"60/m"}},
		{"combined-by-agent", "header:user-agent", combined, []string{"60/m"}},
		{"combined-gzip", "ip", compressed(combined), []string{"60/m"}},
		{"json", "ip", asJSON, []string{"60/m"}},
		{"json-by-path", "ip,path", asJSON, []string{"60/m"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			config := config(b, c.by, c.limits...)
			config.Detail = strings.HasSuffix(c.name, "-detail")
			b.ReportAllocs()
			for b.Loop() {
				report, err := replay.Run(b.Context(), config, replay.Log{Name: "log", Reader: bytes.NewReader(c.log)})
				if err != nil || report.Requests != benchLines {
					b.Fatal(report, err)
				}
			}
			b.ReportMetric(benchLines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

func generate(line func(w io.Writer, at time.Time, client, path int)) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var log bytes.Buffer
	at := time.Date(2026, 1, 12, 7, 0, 0, 0, time.UTC)
	for i := range benchLines {
		client := int(random.ExpFloat64() * 2000)
		line(&log, at.Add(time.Duration(i)*2*time.Millisecond), min(client, 20_000), random.IntN(300))
	}
	return log.Bytes()
}

const agent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"

func combinedLine(w io.Writer, at time.Time, client, path int) {
	fmt.Fprintf(w, "198.18.%d.%d - - [%s] \"GET /shop/item/%d?ref=mail HTTP/1.1\" 200 %d \"https://example.com/\" \"%s\"\n",
		client/256, client%256, at.Format("02/Jan/2006:15:04:05 -0700"), path, path*37, agent)
}

func jsonLine(w io.Writer, at time.Time, client, path int) {
	fmt.Fprintf(w, `{"level":"info","ts":%.6f,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"198.18.%d.%d","remote_port":"40152","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/shop/item/%d?ref=mail","headers":{"User-Agent":["%s"],"Accept":["*/*"]}},"bytes_read":0,"duration":0.0012,"size":%d,"status":200}`+"\n",
		float64(at.UnixMicro())/1e6, client/256, client%256, path, agent, path*37)
}

func compressed(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	w.Close()
	return z.Bytes()
}

// usual is the reading of the command without flags.
var usual = replay.Reading{
	By: replay.ByIP, Reorder: replay.DefaultReorder, Top: replay.DefaultTop,
}

// config is a Config of texts.
func config(t testing.TB, by string, limits ...string) replay.Config {
	t.Helper()
	c := replay.Config{Reading: usual}
	for _, text := range limits {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Limits = append(c.Limits, l)
	}
	var err error
	if c.By, err = replay.ParseBy(by); err != nil {
		t.Fatal(err)
	}
	return c
}
