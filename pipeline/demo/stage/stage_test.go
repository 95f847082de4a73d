package stage

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"text/template"

	"penstock/infra/bus"
	"penstock/infra/bus/bustest"
	"penstock/schemas/control"
	"penstock/schemas/subject"
)

func TestClearRemovesWhatIsItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	const text = "# By a demonstration.\nwhatever it says"
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Clear(dir, "plan", text); err != nil {
		t.Fatal(err)
	}
	put("thesis", "years of work")
	if err := Clear(dir, "plan", text); !errors.Is(err, ErrFolder) {
		t.Errorf("without the file: %v", err)
	}
	put("plan", "# By somebody else.")
	if err := Clear(dir, "plan", text); !errors.Is(err, ErrFolder) {
		t.Errorf("with another's: %v", err)
	}
	put("plan", "# By a demonstration.\nof last week")
	if err := Clear(dir, "plan", text); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	file := filepath.Join(dir, "file")
	put("file", "")
	if err := Clear(file, "plan", text); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func TestSwitchesAreSeen(t *testing.T) {
	b := bustest.Start(t)
	c, err := b.Client(t.Context(), "operator")
	if err != nil {
		t.Fatal(err)
	}
	key := control.ModeKey(control.Split)
	if err := Operate(t.Context(), c, key, control.Switch{Mode: control.Act}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen string
	err = Watch(ctx, func() (*bus.Reader, error) { return c.ReadKV(ctx, subject.OperatorKV, 0) }, func(m bus.Msg) error {
		seen = m.Subject + " " + string(m.Data)
		cancel()
		return nil
	})
	if err != nil || len(seen) == 0 {
		t.Errorf("%q, %v", seen, err)
	}
	broken := errors.New("not this")
	err = Watch(t.Context(), func() (*bus.Reader, error) { return c.ReadKV(t.Context(), subject.OperatorKV, 0) }, func(bus.Msg) error { return broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestOnlyConfigurationsWithoutFaultsAreWritten(t *testing.T) {
	name := filepath.Join(t.TempDir(), "penstock.yaml")
	const text = "sites:\n  - {name: {{.}}, lat: 1, lon: 2, capacity: 1GB/h}\n"
	if err := Configure(name, template.Must(template.New("").Parse(text)), "east"); err != nil {
		t.Error(err)
	}
	if err := Configure(name, template.Must(template.New("").Parse(text+"sights: []\n")), "east"); err == nil {
		t.Error("a field that nobody knows is no fault")
	}
	if err := Configure(name, template.Must(template.New("").Parse("{{.Nothing}}")), "east"); err == nil {
		t.Error("a template that asks for what isn't there is no fault")
	}
	if err := Configure(filepath.Join(name, "x"), template.Must(template.New("").Parse(text)), "east"); err == nil {
		t.Error("written into a file")
	}
	a, b := Secret(rand.New(rand.NewPCG(1, 2))), Secret(rand.New(rand.NewPCG(1, 3)))
	if len(a) != 64 || a == b || a != Secret(rand.New(rand.NewPCG(1, 2))) {
		t.Errorf("%s, %s", a, b)
	}
}
