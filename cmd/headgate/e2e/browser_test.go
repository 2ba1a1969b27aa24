package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// browser is the one that all tests share, each in tabs of its own. Their servers have other ports,
// so that they share no storage either.
var browser context.Context

// scratch is a directory that goes with the last test.
var scratch string

func TestMain(m *testing.M) {
	// These tests wait for pages more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(runTests(m)) // the flags of the command come after ours
}

func runTests(m *testing.M) int {
	path, err := chromium()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// To begin a process costs more than most tests do in it.
		chromedp.Flag("renderer-process-limit", "4"),
		chromedp.Flag("disable-site-isolation-trials", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	tab, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(tab); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the browser does not start:", err)
		return 1
	}
	browser = tab //nolint:fatcontext // chromedp keeps browsers in contexts
	return m.Run()
}

// chromium finds the browser, where scripts/deps does.
func chromium() (string, error) {
	names := []string{
		"chromium-headless-shell", // has no windows, and takes half of the time
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	}
	if name := os.Getenv("HEADGATE_CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("none of %q is here: install a browser with make deps, or name one in HEADGATE_CHROMIUM", names)
}

// tab is a window of the browser.
type tab struct {
	ctx     context.Context //nolint:containedctx // chromedp keeps tabs in contexts
	shut    func()
	scripts []cdppage.ScriptIdentifier // of atStart
}

// tabOf is the key of the tab in a context.
type tabOf struct{}

// blank holds the tabs of tests that are over. Opening a window costs more than most tests.
var blank = make(chan *tab, 8)

// newTab returns a blank tab until the test ends.
func newTab(t *testing.T) context.Context {
	t.Helper()
	w := &tab{}
	select {
	case w = <-blank:
	default:
		w.ctx, w.shut = chromedp.NewContext(context.WithValue(browser, tabOf{}, w))
		if err := chromedp.Do(w.ctx); err != nil { // before there is a timeout, which would be the tab's own
			w.shut()
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() || w.clear() != nil {
			w.shut()
			return
		}
		select {
		case blank <- w:
		default:
			w.shut()
		}
	})
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// atStart runs a script before those of the page.
func atStart(script string) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		added, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		w := ctx.Value(tabOf{}).(*tab)
		w.scripts = append(w.scripts, added.Identifier)
		return err
	})
}

// clear removes the page and the settings of its test.
func (w *tab) clear() error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Navigate("about:blank"),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}),
		call(network.Disable, cdp.Empty{}), call(log.Disable, cdp.Empty{}))
	for _, id := range w.scripts {
		err = errors.Join(err, chromedp.Do(ctx, call(cdppage.RemoveScriptToEvaluateOnNewDocument,
			cdppage.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: id})))
	}
	w.scripts = nil
	return err
}
